//! JSON-RPC errors of servers reach clients of every revision as errors with the same code.

use crate::help::{Gate, Modern, Reply, Response, SOON, Session, Setup, sayer, until};
use serde_json::{Value, json};

/// A gateway over a server that answers calls with the error whose code and message stand in the arguments.
fn gate() -> Gate {
    let url = sayer(|message| {
        let said = &message["params"]["arguments"];
        let error = json!({"code": said["code"], "message": said["message"], "data": {"path": "/srv/secret"}});
        Reply::Events(vec![
            json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
        ])
    });
    let gate = Setup::config(format!("[limits]\nrate = \"1000000/s\"\n[server.far]\nurl = {url:?}\ntrust_annotations = true\nunknown_arguments = \"allow\"\n")).start();
    until("the server runs", SOON, || {
        let state = gate.state();
        (state["servers"][0]["state"] == "running").then_some(())
    });
    gate
}

/// The error of an answer, with the status under which it came and whether it asks for credentials.
fn error_of(answer: &Response, id: &Value) -> (Value, u16, bool) {
    let message = crate::help::answer_of(answer, id);
    assert!(message.get("result").is_none(), "{message}");
    let challenged = answer.header("www-authenticate").is_some();
    (message["error"].clone(), answer.status, challenged)
}

/// Holds: TOOL-20, BASE-20, BASE-21.
#[test]
fn an_error_of_a_server_keeps_its_code_in_every_revision() {
    let gate = gate();
    let arguments = |code: i64, message: &str| json!({"code": code, "message": message});
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let message = format!("database down \u{1b}[31m{token}");
    let sessions = ["2025-03-26", "2025-06-18", "2025-11-25"];
    let sessions = sessions.map(|revision| (revision, Session::of(gate.port, revision)));
    // 403 is the code by which the gateway itself asks for more scopes: from a server it asks for nothing.
    for (n, code) in [-32603, -32601, -32000, 403, 7].into_iter().enumerate() {
        let check = |revision: &str, answer: &Response, id: &Value| {
            let (error, status, challenged) = error_of(answer, id);
            assert_eq!(error["code"], code, "{revision}: {error}");
            assert_eq!((status, challenged), (200, false), "{revision} {code}");
            let said = error["message"].as_str().unwrap();
            assert!(said.contains("database down"), "{revision}: {said}");
            assert!(!said.contains('\u{1b}') && !said.contains(&token), "{said}");
            assert!(!error.to_string().contains("/srv/secret"), "{error}");
        };
        let id = json!(n + 1);
        let answer = Modern::call(gate.port, &id, "far_say", arguments(code, &message));
        check("2026-07-28", &answer, &id);
        for (revision, session) in &sessions {
            let answer = session.call(&id, "far_say", arguments(code, &message));
            check(revision, &answer, &id);
        }
    }
    // What 2026-07-28 reserves would speak of the connection to the gateway.
    // The codes of earlier revisions for a missing resource and for a page are no longer sent either.
    for (code, instead) in [
        (-32020, -32603),
        (-32022, -32603),
        (-32042, -32603),
        (-32050, -32603),
        (-32002, -32602),
    ] {
        let id = json!(code);
        let answer = Modern::call(gate.port, &id, "far_say", arguments(code, "no"));
        let (error, status, _) = error_of(&answer, &id);
        assert_eq!((&error["code"], status), (&json!(instead), 200), "{error}");
        assert_eq!(error["data"], json!({"serverCode": code}));
        let (revision, session) = &sessions[2];
        let answer = session.call(&id, "far_say", arguments(code, "no"));
        // An error that wants a page has the page in its data, which is not passed on.
        let kept = if code == -32042 { -32603 } else { code };
        assert_eq!(error_of(&answer, &id).0["code"], kept, "{revision}");
    }
    let ends = gate.audit();
    let mut ends = ends.iter().filter(|record| record["ev"] == "call.end");
    assert!(ends.all(|end| end["out"] == "rpc_error" && end["code"] == "answered"));
    gate.stop();
}
