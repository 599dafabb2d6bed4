//! Answers of servers that exceed a limit or cannot be read: the call ends at once, with the true reason.

use crate::help::{Gate, Modern, Reply, SOON, Session, Setup, TempDir, answer_of, sayer, until};
use serde_json::{Value, json};
use std::sync::Arc;

/// A server whose tools answer each with something that is over a limit or not JSON.
const BAD: &str = r#"keys=$(seq 1 5000 | sed 's/.*/"k&":&/' | paste -sd, -)
deep=$(printf '[%.0s' $(seq 70))$(printf ']%.0s' $(seq 70))
numbers=$(yes 1, | head -n 120000 | tr -d '\n')
long=$(head -c 1200000 /dev/zero | tr '\0' x)
echo 'Bad server ready on stdio'
while IFS= read -r line; do
id=$(printf '%.300s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
with() { say '{"content":[],"structuredContent":{"x":'"$1"'}}'; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}' "$1"; }
case "$line" in
*'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
*'"tools/list"'*) say '{"tools":['"$(tool keys),$(tool depth),$(tool elements),$(tool line),$(tool nan),$(tool twice),$(tool latin),$(tool glued),$(tool good)"']}';;
*'"name":"keys"'*) with "{$keys}";;
*'"name":"depth"'*) with "$deep";;
*'"name":"elements"'*) with "[${numbers}1]";;
*'"name":"line"'*) with "\"$long\"";;
*'"name":"nan"'*) with NaN;;
*'"name":"twice"'*) with '{"a":1,"a":2}';;
*'"name":"latin"'*) with "$(printf '"caf\351"')";;
*'"name":"glued"'*) printf 'INFO done '; with 1;;
*'"name":"good"'*) with '"a\ud800"';;
*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
esac; done"#;

/// Error text of each tool.
const REASONS: [(&str, &str); 8] = [
    ("keys", "exceeds the limit `keys` (4096)"),
    ("depth", "exceeds the limit `depth` (64)"),
    ("elements", "exceeds the limit `elements` (100000)"),
    ("line", "exceeds the limit `line_bytes` (1048576)"),
    ("nan", "cannot be read: the text is not JSON"),
    ("twice", "an object has a duplicate key"),
    ("latin", "the text is not UTF-8"),
    ("glued", "cannot be read: the text is not JSON"),
];

/// A deadline that no test outlives, so that what ends a call is not the clock.
const LIMITS: &str = "[limits]\nrate = \"1000000/s\"\ncall_seconds = 600\nline_bytes = 1048576\n";

fn said(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

fn is_bad_answer(gate: &Gate, calls: usize) {
    let records = gate.audit();
    let ends = records.iter().filter(|record| record["ev"] == "call.end");
    let ends: Vec<&Value> = ends.collect();
    assert_eq!(ends.len(), calls);
    for end in ends {
        assert_eq!(
            (&end["out"], &end["code"]),
            (&json!("bad_answer"), &json!("bad_answer"))
        );
    }
}

#[test]
fn an_answer_over_stdio_that_cannot_be_used_ends_its_call_at_once() {
    let data = Arc::new(TempDir::new("unusable"));
    let script = data.write("bad.sh", BAD);
    let server = format!("[server.s]\ncommand = [\"sh\", {script:?}]\ntrust_annotations = true\n");
    let gate = Setup::config(format!("{LIMITS}{server}")).start();
    let session = until("the server runs", SOON, || {
        let session = Session::open(gate.port);
        let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
        let listed = session.post(&list).body;
        listed.contains("s_keys").then_some(session)
    });
    for (n, (tool, reason)) in REASONS.into_iter().enumerate() {
        let id = json!(n + 1);
        let name = format!("s_{tool}");
        for answer in [
            session.call(&id, &name, json!({})),
            Modern::call(gate.port, &id, &name, json!({})),
        ] {
            let answer = answer_of(&answer, &id);
            let text = said(&answer);
            assert!(text.contains(reason), "{tool}: {text}");
            assert!(text.contains("the call may have taken effect"), "{text}");
        }
    }
    is_bad_answer(&gate, 2 * REASONS.len());
    // What can be repaired is a result, and the server still runs.
    let answer = Modern::call(gate.port, &json!(1), "s_good", json!({}));
    let answer = answer_of(&answer, &json!(1));
    assert_eq!(answer["result"]["structuredContent"]["x"], "a\u{fffd}");
    let lines = until("standard error names an answer", SOON, || {
        let lines = gate.said();
        let found = lines
            .iter()
            .any(|line| line.contains("s: its answer to a call cannot be read"));
        found.then_some(lines)
    });
    assert!(!lines.concat().contains("caf"), "{lines:#?}");
    gate.stop();
}

#[test]
fn an_answer_over_http_that_cannot_be_used_ends_its_call_at_once() {
    let keys: Vec<String> = (0..5_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let keys = format!("{{{}}}", keys.join(","));
    let url = sayer(move |message| {
        let id = &message["id"];
        let wanted = &message["params"]["arguments"];
        let inside = match wanted["what"].as_str().unwrap() {
            "keys" => &keys,
            "nan" => "NaN",
            _ => r#"{"a":1,"a":2}"#,
        };
        let result = format!(r#"{{"content":[],"structuredContent":{{"x":{inside}}}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        match wanted["events"].as_bool().unwrap() {
            false => Reply::Status(200, "application/json", text),
            true => Reply::Status(200, "text/event-stream", format!("data: {text}\n\n")),
        }
    });
    let server = format!(
        "[server.s]\nurl = {url:?}\ntrust_annotations = true\nunknown_arguments = \"allow\"\n"
    );
    let gate = Setup::config(format!("{LIMITS}{server}")).start();
    until("the server runs", SOON, || {
        (gate.state()["servers"][0]["state"] == "running").then_some(())
    });
    for (what, reason) in REASONS {
        if !matches!(what, "keys" | "nan" | "twice") {
            continue;
        }
        for events in [false, true] {
            let arguments = json!({"what": what, "events": events});
            let answer = Modern::call(gate.port, &json!(1), "s_say", arguments);
            let answer = answer_of(&answer, &json!(1));
            assert!(said(&answer).contains(reason), "{what} {events}: {answer}");
        }
    }
    is_bad_answer(&gate, 6);
    gate.stop();
}

/// Clients write `null` for what they leave out, and an empty cursor.
#[test]
fn null_from_clients_counts_as_absent() {
    let gate = Setup::fast_demo("").start();
    let session = Session::open(gate.port);
    for (id, params) in [
        (1, json!(null)),
        (2, json!({"cursor": null})),
        (3, json!({"cursor": ""})),
    ] {
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
        let listed = until("the tools are listed", SOON, || {
            let listed = answer_of(&session.post(&list), &json!(id));
            (!listed.to_string().contains("\"tools\":[]")).then_some(listed)
        });
        assert!(listed["result"]["tools"].is_array(), "{params}: {listed}");
    }
    let answer = answer_of(
        &session.call(&json!(4), "demo_fail", json!(null)),
        &json!(4),
    );
    assert!(answer["result"].is_object(), "{answer}");
    gate.stop();
}
