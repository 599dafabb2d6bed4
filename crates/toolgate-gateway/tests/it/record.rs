//! The record of a gateway that runs: what its settings put into it, and how it is searched and exported.

use crate::help::{Modern, Setup};
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
