//! The record of a gateway that runs: what its settings put into it, and how it is searched and exported.

use crate::help::{Gate, Modern, SOON, Setup, until};
use serde_json::{Value, json};

fn config(audit: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[audit]\n{audit}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

/// The arguments and the result of the last call that was let out.
fn last(records: &[Value]) -> (Value, Value) {
    let of = |ev: &str, name: &str| {
        let record = records.iter().rev().find(|record| record["ev"] == ev);
        record.unwrap()[name].clone()
    };
    (of("call.begin", "args"), of("call.end", "res"))
}

#[test]
fn a_reload_takes_what_the_record_holds() {
    let gate = Setup::config(config("")).start();
    let add = |n: i32| {
        let id = json!(format!("add-{n}"));
        Modern::call(gate.port, &id, "demo_add", json!({"a": n, "b": 1}));
    };
    add(1);
    assert_eq!(last(&gate.audit()), (Value::Null, Value::Null));
    gate.configure(&config(
        "arguments = \"redacted\"\nresults = \"redacted\"\ncontents_bytes = 100",
    ));
    gate.cli(&["reload"]);
    add(2);
    let (arguments, result) = last(&gate.audit());
    assert_eq!(arguments, "{\"a\":2,\"b\":1}");
    assert!(
        result.as_str().unwrap().contains("\"structuredContent\""),
        "{result}"
    );
    gate.configure(&config("arguments = \"redacted\"\ncontents_bytes = 64"));
    gate.cli(&["reload"]);
    let id = json!("long");
    let long = json!({"a": "x".repeat(58), "b": 1});
    Modern::call(gate.port, &id, "demo_add", long);
    let denied = gate.audit();
    let denied = denied.iter().rfind(|record| record["ev"] == "deny");
    assert_eq!(denied.unwrap()["args"], "[omitted: 72 bytes]");
    add(3);
    assert_eq!(
        last(&gate.audit()),
        (json!("{\"a\":3,\"b\":1}"), Value::Null)
    );
}

fn add(gate: &Gate, n: u32) {
    let id = json!(format!("add-{n}"));
    Modern::call(gate.port, &id, "demo_add", json!({"a": n, "b": 1}));
}

#[test]
fn status_and_console_say_when_the_second_place_is_gone() {
    let gate = Setup::config(config("checkpoint_records = 1")).start();
    assert!(gate.cli(&["status"]).contains("mirrored"));
    assert_eq!(gate.state()["record"]["state"], "written");
    let place = gate.data.path().join("state/checkpoints");
    std::fs::rename(&place, place.with_extension("away")).unwrap();
    add(&gate, 1);
    // It is tried after the answer was released.
    let told = until("the trouble is told", SOON, || {
        let told = gate.cli(&["status"]);
        told.contains("NOT MIRRORED").then_some(told)
    });
    assert!(told.contains("audit log    written"), "{told}");
    assert!(gate.state()["record"]["checkpoints"].is_string());
}

#[test]
fn status_fails_where_the_record_cannot_be_written() {
    // No file may grow beyond 256 or 512 KiB, and nothing is killed for it. The files of the store stay below.
    let limit = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
    let gate = Setup::config(config(""))
        .wrapped(&["sh", "-c", limit, "sh"])
        .start();
    let login = gate.log_in("");
    let mut n = 0;
    until("the record is full", SOON, || {
        add(&gate, n);
        n += 1;
        let state = login.state();
        (state["record"]["state"] == "failed").then_some(())
    });
    let status = gate.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(told.contains("NOT WRITTEN: "), "{told}");
    let refused = Modern::call(
        gate.port,
        &json!("late"),
        "demo_add",
        json!({"a": 1, "b": 1}),
    );
    assert!(
        refused.body.contains("audit log cannot be written"),
        "{refused:?}"
    );
}

#[test]
fn a_checkpoint_is_signed_when_the_drain_begins() {
    let gate = Setup::config(config(
        "checkpoint_records = 10000\ncheckpoint_seconds = 3600",
    ))
    .start();
    let mut session = Vec::new();
    // A call that runs on while the gateway drains.
    let port = gate.port;
    session.push(std::thread::spawn(move || {
        Modern::call(
            port,
            &json!("slow"),
            "demo_slow_count",
            json!({"to": 20, "delay_ms": 100}),
        )
    }));
    until("it runs", SOON, || {
        let begun = gate.audit_files();
        begun.iter().any(|r| r["ev"] == "call.begin").then_some(())
    });
    let data = gate.stop();
    session
        .into_iter()
        .for_each(|call| drop(call.join().unwrap()));
    let mut events = Vec::new();
    for record in crate::help::records(&data.path().join("state")) {
        events.push(record["ev"].as_str().unwrap().to_owned());
    }
    let at = events.iter().position(|ev| ev == "drain").expect("a drain");
    assert_eq!(events[at + 1], "checkpoint", "{events:?}");
    assert!(events[at..].contains(&"call.end".to_owned()), "{events:?}");
}
