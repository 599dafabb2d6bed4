//! Reads of resources through the gateway: cache hints, and errors of unknown resources.

use crate::help::{Gate, Modern, Reply, Session, Setup, answer_of, upstream};
use serde_json::{Value, json};

const GONE: &str = "t://files/gone";

/// A gateway over a server of 2026-07-28 with public resources, all of which match its template; it does not know one.
fn gate() -> Gate {
    let url = upstream(|message| {
        let answer = |mut result: Value| {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 60_000.into();
            result["cacheScope"] = "public".into();
            Reply::result(message, result)
        };
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => answer(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"resources": {}},
            })),
            "resources/templates/list" => answer(json!({"resourceTemplates": [
                {"uriTemplate": "t://files/{name}", "name": "file"},
            ]})),
            "resources/list" => answer(json!({"resources": []})),
            "resources/read" if message["params"]["uri"] == GONE => {
                let error = json!({"code": -32602, "message": "unknown", "data": {"uri": GONE}});
                Reply::Events(vec![
                    json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                ])
            }
            "resources/read" => {
                let uri = &message["params"]["uri"];
                answer(json!({"contents": [{"uri": uri, "text": "x"}]}))
            }
            _ => answer(json!({"tools": []})),
        }
    });
    let rule = "[[rule]]\ntools = [\"far.*\"]\naction = \"allow\"\n";
    Setup::config(format!("[server.far]\nurl = {url:?}\n{rule}")).start()
}

fn read(gate: &Gate, uri: &str) -> Value {
    let body = Modern::body(&json!(1), "resources/read", json!({"uri": uri}));
    Modern::ask(gate.port, Some(uri), &body)
}

#[test]
fn contents_of_a_public_resource_are_private_to_each_caller() {
    let result = &read(&gate(), "t://files/a")["result"];
    assert_eq!(result["contents"][0]["text"], "x", "{result}");
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&json!(60_000), &json!("private"))
    );
}

/// Holds: RES-04, RES-05
#[test]
fn an_unknown_resource_has_the_code_of_the_callers_revision() {
    let gate = gate();
    let error = &read(&gate, GONE)["error"];
    assert_eq!(
        (&error["code"], &error["data"]["uri"]),
        (&json!(-32602), &json!(GONE))
    );
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Session::of(gate.port, revision);
        let params = json!({"uri": GONE});
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
        let error = &answer_of(&session.post(&ask), &json!(1))["error"];
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(-32002), &json!(GONE)),
            "{revision}: {error}"
        );
    }
}
