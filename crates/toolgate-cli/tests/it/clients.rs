//! Each real client lists, calls, sees progress, cancels and is asked, over each transport.

use crate::help::{Client, Script, Setup, TempDir, real, traced_config, until};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The name of the user, as the client's user would give it.
const ADA: &str = "Ada Lovelace";

fn steps() -> Value {
    json!([
        {"do": "list"},
        {"do": "call", "name": "demo_add", "arguments": {"a": 2, "b": 3}},
        {"do": "call", "name": "demo_slow_count", "arguments": {"to": 5, "delay_ms": 50}},
        {"do": "call", "name": "demo_picture"},
        {"do": "call", "name": "demo_fail"},
        {"do": "call", "name": "demo_add", "arguments": {"a": "two", "b": 3}},
        {"do": "call", "name": "demo_ask_name"},
        {"do": "call", "name": "demo_slow_count", "arguments": {"to": 5000, "delay_ms": 50}, "cancel_after": 3},
        {"do": "wait"},
        {"do": "list"},
    ])
}

fn everything(client: Client, real: &Path, mut job: Value, trace: &Path, revision: Option<&str>) {
    job["elicit"] = json!([{"action": "accept", "content": {"name": ADA}}]);
    job["steps"] = steps();
    let mut script = client.start(real, &job);
    let connected = script.event("connected");
    if let Some(revision) = revision {
        assert_eq!(connected["revision"], revision, "{connected}");
    }
    lists(&mut script);
    let added = script.event("result");
    assert_eq!(added["structured"], json!({"sum": 5}), "{added}");
    let counted = script.event("result");
    assert!(
        counted["text"].as_str().unwrap().contains("counted to 5"),
        "{counted}"
    );
    // The TypeScript SDK drops progress that it reads in one piece with the reply, as on a busy machine over a pipe.
    let seen = script.seen("progress");
    let steps: Vec<f64> = seen.iter().filter_map(|p| p["progress"].as_f64()).collect();
    assert!(!steps.is_empty() && steps.len() == seen.len(), "{seen:?}");
    assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert!(
        steps.iter().all(|step| (1.0..=5.0).contains(step)),
        "{seen:?}"
    );
    assert_eq!(script.event("result")["kinds"], json!(["image"]));
    assert_eq!(
        script.event("result")["is_error"],
        true,
        "the tool that fails"
    );
    let refused = script.event("result");
    assert_eq!(refused["is_error"], true, "{refused}");
    assert!(
        refused["text"].as_str().unwrap().contains('a'),
        "the path is named: {refused}"
    );
    let asked = script.event("asked");
    assert_eq!(asked["fields"], json!(["name"]), "{asked}");
    let greeted = script.event("result");
    assert!(greeted["text"].as_str().unwrap().contains(ADA), "{greeted}");
    script.event("cancelled");
    script.event("waiting");
    stops(trace);
    script.go_on();
    lists(&mut script);
    script.event("done");
}

fn lists(script: &mut Script) {
    let names = script.event("tools")["names"].clone();
    for name in [
        "demo_add",
        "demo_delete_note",
        "demo_slow_count",
        "demo_ask_name",
        "demo_picture",
        "demo_fail",
    ] {
        assert!(
            names.as_array().unwrap().contains(&json!(name)),
            "{name} in {names}"
        );
    }
}

/// The slow tool ends within a second of the cancel, on a busy machine within ten.
#[track_caller]
pub(crate) fn stops(trace: &Path) {
    // Steps of 50 ms: where none comes for a second and a half, nothing works any more.
    let quiet = Duration::from_millis(1500);
    let (mut last, mut since) = (ticks(trace), std::time::Instant::now());
    assert!(last > 0, "the tool has worked");
    until(
        "the cancelled work ends",
        Duration::from_secs(10) + quiet,
        || {
            let now = ticks(trace);
            if now != last {
                (last, since) = (now, std::time::Instant::now());
            }
            (since.elapsed() >= quiet).then_some(())
        },
    );
}

/// Returns the number of completed steps of the slow tool.
pub(crate) fn ticks(trace: &Path) -> usize {
    std::fs::read_to_string(trace).map_or(0, |text| text.lines().count())
}

fn over_http(client: Client, mode: &str, revision: Option<&str>) {
    let Some(real) = real() else { return };
    let folder = TempDir::new("trace");
    let trace = folder.file("trace");
    let gate = Setup::traced_demo(&trace).start();
    everything(
        client,
        &real,
        json!({"http": gate.endpoint, "mode": mode}),
        &trace,
        revision,
    );
    gate.stop();
}

fn over_sse(client: Client) {
    let Some(real) = real() else { return };
    let folder = TempDir::new("sse");
    let trace = folder.file("trace");
    let gate = Setup::traced_demo(&trace).start();
    let address = gate.endpoint.replace("/mcp", "/sse");
    everything(
        client,
        &real,
        json!({"http": address, "mode": "sse"}),
        &trace,
        None,
    );
    gate.stop();
}

fn over_stdio(client: Client, mode: &str, revision: Option<&str>) {
    let Some(real) = real() else { return };
    let folder = TempDir::new("stdio");
    let (trace, data) = (folder.file("trace"), folder.file("state"));
    let config = folder.write("toolgate.toml", &traced_config(&trace));
    let program = env!("CARGO_BIN_EXE_toolgate");
    let command = json!([
        program, "serve", "--stdio", "--config", config, "--data", data
    ]);
    let job = json!({"stdio": command, "mode": mode});
    everything(client, &real, job, &trace, revision);
}

#[test]
fn typescript_1_over_http() {
    over_http(Client::TypeScript1, "legacy", Some("2025-11-25"));
}

#[test]
fn typescript_1_over_stdio() {
    over_stdio(Client::TypeScript1, "legacy", None);
}

/// Holds: SSE1-02, SSE1-03, SSE1-04.
#[test]
fn typescript_1_over_http_with_sse() {
    over_sse(Client::TypeScript1);
}

/// Holds: SSE1-02, SSE1-03, SSE1-04.
#[test]
fn python_over_http_with_sse() {
    over_sse(Client::Python);
}

#[test]
fn typescript_2_over_http() {
    over_http(Client::TypeScript2, "modern", Some("2026-07-28"));
}

#[test]
fn typescript_2_over_stdio() {
    over_stdio(Client::TypeScript2, "modern", Some("2026-07-28"));
}

#[test]
fn python_over_http() {
    over_http(Client::Python, "modern", Some("2026-07-28"));
}

#[test]
fn python_over_stdio() {
    over_stdio(Client::Python, "modern", Some("2026-07-28"));
}

#[test]
fn python_with_a_session_over_http() {
    over_http(Client::Python, "legacy", Some("2025-11-25"));
}

#[test]
fn real_servers_of_both_registries_stand_behind_the_gate() {
    let Some(real) = real() else { return };
    let everything =
        real.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let time = real.join("venv/bin/mcp-server-time");
    let gate = Setup::config(format!(
        "[server.every]\ncommand = [\"node\", {everything:?}, \"stdio\"]\n\n[server.time]\ncommand = [{time:?}]\n\n\
         [[rule]]\ntools = [\"every.echo\", \"every.trigger-*\", \"time.*\"]\naction = \"allow\"\n"
    ))
    .start();
    let job = json!({"http": gate.endpoint, "elicit": null, "steps": [
        {"do": "call", "name": "every_echo", "arguments": {"message": "through the gate"}},
        {"do": "call", "name": "time_convert_time",
         "arguments": {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"}},
        {"do": "call", "name": "every_trigger-long-running-operation", "arguments": {"duration": 1, "steps": 4}},
        {"do": "call", "name": "every_echo", "arguments": {"text": "no such argument"}},
    ]});
    let mut script = Client::TypeScript2.start(&real, &job);
    let echoed = script.event("result");
    assert!(
        echoed["text"]
            .as_str()
            .unwrap()
            .contains("through the gate"),
        "{echoed}"
    );
    let time = script.event("result");
    assert!(time["text"].as_str().unwrap().contains("21:00"), "{time}");
    let slow = script.event("result");
    assert_eq!(slow["is_error"], false, "{slow}");
    assert_eq!(
        script.seen("progress").len(),
        4,
        "the progress of the server behind arrives: {:?}",
        script.seen("progress")
    );
    let refused = script.event("result");
    assert_eq!(refused["is_error"], true, "{refused}");
    assert!(
        refused["text"].as_str().unwrap().contains("message"),
        "{refused}"
    );
    script.event("done");
}

#[test]
fn one_server_stands_behind_the_gate_without_a_file() {
    let Some(real) = real() else { return };
    let gate = Setup::run(&[real.join("venv/bin/mcp-server-time")]).start();
    let step = json!({"do": "call", "name": "get_current_time", "arguments": {"timezone": "UTC"}});
    let job = json!({"http": gate.endpoint, "elicit": null, "steps": [{"do": "list"}, step]});
    let mut script = Client::Python.start(&real, &job);
    let names = script.event("tools")["names"].clone();
    for name in ["convert_time", "get_current_time"] {
        let found = names.as_array().unwrap().contains(&json!(name));
        assert!(found, "its own name, without a prefix: {names}");
    }
    // Nobody said that its annotations are to be believed.
    gate.cli(&["approve", &gate.pending()]);
    let now = script.event("result");
    assert_eq!(now["is_error"], false, "{now}");
    assert!(now["text"].as_str().unwrap().contains("UTC"), "{now}");
}

#[test]
fn a_client_that_can_ask_its_user_approves_a_write_but_never_a_deletion() {
    let Some(real) = real() else { return };
    for (client, mode) in [
        (Client::TypeScript1, "legacy"),
        (Client::TypeScript2, "modern"),
    ] {
        let gate = Setup::demo().start();
        let job = json!({"http": gate.endpoint, "mode": mode, "elicit": [{"action": "accept", "content": {"approve": true}}], "steps": [
            {"do": "call", "name": "demo_note", "arguments": {"name": "a", "text": "b"}},
            {"do": "call", "name": "demo_delete_note", "arguments": {"name": "a"}, "timeout_ms": 90_000},
        ]});
        let mut script = client.start(&real, &job);
        script.event("asked");
        let written = script.event("result");
        assert_eq!(written["is_error"], false, "{client:?}: {written}");
        let approval = gate.pending();
        assert_eq!(
            script.seen("asked").len(),
            1,
            "a deletion is not for the client's own user to approve"
        );
        gate.cli(&["approve", &approval]);
        let deleted = script.event("result");
        assert_eq!(deleted["is_error"], false, "{client:?}: {deleted}");
    }
}

/// Holds: ELIC-17
#[test]
fn nothing_hides_in_the_question_to_the_user_of_a_client() {
    let Some(real) = real() else { return };
    let gate = Setup::fast_demo("").start();
    let text = "pay \u{202e}eve\u{202c}\u{200b} now\u{e0041}";
    let job = json!({"http": gate.endpoint, "mode": "modern", "elicit": [{"action": "decline"}], "steps": [
        {"do": "call", "name": "demo_note", "arguments": {"name": "a", "text": text}},
    ]});
    let mut script = Client::TypeScript2.start(&real, &job);
    let asked = script.event("asked");
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains(" call demo.note?"), "{message}");
    assert!(
        message.contains(r"pay \u202eeve\u202c\u200b now\udb40\udc41"),
        "{message}"
    );
    let refused = script.event("result");
    assert_eq!(refused["is_error"], true, "{refused}");
    let records = gate.audit();
    assert!(
        !records.iter().any(|r| r["ev"] == "call.begin"),
        "{records:#?}"
    );
}

#[test]
fn a_user_who_says_no_in_the_client_stops_the_call() {
    let Some(real) = real() else { return };
    let gate = Setup::fast_demo("").start();
    let unticked = json!({"action": "accept", "content": {"approve": false}});
    for answer in [
        unticked,
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        for (client, mode) in [(Client::TypeScript1, "legacy"), (Client::Python, "modern")] {
            let job = json!({"http": gate.endpoint, "mode": mode, "elicit": [answer], "steps": [
                {"do": "call", "name": "demo_note", "arguments": {"name": "a", "text": "b"}},
            ]});
            let mut script = client.start(&real, &job);
            script.event("asked");
            let refused = script.event("result");
            assert_eq!(refused["is_error"], true, "{client:?} {answer}: {refused}");
        }
    }
    let records = gate.audit();
    assert!(
        !records.iter().any(|r| r["ev"] == "call.begin"),
        "{records:#?}"
    );
}
