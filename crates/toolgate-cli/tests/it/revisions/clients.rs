//! A client of each revision does everything there is, over each transport that it has.
//!
//! Behind the gateway is a server of the newest revision, so that all is there to be translated.

use super::{notes, server};
use crate::help::{Client, SOON, Script, Setup, TempDir, real, until};
use serde_json::{Value, json};
use std::path::Path;

/// A client, and what may be expected of it.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) client: Client,
    pub(super) mode: &'static str,
    pub(super) revision: &'static str,
}

impl Peer {
    pub(super) const fn of(client: Client, mode: &'static str, revision: &'static str) -> Peer {
        Peer {
            client,
            mode,
            revision,
        }
    }

    fn since(&self, revision: &str) -> bool {
        self.revision >= revision
    }
}

const TS_2024_11: Peer = Peer::of(Client::Release("sdk-1.4.1"), "legacy", "2024-11-05");
const TS_2025_03: Peer = Peer::of(Client::Release("sdk-1.11.5"), "legacy", "2025-03-26");
const TS_2025_06: Peer = Peer::of(Client::Release("sdk-1.17.5"), "legacy", "2025-06-18");
const TS_2025_11: Peer = Peer::of(Client::TypeScript1, "legacy", "2025-11-25");
const TS2_2025_11: Peer = Peer::of(Client::TypeScript2, "legacy", "2025-11-25");
const TS_2026_07: Peer = Peer::of(Client::TypeScript2, "modern", "2026-07-28");
const PY1_2025_11: Peer = Peer::of(Client::Python1, "legacy", "2025-11-25");
const PY_2025_11: Peer = Peer::of(Client::Python, "legacy", "2025-11-25");
const PY_2026_07: Peer = Peer::of(Client::Python, "modern", "2026-07-28");

/// Every client over HTTP, each in the way that it has.
pub(super) const EVERY: [Peer; 8] = [
    Peer {
        mode: "sse",
        ..TS_2024_11
    },
    TS_2025_03,
    TS_2025_06,
    TS_2025_11,
    TS_2026_07,
    PY1_2025_11,
    PY_2025_11,
    PY_2026_07,
];

fn steps() -> Value {
    let call = |name: &str, arguments: Value| json!({"do": "call", "name": format!("peer_{name}"), "arguments": arguments});
    json!([
        {"do": "list"},
        call("echo", json!({"text": "Grüße"})),
        call("sum", json!({"a": 2, "b": 3})),
        call("fail", json!({})),
        call("nothing", json!({})),
        call("sum", json!({"a": "two", "b": 3})),
        call("slow", json!({"to": 3})),
        call("ask", json!({})),
        call("ask", json!({})),
        call("grow", json!({})),
        {"do": "changed"},
        {"do": "list"},
        {"do": "call", "name": "peer_slow", "arguments": {"to": 5000}, "cancel_after": 2},
        {"do": "wait"},
        call("grown", json!({})),
    ])
}

/// Runs all steps; `job` says how the gateway is reached.
fn does_everything(peer: Peer, real: &Path, mut job: Value, file: &Path) {
    job["mode"] = json!(peer.mode);
    job["elicit"] =
        json!([{"action": "accept", "content": {"name": "Ada"}}, {"action": "decline"}]);
    job["steps"] = steps();
    let mut script = peer.client.start(real, &job);
    assert_eq!(script.event("connected")["revision"], peer.revision);
    lists(peer, &script.event("tools"));
    calls(peer, &mut script);
    fails(peer, &mut script);
    let counted = script.event("result");
    assert_eq!(counted["text"], "counted to 3", "{counted}");
    let progress: Vec<f64> = script
        .seen("progress")
        .iter()
        .filter_map(|p| p["progress"].as_f64())
        .collect();
    // The last one may be lost in a client that reads it together with the answer.
    assert!(
        progress.starts_with(&[1.0]) && [1.0, 2.0, 3.0].starts_with(&progress),
        "{progress:?}"
    );
    is_asked(peer, &mut script);
    grows(&mut script);
    script.event("cancelled");
    script.event("waiting");
    until("the server hears of the cancel", SOON, || {
        notes(file).contains(&"cancelled".to_owned()).then_some(())
    });
    script.go_on();
    assert_eq!(
        script.event("result")["text"],
        "here I am",
        "the stream still works"
    );
    script.event("done");
}

fn lists(peer: Peer, tools: &Value) {
    let names = [
        "peer_echo",
        "peer_sum",
        "peer_fail",
        "peer_slow",
        "peer_grow",
        "peer_ask",
    ];
    assert_eq!(tools["names"], json!(names));
    let sum = &tools["tools"][1];
    assert_eq!(sum["description"], "Adds two numbers.");
    assert_eq!(sum["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(
        sum["inputSchema"]["properties"]["a"],
        json!({"type": "number"})
    );
    let is_there = |key: &str| !sum[key].is_null();
    assert_eq!(is_there("annotations"), peer.since("2025-03-26"), "{sum}");
    assert_eq!(is_there("outputSchema"), peer.since("2025-06-18"), "{sum}");
}

fn calls(peer: Peer, script: &mut Script) {
    assert_eq!(script.event("result")["text"], "Grüße");
    let sum = script.event("result");
    assert_eq!(sum["text"], r#"{"sum":5}"#, "{sum}");
    let structured = if peer.since("2025-06-18") {
        json!({"sum": 5})
    } else {
        Value::Null
    };
    assert_eq!(sum["structured"], structured, "{sum}");
}

fn fails(peer: Peer, script: &mut Script) {
    let failed = script.event("result");
    assert_eq!(
        (&failed["is_error"], &failed["text"]),
        (&json!(true), &json!("the printer is on fire"))
    );
    let unknown = script.event_or_error("result");
    assert_eq!(
        (&unknown["event"], &unknown["code"]),
        (&json!("error"), &json!(-32602)),
        "{unknown}"
    );
    let bad = script.event_or_error("result");
    let expected = if peer.since("2025-11-25") {
        "result"
    } else {
        "error"
    };
    assert_eq!(bad["event"], expected, "{bad}");
    assert!(
        bad.to_string().contains("two") || bad.to_string().contains("/a"),
        "it says where: {bad}"
    );
}

fn is_asked(peer: Peer, script: &mut Script) {
    if !peer.since("2025-06-18") {
        for _ in 0..2 {
            let refused = script.event_or_error("result");
            assert!(refused.to_string().contains("declare"), "{refused}");
        }
        return;
    }
    let asked = script.event("asked");
    assert_eq!(
        (&asked["message"], &asked["fields"]),
        (&json!("[peer] What is your name?"), &json!(["name"]))
    );
    assert_eq!(script.event("result")["text"], "hello, Ada");
    script.event("asked");
    assert_eq!(script.event("result")["text"], "you said decline");
}

fn grows(script: &mut Script) {
    assert_eq!(script.event("result")["text"], "grown");
    script.event("changed");
    let names = script.event("tools")["names"].clone();
    assert!(
        names.as_array().unwrap().contains(&json!("peer_grown")),
        "{names}"
    );
}

pub(super) fn over_http(peer: Peer) {
    over(peer, "");
}

/// The transport of 2024-11-05 has an address of its own.
fn over_sse(peer: Peer) {
    let peer = Peer {
        mode: "sse",
        ..peer
    };
    over(peer, "sse");
}

fn over(peer: Peer, path: &str) {
    let Some(real) = real() else { return };
    let folder = TempDir::new("revision");
    let file = folder.file("notes");
    let gate = Setup::config(server(&real, "ts2.mjs", "", &file)).start();
    let address = match path {
        "" => gate.endpoint.clone(),
        path => gate.endpoint.replace("/mcp", &format!("/{path}")),
    };
    does_everything(peer, &real, json!({"http": address}), &file);
    gate.stop();
}

pub(super) fn over_stdio(peer: Peer) {
    let Some(real) = real() else { return };
    let folder = TempDir::new("revision");
    let (file, data) = (folder.file("notes"), folder.file("state"));
    let config = folder.write("toolgate.toml", &server(&real, "ts2.mjs", "", &file));
    let program = env!("CARGO_BIN_EXE_toolgate");
    let command = json!([
        program, "serve", "--stdio", "--config", config, "--data", data
    ]);
    does_everything(peer, &real, json!({"stdio": command}), &file);
}

#[test]
fn typescript_of_2024_11_05_over_stdio() {
    over_stdio(TS_2024_11);
}

#[test]
fn typescript_of_2024_11_05_over_http_with_sse() {
    over_sse(TS_2024_11);
}

#[test]
fn typescript_of_2025_03_26_over_stdio() {
    over_stdio(TS_2025_03);
}

#[test]
fn typescript_of_2025_03_26_over_http() {
    over_http(TS_2025_03);
}

#[test]
fn typescript_of_2025_06_18_over_stdio() {
    over_stdio(TS_2025_06);
}

#[test]
fn typescript_of_2025_06_18_over_http() {
    over_http(TS_2025_06);
}

#[test]
fn typescript_of_2025_11_25_over_stdio() {
    over_stdio(TS_2025_11);
}

#[test]
fn typescript_of_2025_11_25_over_http() {
    over_http(TS_2025_11);
}

#[test]
fn typescript_2_of_2025_11_25_over_stdio() {
    over_stdio(TS2_2025_11);
}

#[test]
fn typescript_2_of_2025_11_25_over_http() {
    over_http(TS2_2025_11);
}

#[test]
fn typescript_of_2026_07_28_over_stdio() {
    over_stdio(TS_2026_07);
}

#[test]
fn typescript_of_2026_07_28_over_http() {
    over_http(TS_2026_07);
}

#[test]
fn python_1_of_2025_11_25_over_stdio() {
    over_stdio(PY1_2025_11);
}

#[test]
fn python_1_of_2025_11_25_over_http() {
    over_http(PY1_2025_11);
}

#[test]
fn python_of_2025_11_25_over_stdio() {
    over_stdio(PY_2025_11);
}

#[test]
fn python_of_2025_11_25_over_http() {
    over_http(PY_2025_11);
}

#[test]
fn python_of_2026_07_28_over_stdio() {
    over_stdio(PY_2026_07);
}

#[test]
fn python_of_2026_07_28_over_http() {
    over_http(PY_2026_07);
}
