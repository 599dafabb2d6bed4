//! Calls that go on after their answer, through the whole program.

mod approval;
mod page;
mod restart;
mod taken_up;

use crate::help::{Gate, Modern, SOON, Setup, answer_of, until};
use serde_json::{Value, json};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of a client that knows tasks.
pub(crate) fn body(method: &str, params: Value) -> Value {
    let mut body = Modern::body(&json!(7), method, params);
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    body["params"]["_meta"][CAPABILITIES] = knows;
    body
}

/// Sends one; its result.
#[track_caller]
pub(crate) fn ask(gate: &Gate, method: &str, name: &str, params: Value) -> Value {
    Modern::ask(gate.port, Some(name), &body(method, params))["result"].take()
}

/// Begins a task; its id.
#[track_caller]
pub(crate) fn begin(gate: &Gate, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    let created = ask(gate, "tools/call", tool, params);
    assert_eq!(created["resultType"], "task", "{created}");
    created["taskId"].as_str().unwrap().to_owned()
}

#[track_caller]
pub(crate) fn look(gate: &Gate, id: &str) -> Value {
    ask(gate, "tasks/get", id, json!({"taskId": id}))
}

#[track_caller]
pub(crate) fn until_is(gate: &Gate, id: &str, status: &str) -> Value {
    until(status, SOON, || {
        Some(look(gate, id)).filter(|task| task["status"] == status)
    })
}

/// Whoever has to approve may take longer than a client waits: the client has a task meanwhile.
#[test]
fn a_call_that_waits_for_a_person_is_a_task() {
    let gate = Setup::demo().start();
    let id = begin(&gate, "demo_note", json!({"name": "n", "text": "x"}));
    let approval = gate.pending();
    let waits = until("it says why it waits", SOON, || {
        let task = look(&gate, &id);
        let said = task["statusMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        said.contains(&approval).then_some(task)
    });
    assert_eq!(waits["status"], "working", "{waits}");
    gate.cli(&["approve", &approval]);
    let task = until_is(&gate, &id, "completed");
    assert_ne!(task["result"]["isError"], true, "{task}");
    let other = begin(&gate, "demo_note", json!({"name": "n", "text": "y"}));
    let approval = gate.pending();
    gate.cli(&["deny", &approval, "-m", "not today"]);
    let task = until_is(&gate, &other, "completed");
    assert_eq!(task["result"]["isError"], true, "{task}");
    assert!(task["result"].to_string().contains("not today"), "{task}");
    gate.stop();
}

/// Holds: TASK4-12
#[test]
fn the_operator_sees_and_ends_tasks() {
    let gate = Setup::demo().start();
    let slow = || {
        begin(
            &gate,
            "demo_slow_count",
            json!({"to": 10_000, "delay_ms": 1_000}),
        )
    };
    let (first, second) = (slow(), slow());
    let list = || gate.cli(&["tasks", "list"]);
    let lines = list();
    assert_eq!(lines.matches("working").count(), 2, "{lines}");
    assert!(
        lines.contains("demo.slow_count") && !lines.contains(&first),
        "{lines}"
    );
    let call = lines.split_whitespace().next().unwrap().to_owned();
    gate.cli(&["tasks", "stop", &call]);
    until_is(&gate, &first, "cancelled");
    assert_eq!(look(&gate, &second)["status"], "working");
    let again = gate.run(&["tasks", "stop", &call]);
    assert!(!again.status.success());
    ask(&gate, "tasks/cancel", &second, json!({"taskId": second}));
    until_is(&gate, &second, "cancelled");
    // What was ended is in the record as what it was.
    until("both ends are recorded", SOON, || {
        let ends = gate.audit().into_iter().filter(|r| r["ev"] == "call.end");
        (ends.count() == 2).then_some(())
    });
    gate.stop();
}

/// Holds: XTASK-01
#[test]
fn a_client_that_knows_none_waits_for_a_held_call() {
    let gate = Setup::demo().start();
    let call = std::thread::spawn({
        let port = gate.port;
        move || {
            let arguments = json!({"name": "n", "text": "x"});
            Modern::call(port, &json!(1), "demo_note", arguments)
        }
    });
    let approval = gate.pending();
    assert_eq!(gate.cli(&["tasks", "list"]), "");
    gate.cli(&["approve", &approval]);
    let result = answer_of(&call.join().unwrap(), &json!(1))["result"].take();
    assert_eq!(result["resultType"], "complete", "{result}");
    gate.stop();
}
