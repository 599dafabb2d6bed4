//! The same call waits for a person in every revision: nobody gets around it by speaking an older one.

use super::clients::{EVERY, Peer};
use crate::help::{Gate, Setup, real};
use serde_json::json;
use std::path::Path;

const REASON: &str = "not on a Saturday";

fn waits_for_a_person(peer: Peer, real: &Path, gate: &Gate) {
    let note = |name: &str| json!({"do": "call", "name": "demo_note", "arguments": {"name": name, "text": "b"}});
    let mut job = json!({"http": gate.endpoint, "mode": peer.mode, "elicit": null});
    if peer.mode == "sse" {
        job["http"] = json!(gate.endpoint.replace("/mcp", "/sse"));
    }
    job["steps"] = json!([note("first"), note("second")]);
    let mut script = peer.client.start(real, &job);
    assert_eq!(script.event("connected")["revision"], peer.revision);
    gate.cli(&["approve", &gate.pending()]);
    let written = script.event("result");
    assert_eq!(written["is_error"], false, "{written}");
    assert_eq!(written["text"], "the note \"first\" is written");
    gate.cli(&["deny", &gate.pending(), "-m", REASON]);
    let refused = script.event("result");
    assert_eq!(refused["is_error"], true, "{refused}");
    let text = refused["text"].as_str().unwrap();
    assert!(text.contains(REASON), "the model reads why: {refused}");
    script.event("done");
}

#[test]
fn a_write_waits_for_a_person_in_every_revision() {
    let Some(real) = real() else { return };
    let gate = Setup::fast_demo("").start();
    for peer in EVERY {
        waits_for_a_person(peer, &real, &gate);
    }
    let records = gate.audit();
    let count = |event: &str| records.iter().filter(|r| r["ev"] == event).count();
    assert_eq!(
        count("call.begin"),
        EVERY.len(),
        "only what was allowed: {records:#?}"
    );
}
