//! Text files of what goes over stdio; see `toolgate_testkit::Transcript`. `! ` is a resource that changes then.
//! `UPDATE=1 cargo test -p toolgate` writes what came into the files.

use super::{Scripted, server};
use crate::official::{Side, Talk};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use toolgate::{
    HandlerExit, Prompt, Resource, ResourceTemplate, Server,
    edge::{self, ServerLimits},
    handlers::{ItemRegistry, ResourceContents, TemplateVariables},
};
use toolgate_testkit::{self as kit, Transcript};

/// Plays a file against a server; `change` is told which resource changes.
async fn play(name: &str, server: Arc<edge::ProtocolServer>, change: impl Fn(&str)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut talk = Talk::of(Side::Server);
    let watch = move |side: kit::StreamSide, line: &str| match side {
        kit::StreamSide::Testing => talk.heard(line),
        kit::StreamSide::Tested => talk.said(line),
    };
    Transcript::read(folder.join(format!("{name}.txt")))
        .play_with(&server, Some(Box::new(watch)), change)
        .await;
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test] async fn $name() { play(stringify!($name), server(Scripted::new()), |_| {}).await; })*
    };
}

/// Two items on a page, and some things of every kind.
fn shelf() -> (Arc<edge::ProtocolServer>, ItemRegistry) {
    let resource = |name: &str| {
        let uri = format!("test://{name}");
        let text = ResourceContents::text(format!("the text of {name}"));
        Resource::fixed(&uri, name, text).mime("text/plain")
    };
    let template = |uri: &str, name: &str| {
        let read = |vars: TemplateVariables, _| async move {
            match vars.get("id") {
                "0" => Err(HandlerExit::not_found("no such number")),
                id => Ok(format!("number {id}")),
            }
        };
        ResourceTemplate::new(uri, name, read)
    };
    let complete =
        |typed: String, _| async move { Ok::<_, HandlerExit>(vec![format!("{typed}1")]) };
    let prompt = |name: &str| {
        let greet = |args: BTreeMap<String, String>, _| async move {
            Ok::<_, HandlerExit>(format!("hello {}", args["who"]))
        };
        let prompt = Prompt::new(name, greet).argument("who", "Whom.", true);
        prompt.complete("who", complete)
    };
    let mut limits = ServerLimits::default();
    limits.page_items = 2;
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
