//! A cancelled call ends the work in the server behind; a lost connection of 2025-11-25 does not.
//!
//! That each real client's own cancel arrives is shown in `clients`; here are the other ways to end a call.

use crate::clients::{stops, ticks};
use crate::help::{Client, Gate, LONG, SOON, Script, Setup, TempDir, browser, real, shot, until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

struct Scene {
    gate: Gate,
    trace: PathBuf,
    _folder: TempDir,
}

fn scene() -> Scene {
    let folder = TempDir::new("trace");
    let trace = folder.file("trace");
    let gate = Setup::traced_demo(&trace).start();
    Scene {
        gate,
        trace,
        _folder: folder,
    }
}

/// A long count over HTTP, with more in the step.
fn counting(real: &Path, scene: &Scene, client: Client, mode: &str, more: Value) -> Script {
    let mut step = json!({"do": "call", "name": "demo_slow_count", "arguments": {"to": 5000, "delay_ms": 50}, "timeout_ms": 120_000});
    for (key, value) in more.as_object().unwrap() {
        step[key] = value.clone();
    }
    let job = json!({"http": scene.gate.endpoint, "mode": mode, "elicit": null, "steps": [step, {"do": "wait"}]});
    let mut script = client.start(real, &job);
    script.event("progress");
    script
}

/// The record of the end of the call, as soon as it is there.
fn ended(gate: &Gate) -> Value {
    until("the end of the call is recorded", SOON, || {
        let records = gate.audit();
        let mut ends = records.into_iter().filter(|r| r["ev"] == "call.end");
        ends.find(|r| r["name"] == "demo_slow_count")
    })
}

/// Returns the recorded end of the call.
fn end_of(gate: &Gate) -> String {
    ended(gate)["out"].as_str().unwrap().to_owned()
}

/// The id of the running call, from the record.
fn running(gate: &Gate) -> String {
    until("the begin of the call is recorded", SOON, || {
        let records = gate.audit();
        let begin = records.iter().find(|r| r["ev"] == "call.begin")?;
        Some(begin["call"].as_str()?.to_owned())
    })
}

#[test]
fn toolgate_stop_ends_a_call_of_either_era() {
    let Some(real) = real() else { return };
    for (client, mode) in [
        (Client::TypeScript1, "legacy"),
        (Client::TypeScript2, "modern"),
    ] {
        let scene = scene();
        let mut script = counting(&real, &scene, client, mode, json!({}));
        scene.gate.cli(&["stop", &running(&scene.gate)]);
        stops(&scene.trace);
        script.event_or_error("result");
        let end = ended(&scene.gate);
        assert!(
            end["out"].as_str().unwrap().starts_with("cancelled"),
            "{client:?}"
        );
        assert_eq!(end["cancel"], "operator", "{client:?}");
    }
}

#[test]
fn the_stop_button_of_the_console_ends_a_call() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let scene = scene();
    let mut script = counting(&real, &scene, Client::TypeScript2, "modern", json!({}));
    let steps = json!([
        {"do": "call", "state": "running"},
        {"do": "shot", "path": shot("running.png")},
        {"do": "stop"},
    ]);
    let mut person = Script::browser(&real, &scene.gate.console(), steps);
    person.event("done");
    stops(&scene.trace);
    script.event_or_error("result");
}

#[test]
fn a_client_of_2026_that_vanishes_cancels_its_call() {
    let Some(real) = real() else { return };
    let scene = scene();
    counting(
        &real,
        &scene,
        Client::TypeScript2,
        "modern",
        json!({"leave_after": 3}),
    );
    stops(&scene.trace);
    let end = ended(&scene.gate);
    assert!(end["out"].as_str().unwrap().starts_with("cancelled"));
    assert_eq!(end["cancel"], "link");
}

#[test]
fn a_lost_connection_of_2025_leaves_the_call_running() {
    let Some(real) = real() else { return };
    let scene = scene();
    let script = counting(
        &real,
        &scene,
        Client::TypeScript1,
        "legacy",
        json!({"arguments": {"to": 100, "delay_ms": 50}}),
    );
    script.kill();
    until(
        "the tool counts to its end without a listener",
        LONG,
        || (ticks(&scene.trace) == 100).then_some(()),
    );
    assert_eq!(end_of(&scene.gate), "ok");
}

#[test]
fn the_end_of_a_2025_session_ends_its_calls() {
    let scene = scene();
    let session = crate::help::Session::open(scene.gate.port);
    let headers = session.headers();
    let asking = std::thread::spawn(move || {
        session.call(
            &json!(1),
            "demo_slow_count",
            json!({"to": 5000, "delay_ms": 50}),
        )
    });
    until("the tool works", SOON, || {
        (ticks(&scene.trace) > 2).then_some(())
    });
    let response = crate::help::send(scene.gate.port, "DELETE", "/mcp", &headers, b"");
    assert!((200..300).contains(&response.status), "{response:?}");
    stops(&scene.trace);
    drop(asking);
}

/// The record, the command line and the console say who cancelled a call and why, without what steers a screen.
///
/// Holds: CANC-11
#[test]
fn a_cancel_is_shown_with_its_reason() {
    let scene = scene();
    let session = crate::help::Session::open(scene.gate.port);
    let headers = session.headers();
    let asking = std::thread::spawn(move || {
        session.call(
            &json!(1),
            "demo_slow_count",
            json!({"to": 5000, "delay_ms": 50}),
        )
    });
    until("the tool works", SOON, || {
        (ticks(&scene.trace) > 2).then_some(())
    });
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1, "reason": "the <b>user</b> left\u{202e}"}});
    let body = cancel.to_string();
    let response = crate::help::send(scene.gate.port, "POST", "/mcp", &headers, body.as_bytes());
    assert_eq!(response.status, 202, "{response:?}");
    stops(&scene.trace);
    drop(asking);
    let end = ended(&scene.gate);
    assert_eq!(end["cancel"], "caller", "{end}");
    assert_eq!(end["cancel_reason"], "the <b>user</b> left", "{end}");
    let call = &scene.gate.state()["calls"][0];
    assert_eq!(
        call["cancel"],
        json!({"by": "caller", "reason": "the <b>user</b> left"})
    );
    let told = scene.gate.cli(&["audit", "tail"]);
    assert!(told.contains("by caller: the <b>user</b> left"), "{told}");
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let steps = json!([{"do": "call", "state": "done"}]);
    let mut person = Script::browser(&real, &scene.gate.console(), steps);
    let row = person.event("call");
    let shown = row["text"].as_str().unwrap();
    let expected = "cancelled by its caller: the <b>user</b> left";
    assert!(shown.contains(expected), "{shown}");
}
