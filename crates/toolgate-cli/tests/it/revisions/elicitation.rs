//! Elicitation in mid-call with servers of each SDK as their authors write it, for clients of both eras over stdio and
//! HTTP. A server that serves both eras and can ask in one of them only is used in that one, without a setting.

use super::{clients::Peer, section};
use crate::help::{Client, SOON, Script, Setup, TempDir, real, runner, until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const CLIENTS: [Peer; 2] = [
    Peer::of(Client::TypeScript1, "legacy", "2025-11-25"),
    Peer::of(Client::TypeScript2, "modern", "2026-07-28"),
];

/// Start of a server: over stdio by a command, or by a script that prints its URL.
pub(super) trait Upstream {
    fn command(&self, real: &Path) -> Vec<String>;
    fn start(&self, real: &Path, setting: &Value) -> Script;
}

/// A script of `interop/servers`.
struct Scripted(&'static str);

impl Upstream for Scripted {
    fn command(&self, real: &Path) -> Vec<String> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers");
        let program = runner(real, self.0).to_string_lossy().into_owned();
        vec![program, file.join(self.0).to_string_lossy().into_owned()]
    }

    fn start(&self, real: &Path, setting: &Value) -> Script {
        Script::start(real, &format!("servers/{}", self.0), setting)
    }
}

/// Asks by both clients over both transports, of the server over stdio and at a URL; each time it is used in the
/// revision of its transport.
pub(super) fn asks_everybody(upstream: &impl Upstream, mut setting: Value, revisions: [&str; 2]) {
    let Some(real) = real() else { return };
    setting["interop"] = json!(real);
    let command = upstream.command(&real);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    asks_clients(&real, &section(&words, &setting), revisions[0]);
    setting["http"] = json!(true);
    let mut server = upstream.start(&real, &setting);
    let url = server.event("listening")["url"].clone();
    let config = format!("[server.peer]\nurl = {url}\ntrust_annotations = true\n");
    asks_clients(&real, &config, revisions[1]);
}

fn asks_clients(real: &Path, config: &str, revision: &str) {
    let config = format!("{config}[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n");
    let folder = TempDir::new("asks");
    let gate = Setup::config(config.clone()).start();
    until("the server is listed", SOON, || {
        (gate.state()["servers"][0]["tools"].as_u64() > Some(0)).then_some(())
    });
    for peer in CLIENTS {
        asks(real, peer, json!({"http": gate.endpoint}));
        let file: PathBuf = folder.write("toolgate.toml", &config);
        let data = folder.file(peer.revision);
        let program = env!("CARGO_BIN_EXE_toolgate");
        asks(
            real,
            peer,
            json!({"stdio": [program, "serve", "--stdio", "--config", file, "--data", data]}),
        );
    }
    let server = &gate.state()["servers"][0];
    let shown = ["revision", "restarts"].map(|key| server[key].clone());
    assert_eq!(json!(shown), json!([revision, 0]), "{server}");
    gate.stop();
}

fn asks(real: &Path, peer: Peer, mut job: Value) {
    job["mode"] = json!(peer.mode);
    job["elicit"] = json!([{"action": "accept", "content": {"name": "Ada"}}]);
    job["steps"] = json!([{"do": "list"}, {"do": "call", "name": "peer_ask", "arguments": {}}]);
    let mut client = peer.client.start(real, &job);
    assert_eq!(client.event("connected")["revision"], peer.revision);
    client.event("tools");
    assert_eq!(
        client.event("asked")["message"],
        "[peer] What is your name?"
    );
    assert_eq!(client.event("result")["text"], "hello, Ada");
    client.event("done");
}

/// The error that a client gets of a server which is held to a revision in which it cannot ask.
fn refusal(way: &str, revision: &str) -> Option<String> {
    let real = real()?;
    let command = Scripted("elicit_fastmcp.py").command(&real);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let config = section(&words, &json!({"way": way}));
    let rule = "[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n";
    let gate = Setup::config(format!("{config}revision = {revision:?}\n{rule}")).start();
    let mut job =
        json!({"http": gate.endpoint, "mode": "modern", "elicit": [{"action": "decline"}]});
    job["steps"] = json!([{"do": "list"}, {"do": "call", "name": "peer_ask", "arguments": {}}]);
    let mut client = Client::TypeScript2.start(&real, &job);
    client.event("connected");
    client.event("tools");
    let refused = client.event_or_error("result").to_string();
    assert_eq!(gate.state()["servers"][0]["revision"], revision);
    Some(refused)
}

#[test]
fn a_chosen_revision_holds_and_the_error_names_the_setting() {
    for (way, chosen, advised) in [("request", NEWEST, SESSION), ("result", SESSION, NEWEST)] {
        let Some(refused) = refusal(way, chosen) else {
            return;
        };
        let advice = format!("set revision = \\\"{advised}\\\" in [server.peer]");
        assert!(refused.contains(&advice), "{refused}");
    }
}

const SESSION: &str = "2025-11-25";
const NEWEST: &str = "2026-07-28";

#[test]
fn fastmcp_by_request() {
    let setting = json!({"way": "request"});
    asks_everybody(&Scripted("elicit_fastmcp.py"), setting, [SESSION; 2]);
}

#[test]
fn fastmcp_by_result() {
    let setting = json!({"way": "result"});
    asks_everybody(&Scripted("elicit_fastmcp.py"), setting, [NEWEST; 2]);
}

#[test]
fn python_2_by_request() {
    let setting = json!({"way": "request"});
    asks_everybody(&Scripted("elicit_python.py"), setting, [SESSION; 2]);
}

#[test]
fn python_2_by_both() {
    let setting = json!({"way": "both"});
    asks_everybody(&Scripted("elicit_python.py"), setting, [SESSION; 2]);
}

#[test]
fn python_2_by_result() {
    asks_everybody(&Scripted("py_server.py"), json!({}), [NEWEST; 2]);
}

#[test]
fn python_1_by_request() {
    asks_everybody(&Scripted("py1_server.py"), json!({}), [SESSION; 2]);
}

#[test]
fn typescript_1_by_request() {
    let setting = json!({"package": "@modelcontextprotocol/sdk"});
    asks_everybody(&Scripted("ts1.mjs"), setting, [SESSION; 2]);
}

/// Its handler for HTTP keeps no sessions, so there it is used in the newest revision.
#[test]
fn typescript_2_by_both() {
    let setting = json!({"both": true});
    asks_everybody(&Scripted("ts2.mjs"), setting, [SESSION, NEWEST]);
}
