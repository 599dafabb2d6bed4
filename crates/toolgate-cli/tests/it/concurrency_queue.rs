//! Queue of the concurrency limits: queued calls, and calls beyond the queue.

use crate::help::{Modern, SOON, Setup, answer_of, until};
use serde_json::{Value, json};
use std::thread;

fn count(port: u16, id: &'static str, to: u32) -> thread::JoinHandle<Value> {
    thread::spawn(move || {
        let arguments = json!({"to": to, "delay_ms": 100});
        let response = Modern::call(port, &json!(id), "demo_slow_count", arguments);
        answer_of(&response, &json!(id))["result"].clone()
    })
}

fn config(wait: u32) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[limits]\nwaiting_per_caller = 1\nwaiting_seconds = {wait}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n\
         trust_annotations = true\ncalls = 1\n"
    )
}

#[test]
fn a_server_with_one_place_serves_one_call_after_the_other() {
    let gate = Setup::config(config(60)).start();
    let first = count(gate.port, "first", 10);
    until("it runs", SOON, || {
        gate.cli(&["calls"]).contains("running").then_some(())
    });
    let second = count(gate.port, "second", 1);
    for result in [first, second].map(|call| call.join().unwrap()) {
        assert!(result.is_object() && result["isError"] != true, "{result}");
    }
    gate.stop();
}

/// One over the places waits; one over the queue is refused at once; both as tool errors that say what is full.
#[test]
fn what_finds_no_room_is_told_what_is_full() {
    let gate = Setup::config(config(1)).start();
    let first = count(gate.port, "first", 60);
    until("it runs", SOON, || {
        gate.cli(&["calls"]).contains("running").then_some(())
    });
    let (second, third) = (count(gate.port, "second", 1), count(gate.port, "third", 1));
    let mut told: Vec<String> = [second, third]
        .map(|call| call.join().unwrap())
        .iter()
        .map(|result| {
            assert_eq!(result["isError"], true, "{result}");
            result["content"][0]["text"].as_str().unwrap().to_owned()
        })
        .collect();
    told.sort();
    let full = "too many concurrent calls: 1 call to the server demo is already running";
    let late =
        format!("{full}, and no slot became free within 1 s; try again when one has completed");
    assert_eq!(
        told,
        [late, format!("{full}; try again when one has completed")]
    );
    assert!(first.join().unwrap()["isError"] != true);
    gate.stop();
}
