//! A person sees tasks at the console and stops one, in a real browser, on a wide screen and on a narrow one.

use super::{ask, begin, look, until_is};
use crate::help::{Script, Setup, browser, real, shot};
use serde_json::json;

#[test]
fn a_person_sees_tasks_and_stops_one_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let held = begin(&gate, "demo_note", json!({"name": "n", "text": "x"}));
    let done = begin(&gate, "demo_slow_count", json!({"to": 1, "delay_ms": 900}));
    until_is(&gate, &done, "completed");
    let slow = json!({"to": 10_000, "delay_ms": 1_000});
    let steps = json!([
        {"do": "task", "status": "completed"},
        {"do": "task", "status": "working"},
        {"do": "wait"},
        {"do": "shot", "path": shot("tasks.png")},
        {"do": "narrow", "width": 375},
        {"do": "shot", "path": shot("tasks-narrow.png")},
        {"do": "stop_task"},
        {"do": "wait"},
        // The other one is told of by the gateway, without a reload.
        {"do": "task", "status": "working"},
        {"do": "stop_task"},
        {"do": "keys", "keys": ["g", "i", "g", "x"]},
        {"do": "task", "status": "cancelled"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let shown = page.event("task")["text"].as_str().unwrap().to_owned();
    assert!(
        shown.contains("demo.slow_count") && shown.contains("anonymous@http"),
        "{shown}"
    );
    let shown = page.event("task")["text"].as_str().unwrap().to_owned();
    assert!(
        shown.contains("demo.note") && shown.contains("waiting for a person"),
        "{shown}"
    );
    page.event("waiting");
    page.go_on();
    assert_eq!(page.event("narrow")["wide"], 375);
    page.event("stop_task");
    page.event("waiting");
    assert_eq!(look(&gate, &held)["status"], "cancelled");
    assert_eq!(gate.inbox(), Vec::<String>::new(), "and it is denied");
    let second = begin(&gate, "demo_slow_count", slow);
    page.go_on();
    page.event("task");
    page.event("stop_task");
    assert_eq!(look(&gate, &second)["status"], "cancelled");
    page.event("task");
    page.event("done");
    page.assert_no_page_error();
    let after = ask(&gate, "tasks/get", &done, json!({"taskId": done}));
    assert_eq!(after["status"], "completed");
    gate.stop();
}
