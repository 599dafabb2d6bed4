//! Tasks after the end of their gateway: politely, and by `kill -9`.

use super::{ask, begin, look, until_is};
use crate::help::{Gate, SOON, Session, Setup, TempDir, answer_of, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// A request of a client of 2025-11-25.
#[track_caller]
pub(super) fn of_2025(session: &Session, method: &str, params: Value) -> Value {
    let id = json!(5);
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    answer_of(&session.post(&body), &id)
}

pub(super) fn begin_2025(session: &Session, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "task": {}});
    let created = of_2025(session, "tools/call", params);
    let id = created["result"]["task"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{created}")).to_owned()
}

/// Every call that began has ended once, be it as unknown.
fn every_begin_is_closed(gate: &Gate) {
    let mut open: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for record in gate.audit() {
        let call = record["call"].as_str().unwrap_or_default().to_owned();
        match record["ev"].as_str() {
            Some("call.begin") => open.entry(call).or_default().0 += 1,
            Some("call.end" | "call.unknown") => {
                // What never began is refused: it has an end only.
                open.entry(call).or_default().1 += 1;
            }
            _ => {}
        }
    }
    let began: Vec<_> = open.iter().filter(|(_, (begins, _))| *begins > 0).collect();
    assert!(began.len() >= 3, "{open:?}");
    for (call, counts) in began {
        assert_eq!(*counts, (1, 1), "{call}");
    }
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
}

fn long() -> Value {
    json!({"to": 10_000, "delay_ms": 1_000})
}

fn lives_on(end: impl FnOnce(Gate) -> Arc<TempDir>) {
    let gate = Setup::demo().start();
    let session = Session::open(gate.port);
    let done = begin(
        &gate,
        "demo_slow_count",
        json!({"to": 1, "delay_ms": 2_000}),
    );
    let old = begin_2025(&session, "demo_add", json!({"a": 1, "b": 2}));
    let lost = begin(&gate, "demo_slow_count", long());
    let old_lost = begin_2025(&session, "demo_slow_count", long());
    let held = begin(&gate, "demo_note", json!({"name": "n", "text": "x"}));
    let approval = gate.pending();
    let before = until_is(&gate, &done, "completed");
    let old_before = of_2025(&session, "tasks/result", json!({"taskId": old}));
    let data = end(gate);
    let gate = Setup::demo().start_in(data);
    assert_eq!(look(&gate, &done), before, "to the byte");
    let session = Session::open(gate.port);
    let old_after = of_2025(&session, "tasks/result", json!({"taskId": old}));
    assert_eq!(old_after, old_before);
    for id in [&lost, &held] {
        let task = look(&gate, id);
        assert_eq!(task["status"], "failed", "{task}");
        let why = task["error"]["message"].as_str().unwrap();
        assert!(why.contains("this server stopped"), "{why}");
    }
    let task = of_2025(&session, "tasks/get", json!({"taskId": old_lost}));
    assert_eq!(task["result"]["status"], "failed", "{task}");
    let error = of_2025(&session, "tasks/result", json!({"taskId": old_lost}));
    assert_eq!(error["error"]["code"], -32603, "{error}");
    // Whose revision another one is has another handle.
    let crossed = ask(&gate, "tasks/get", &old, json!({"taskId": old}));
    assert_eq!(crossed, Value::Null);
    let list = gate.cli(&["tasks", "list"]);
    assert_eq!(list.matches("failed").count(), 3, "{list}");
    assert_eq!(list.matches("completed").count(), 2, "{list}");
    // The approval outlives its task: the same call uses it.
    gate.cli(&["approve", &approval]);
    let again = ask(
        &gate,
        "tools/call",
        "demo_note",
        json!({"name": "demo_note", "arguments": {"name": "n", "text": "x"}}),
    );
    assert_eq!(again["resultType"], "complete", "{again}");
    assert_ne!(again["isError"], true, "{again}");
    every_begin_is_closed(&gate);
    gate.stop();
}

#[test]
fn a_kill_loses_no_result_and_every_task_has_an_end() {
    lives_on(Gate::kill);
}

#[test]
fn a_polite_end_keeps_them_as_well() {
    lives_on(Gate::stop);
}

/// Lives of the gateway, and tasks that each of them begins.
const LIVES: u64 = 5;
const TASKS: u64 = 10;

/// The kill falls while tasks end: what a client has seen stays as it is, and what it has an id of has an end.
#[test]
fn kills_while_tasks_end_change_nothing_that_was_seen() {
    let data = Arc::new(TempDir::new("killed"));
    let mut seen: BTreeMap<String, Value> = BTreeMap::new();
    let (mut ended, mut failed) = (0, 0);
    for _ in 0..LIVES {
        let gate = Setup::fast_demo("").start_in(data.clone());
        let ids: Vec<String> = thread::scope(|scope| {
            // Each ends a little after the one before.
            let gate = &gate;
            let times = (0..TASKS).map(|n| json!({"to": 1, "delay_ms": 2_000 + 3 * n}));
            let begun = times.map(|time| scope.spawn(|| begin(gate, "demo_slow_count", time)));
            let begun: Vec<_> = begun.collect();
            begun.into_iter().map(|one| one.join().unwrap()).collect()
        });
        until("some have ended", SOON, || {
            for id in &ids {
                let task = look(&gate, id);
                if task["status"] == "completed" {
                    seen.insert(id.clone(), task);
                }
            }
            (ids.iter().filter(|id| seen.contains_key(*id)).count() >= 3).then_some(())
        });
        gate.kill();
        let gate = Setup::fast_demo("").start_in(data.clone());
        for (id, task) in &seen {
            assert_eq!(look(&gate, id), *task);
        }
        for id in ids.iter().filter(|id| !seen.contains_key(*id)) {
            match look(&gate, id)["status"].as_str() {
                Some("completed") => ended += 1,
                Some("failed") => failed += 1,
                other => panic!("{id} is {other:?}"),
            }
        }
        gate.kill();
    }
    println!(
        "{} seen and the same, {ended} ended unseen, {failed} failed",
        seen.len()
    );
    let gate = Setup::fast_demo("").start_in(data);
    every_begin_is_closed(&gate);
    gate.stop();
}

/// Another caller is told what he is told of any id that is none.
#[test]
fn after_a_restart_a_task_is_still_good_for_its_caller_only() {
    let gate = Setup::fast_demo("").start();
    let id = begin(
        &gate,
        "demo_slow_count",
        json!({"to": 1, "delay_ms": 2_000}),
    );
    until_is(&gate, &id, "completed");
    let data = gate.kill();
    let gate = Setup::fast_demo("")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
        .env("TOOLGATE_TEST_TOKEN", TOKEN)
        .start_in(data.clone());
    let with_token = |id: &str| {
        let body = super::body("tasks/get", json!({"taskId": id}));
        let mut lines = crate::help::Modern::headers("tasks/get", Some(id));
        lines.push(format!("Authorization: Bearer {TOKEN}"));
        let body = body.to_string();
        let answer = crate::help::send(gate.port, "POST", "/mcp", &lines, body.as_bytes());
        answer_of(&answer, &json!(7))
    };
    let unknown = with_token("abcdefghijklmnopqrstuvwxyz234567");
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(with_token(&id), unknown);
    gate.stop();
    let gate = Setup::fast_demo("").start_in(data);
    until_is(&gate, &id, "completed");
    gate.stop();
}

const TOKEN: &str = "a-token-of-many-letters";
