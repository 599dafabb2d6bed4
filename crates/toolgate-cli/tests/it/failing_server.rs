//! A server that keeps failing: time limits of single tools, and the circuit breaker.

use crate::help::{Gate, Modern, SOON, Setup, answer_of, until};
use serde_json::{Value, json};
use std::time::Instant;

/// The demo server, whose slow tool has a second, and a breaker that opens after two failures.
fn gate(breaker_seconds: u32) -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    Setup::config(format!(
        "[limits]\nbreaker_failures = 2\nbreaker_seconds = {breaker_seconds}\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\
         [server.demo.tools.slow_count]\ncall_seconds = 1\n"
    ))
    .start()
}

fn call(gate: &Gate, tool: &str, arguments: Value) -> String {
    let id = json!(1);
    let answer = answer_of(&Modern::call(gate.port, &id, tool, arguments), &id);
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// A call that is silent for longer than its tool may be.
fn too_slow(gate: &Gate) -> String {
    call(
        gate,
        "demo_slow_count",
        json!({"to": 1, "delay_ms": 50_000}),
    )
}

fn add(gate: &Gate) -> String {
    call(gate, "demo_add", json!({"a": 1, "b": 2}))
}

#[test]
fn a_tool_has_a_time_limit_of_its_own() {
    let gate = gate(3600);
    let since = Instant::now();
    let text = too_slow(&gate);
    assert!(text.contains("timed out after 1 s"), "{text}");
    assert!(since.elapsed() < SOON, "far below the 60 s of other tools");
    assert!(!add(&gate).contains("timed out"));
    gate.stop();
}

#[test]
fn a_server_that_keeps_failing_is_paused_and_tried_again() {
    let gate = gate(1);
    assert!(too_slow(&gate).contains("timed out") && too_slow(&gate).contains("timed out"));
    let refused = add(&gate);
    assert!(
        refused.contains("calls to the server demo are paused after 2 consecutive failed calls"),
        "{refused}"
    );
    until("the pause ends and a call passes", SOON, || {
        add(&gate).contains('3').then_some(())
    });
    assert!(
        too_slow(&gate).contains("timed out"),
        "one failure does not open it again"
    );
    assert!(add(&gate).contains('3'));
    gate.stop();
}

#[test]
fn a_paused_server_asks_no_person() {
    let gate = gate(3600);
    assert!(too_slow(&gate).contains("timed out") && too_slow(&gate).contains("timed out"));
    let refused = call(&gate, "demo_delete_note", json!({"name": "shopping"}));
    assert!(refused.contains("are paused"), "{refused}");
    assert!(gate.inbox().is_empty());
    gate.stop();
}
