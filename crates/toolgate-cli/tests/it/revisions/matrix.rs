//! Every revision before the gateway with every revision behind it, over each transport on both sides.
//!
//! `docs/bridging.md` holds what comes out. Here a few pairs are compared with it; with `TOOLGATE_BRIDGING=1` all of them
//! are run, and the page is written.

use super::{clients, notes, section};
use crate::help::{Client, SOON, Script, Setup, TempDir, real, runner, until};
use clients::Peer;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// Operations tried in each cell.
const TRIED: [&str; 9] = [
    "call",
    "error",
    "progress",
    "cancel",
    "question",
    "question declined",
    "list changed",
    "structured result",
    "image",
];

/// The clients, over stdio and over HTTP.
const CLIENTS: [(Peer, &str); 5] = [
    (
        Peer::of(Client::Release("sdk-1.4.1"), "legacy", "2024-11-05"),
        "sse",
    ),
    (
        Peer::of(Client::Release("sdk-1.11.5"), "legacy", "2025-03-26"),
        "legacy",
    ),
    (
        Peer::of(Client::Release("sdk-1.17.5"), "legacy", "2025-06-18"),
        "legacy",
    ),
    (
        Peer::of(Client::TypeScript1, "legacy", "2025-11-25"),
        "legacy",
    ),
    (
        Peer::of(Client::TypeScript2, "modern", "2026-07-28"),
        "modern",
    ),
];

struct Server {
    revision: &'static str,
    script: &'static str,
    package: &'static str,
}

const SERVERS: [Server; 5] = [
    Server::of("2024-11-05", "ts1.mjs", "sdk-1.4.1"),
    Server::of("2025-03-26", "ts1.mjs", "sdk-1.11.5"),
    Server::of("2025-06-18", "ts1.mjs", "sdk-1.17.5"),
    Server::of("2025-11-25", "ts1.mjs", "@modelcontextprotocol/sdk"),
    Server::of("2026-07-28", "ts2.mjs", "@modelcontextprotocol/server"),
];

#[derive(Clone, Copy, Debug)]
enum Link {
    Stdio,
    Http,
}

const LINKS: [Link; 2] = [Link::Stdio, Link::Http];

/// Results of all operations, in their order.
type Row = Vec<String>;

impl Server {
    const fn of(revision: &'static str, script: &'static str, package: &'static str) -> Server {
        Server {
            revision,
            script,
            package,
        }
    }

    fn setting(&self, real: &Path, notes: &Path) -> Value {
        json!({"interop": real, "package": self.package, "notes": notes, "picture": true})
    }

    /// The config of the gateway before it, and the server itself where it runs at an address.
    fn config(&self, real: &Path, notes: &Path, link: Link) -> (String, Option<Script>) {
        let mut setting = self.setting(real, notes);
        match link {
            Link::Stdio => {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers");
                let file = file.join(self.script).to_string_lossy().into_owned();
                let runner = runner(real, self.script);
                (section(&[&runner.to_string_lossy(), &file], &setting), None)
            }
            Link::Http => {
                let oldest = self.revision == "2024-11-05";
                setting["http"] = if oldest { json!("sse") } else { json!(true) };
                let file = format!("servers/{}", self.script);
                let mut server = Script::start(real, &file, &setting);
                let url = server.event("listening")["url"].clone();
                let config = format!("[server.peer]\nurl = {url}\ntrust_annotations = true\n");
                (config, Some(server))
            }
        }
    }
}

fn steps() -> Value {
    let call = |name: &str, arguments: Value| json!({"do": "call", "name": format!("peer_{name}"), "arguments": arguments});
    json!([
        call("echo", json!({"text": "Grüße"})),
        call("fail", json!({})),
        call("slow", json!({"to": 3})),
        call("ask", json!({})),
        call("ask", json!({})),
        call("sum", json!({"a": 2, "b": 3})),
        call("picture", json!({})),
        call("grow", json!({})),
        {"do": "changed"},
        {"do": "list"},
        {"do": "call", "name": "peer_slow", "arguments": {"to": 5000}, "cancel_after": 2},
        {"do": "wait"},
        call("grown", json!({})),
    ])
}

fn run(real: &Path, client: (Peer, &'static str), server: &Server, links: [Link; 2]) -> Row {
    let folder = TempDir::new("matrix");
    let (file, data) = (folder.file("notes"), folder.file("state"));
    let (config, at) = server.config(real, &file, links[1]);
    let (peer, over_http) = client;
    let mut gate = None;
    let mut job = match links[0] {
        Link::Http => {
            let gate = gate.insert(Setup::config(config).start());
            until("the server is up", SOON, || {
                (gate.state()["servers"][0]["tools"] == json!(7)).then_some(())
            });
            let path = if over_http == "sse" { "/sse" } else { "/mcp" };
            json!({"http": gate.endpoint.replace("/mcp", path), "mode": over_http})
        }
        Link::Stdio => {
            let config: PathBuf = folder.write("toolgate.toml", &config);
            let program = env!("CARGO_BIN_EXE_toolgate");
            let words = json!([
                program, "serve", "--stdio", "--config", config, "--data", data
            ]);
            json!({"stdio": words, "mode": peer.mode})
        }
    };
    job["elicit"] =
        json!([{"action": "accept", "content": {"name": "Ada"}}, {"action": "decline"}]);
    job["steps"] = steps();
    let mut script = peer.client.start(real, &job);
    let connected = script.event("connected");
    assert_eq!(connected["revision"], peer.revision);
    let row = observe(&mut script, &file);
    if let Some(gate) = &gate {
        let revision = &gate.state()["servers"][0]["revision"];
        assert_eq!(*revision, server.revision);
    }
    drop((gate, at));
    row
}

fn observe(script: &mut Script, file: &Path) -> Row {
    let call = plain(&script.event_or_error("result"), "Grüße", false);
    let error = plain(
        &script.event_or_error("result"),
        "the printer is on fire",
        true,
    );
    let counted = plain(&script.event_or_error("result"), "counted to 3", false);
    let first = script.seen("progress").first().cloned();
    let progress = match first {
        Some(first) if first["progress"] == 1 && counted == "yes" => counted,
        other => format!("{other:?} {counted}"),
    };
    let question = asked(&script.event_or_error("result"), "hello, Ada");
    let declined = asked(&script.event_or_error("result"), "you said decline");
    let sum = script.event_or_error("result");
    let structured = match (&sum["structured"], sum["text"].as_str()) {
        (structured, _) if *structured == json!({"sum": 5}) => "yes".to_owned(),
        (Value::Null, Some(r#"{"sum":5}"#)) => "as text".to_owned(),
        _ => sum.to_string(),
    };
    let picture = script.event_or_error("result");
    let image = match picture["kinds"] == json!(["image"]) {
        true => "yes".to_owned(),
        false => picture.to_string(),
    };
    let grown = plain(&script.event_or_error("result"), "grown", false);
    script.event("changed");
    let names = script.event("tools")["names"].to_string();
    let changed = match names.contains("peer_grown") {
        true => grown,
        false => names,
    };
    script.event("cancelled");
    script.event("waiting");
    until("the server hears of the cancel", SOON, || {
        notes(file).contains(&"cancelled".to_owned()).then_some(())
    });
    script.go_on();
    let cancel = plain(&script.event_or_error("result"), "here I am", false);
    script.event("done");
    vec![
        call, error, progress, cancel, question, declined, changed, structured, image,
    ]
}

fn plain(result: &Value, text: &str, is_error: bool) -> String {
    let same = result["text"] == text && result["is_error"] == is_error;
    if same {
        "yes".to_owned()
    } else {
        result.to_string()
    }
}

/// Returns whether the input request arrived, or the reason why not.
fn asked(result: &Value, text: &str) -> String {
    let said = result.to_string();
    match () {
        () if result["text"] == text => "yes".to_owned(),
        () if said.contains("this SDK cannot ask") => "the server cannot ask".to_owned(),
        () if said.contains("declare") => "the client cannot be asked".to_owned(),
        () => said,
    }
}

/// The cells as one table, where the transports make no difference.
fn table(cells: &BTreeMap<(usize, usize), Row>) -> String {
    let mut text = format!("| client | server | {} |\n", TRIED.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(TRIED.len() + 2));
    for ((client, server), row) in cells {
        let (client, server) = (CLIENTS[*client].0.revision, SERVERS[*server].revision);
        let _ = writeln!(text, "| {client} | {server} | {} |", row.join(" | "));
    }
    text
}

#[test]
fn every_revision_before_every_other() {
    let Some(real) = real() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bridging.md");
    let whole = std::env::var_os("TOOLGATE_BRIDGING").is_some();
    let mut cells: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    for (client, before) in CLIENTS.iter().enumerate() {
        for (server, behind) in SERVERS.iter().enumerate() {
            let far = client == 0 && server == 4 || client == 4 && server == 0;
            for (number, links) in LINKS
                .iter()
                .flat_map(|a| LINKS.map(|b| [*a, b]))
                .enumerate()
            {
                let wanted = whole || far && number == 2;
                if !wanted {
                    continue;
                }
                let row = run(&real, *before, behind, links);
                let first = cells.entry((client, server)).or_insert_with(|| row.clone());
                assert_eq!(*first, row, "the transports {links:?} make a difference");
            }
        }
    }
    let made = table(&cells);
    let text = std::fs::read_to_string(&page).unwrap();
    if whole {
        let (before, rest) = text.split_once("| client | server |").unwrap();
        let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
        let text = format!("{before}{made}\n{after}");
        std::fs::write(&page, text).unwrap();
    } else {
        for line in made.lines() {
            assert!(text.contains(line), "docs/bridging.md lacks: {line}");
        }
    }
}
