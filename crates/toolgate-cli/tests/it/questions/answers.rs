//! Answers to forms are checked before the server gets them.

use super::{Lines, Server, USES, able, words};
use crate::help::{Gate, Modern};
use serde_json::{Value, json};

/// Answers that do not fit, and what is said of each.
fn unfit() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({"action": "accept", "content": {"name": 5}}),
            "at /name expected a string, got the number 5",
        ),
        (
            json!({"action": "accept", "content": {"name": "a", "zzz": 1}}),
            "at /zzz expected no field of this name",
        ),
        (
            json!({"action": "accept", "content": {"count": 1}}),
            "at /name expected a value, because it is required",
        ),
        (
            json!({"action": "accept", "content": {"name": "a", "mail": "b"}}),
            "at /mail expected text that fits the pattern",
        ),
        (json!({"action": "accept"}), "at /name expected a value"),
        (
            json!({"action": "accept", "content": "a"}),
            "expected an object",
        ),
    ]
}

fn form() -> Value {
    let schema = json!({"type": "object", "required": ["name", "count"], "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "default": 1},
        "mail": {"type": "string", "pattern": "^(?!.*\\.\\.)[^@]+@[^@]+$"},
    }});
    json!({"mode": "form", "message": "Hello", "requestedSchema": schema})
}

/// A request of 2026-07-28 with an answer and the state of the request before.
fn answered(method: &str, params: &str, state: &Value, reply: &Value) -> Value {
    let mut params: Value = serde_json::from_str(params).unwrap();
    params["inputResponses"] = json!({"q": reply});
    params["requestState"] = state.clone();
    let mut body = Modern::body(&json!(2), method, params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able();
    body
}

fn asked(gate: &Gate, method: &str, params: &str) -> Value {
    let answer = super::modern(gate, method, params);
    let state = &answer["result"]["requestState"];
    assert!(state.is_string(), "{answer}");
    state.clone()
}

/// Holds: ELIC-12
#[test]
fn an_answer_that_does_not_fit_its_form_reaches_no_server_over_http() {
    let server = Server::new();
    let gate = server.start("");
    server.asks("elicitation/create", form());
    for (method, params) in USES {
        let name: Value = serde_json::from_str(params).unwrap();
        let name = name.get("name").or(name.get("uri")).and_then(Value::as_str);
        let state = asked(&gate, method, params);
        let send =
            |reply: &Value| Modern::ask(gate.port, name, &answered(method, params, &state, reply));
        for (reply, says) in unfit() {
            let answer = send(&reply);
            assert!(words(&answer).contains(says), "{method} {reply}: {answer}");
        }
        // The same question can still be answered. The default may be left out, and the answer is sent as it is.
        let good = send(&json!({"action": "accept", "content": {"name": "a", "mail": "a@b"}}));
        assert!(good.to_string().contains("answered"), "{good}");
        let no = send(&json!({"action": "decline"}));
        assert!(no.to_string().contains("answered"), "{no}");
    }
    let ends = gate.audit();
    let steps = ends.iter().filter_map(|record| record["trail"].as_array());
    let refused = steps.filter(|steps| {
        let mut steps = steps.iter();
        steps.any(|step| step["by"] == "asking" && step["verdict"] == "refuse")
    });
    assert_eq!(refused.count(), unfit().len() * USES.len());
}

/// Holds: ELIC-12
#[test]
fn an_answer_that_does_not_fit_its_form_reaches_no_server_over_stdio() {
    let server = Server::new();
    let gate = server.start("");
    server.asks("elicitation/create", form());
    drop(gate);
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut lines = Lines::open(&server, revision);
        let params: Value = serde_json::from_str(USES[0].1).unwrap();
        for (reply, says) in unfit() {
            lines.reply = reply.clone();
            let (answer, asked) = lines.ask(USES[0].0, params.clone());
            assert_eq!(asked, ["elicitation/create"], "{revision}: {answer}");
            assert!(
                words(&answer).contains(says),
                "{revision} {reply}: {answer}"
            );
        }
        lines.reply = json!({"action": "accept", "content": {"name": "a"}});
        let (answer, _) = lines.ask(USES[0].0, params);
        assert!(answer.to_string().contains("answered"), "{answer}");
    }
}
