//! Text files of what goes over stdio: `> ` is sent, `< ` must come back, in this order; `! ` is a resource that changes
//! then; `# ` is a comment.
//! `UPDATE=1 cargo test -p toolgate` writes what came into the files.

use super::{HANG, Scripted, server};
use crate::official::{Side, Talk};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate::{
    Caller, Prompt, Resource, Server, Stop, Template,
    edge::{self, ServerLimits, stdio},
    handlers::{Contents, Registry, Vars},
};

/// Plays a file against a server; `change` is told which resource changes.
async fn play(name: &str, server: Arc<edge::Server>, change: impl Fn(&str)) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts")
        .join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    let serving = stdio::serve(server, Caller::new("test"), read, write);
    let playing = async {
        let (read, mut write) = tokio::io::split(near);
        let mut lines = BufReader::new(read).lines();
        let mut got = String::new();
        let mut talk = Talk::of(Side::Server);
        for line in text.lines() {
            if let Some(sent) = line.strip_prefix("> ") {
                talk.heard(sent);
                write
                    .write_all(format!("{sent}\n").as_bytes())
                    .await
                    .unwrap();
            }
            if let Some(uri) = line.strip_prefix("! ") {
                change(uri);
            }
            if line.starts_with("< ") {
                let came = tokio::time::timeout(HANG, lines.next_line())
                    .await
                    .expect("an answer")
                    .unwrap()
                    .unwrap();
                talk.said(&came);
                got.push_str(&format!("< {}\n", mask(&came)));
            } else {
                got.push_str(&format!("{line}\n"));
            }
        }
        drop(write);
        drop(lines);
        got
    };
    let (served, got) = tokio::join!(serving, playing);
    served.unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &got).unwrap();
    }
    assert_eq!(got, text, "{}", path.display());
}

/// Sealed state is never the same twice.
fn mask(line: &str) -> String {
    let Some((before, after)) = line.split_once("\"requestState\":\"") else {
        return line.to_owned();
    };
    let rest = after.split_once('"').map_or("", |(_, rest)| rest);
    format!("{before}\"requestState\":\"…\"{rest}")
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test] async fn $name() { play(stringify!($name), server(Scripted::new()), |_| {}).await; })*
    };
}

/// Two items on a page, and some things of every kind.
fn shelf() -> (Arc<edge::Server>, Registry) {
    let resource = |name: &str| {
        let uri = format!("test://{name}");
        let text = Contents::text(format!("the text of {name}"));
        Resource::fixed(&uri, name, text).mime("text/plain")
    };
    let template = |uri: &str, name: &str| {
        let read = |vars: Vars, _| async move {
            match vars.get("id") {
                "0" => Err(Stop::not_found("no such number")),
                id => Ok(format!("number {id}")),
            }
        };
        Template::new(uri, name, read)
    };
    let complete = |typed: String, _| async move { Ok(vec![format!("{typed}1")]) };
    let prompt = |name: &str| {
        let greet =
            |args: BTreeMap<String, String>, _| async move { Ok(format!("hello {}", args["who"])) };
        let prompt = Prompt::new(name, greet).argument("who", "Whom.", true);
        prompt.complete("who", complete)
    };
    let limits = ServerLimits {
        page: 2,
        ..ServerLimits::default()
    };
    Server::new("shelf", "1")
        .limits(limits)
        .cache(60_000, true)
        .resource(resource("a"))
        .resource(resource("b"))
        .resource(resource("c"))
        .template(template("test://n/{id}", "n").complete("id", complete))
        .template(template("test://m/{id}", "m"))
        .template(template("test://o/{id}", "o"))
        .prompt(prompt("p"))
        .prompt(prompt("q"))
        .prompt(prompt("r"))
        .build_with_registry()
        .unwrap()
}

macro_rules! shelves {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test] async fn $name() {
            let (server, registry) = shelf();
            play(stringify!($name), server, |uri| registry.updated(uri)).await;
        })*
    };
}

// Lists with their pages, reading and what is missing, prompts, completion and subscriptions, in each revision.
shelves!(
    items_2024_11_05,
    items_2025_03_26,
    items_2025_06_18,
    items_2025_11_25,
    items_2026_07_28
);

transcripts!(
    stdio_2025_11_25,
    stdio_2025_06_18,
    stdio_2026_07_28,
    stdio_bad_input,
    stdio_ask_inline,
    stdio_batch
);
