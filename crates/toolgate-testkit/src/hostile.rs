//! Hostile servers, each with one misbehavior.
//!
//! A client survives one if each of its requests ends with a result or an error, in bounded time and memory. Later
//! requests must work if the stream is still usable.

use crate::ScriptedServer;
use serde_json::{Value, json};

/// One misbehavior in place of the response to a request.
#[derive(Clone, Copy, Debug)]
pub struct HostileBehavior {
    /// A short description of the misbehavior.
    pub name: &'static str,
    lines: fn(&Value) -> Vec<String>,
}

impl HostileBehavior {
    /// Performs the misbehavior in place of the response to a request.
    pub async fn instead_of_answering(&self, server: &mut ScriptedServer, request: &Value) {
        for line in (self.lines)(request) {
            server.send(&line).await;
        }
    }
}

/// All misbehaviors. The last message of each is a valid or invalid response to the request, so that the client need
/// not wait for its timeout.
pub const HOSTILE_BEHAVIORS: [HostileBehavior; 16] = [
    behavior("garbage on the stream", |r| {
        vec![
            "Listening on port 80".into(),
            "{".into(),
            "\u{1b}[2J".into(),
            good(r),
        ]
    }),
    behavior("a line of a mebibyte", |r| {
        vec![format!("\"{}\"", "x".repeat(1 << 20)), good(r)]
    }),
    behavior("deep nesting", |r| {
        vec![
            format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            good(r),
        ]
    }),
    behavior("two replies", |r| vec![good(r), good(r)]),
    behavior("replies to nothing", |r| {
        vec![
            good(&json!({"id": 987_654})),
            good(&json!({"id": "no"})),
            good(r),
        ]
    }),
    behavior("a reply with result and error", |r| {
        vec![reply(
            r,
            json!({"result": {}, "error": {"code": 1, "message": "x"}}),
        )]
    }),
    behavior("a reply with neither", |r| {
        vec![reply(r, json!({})), error(r)]
    }),
    behavior("an error without a code", |r| {
        vec![reply(r, json!({"error": {"message": "x"}}))]
    }),
    behavior("a result that is not an object", |r| {
        vec![reply(r, json!({"result": 7}))]
    }),
    behavior("an unknown kind of result", |r| {
        vec![reply(r, json!({"result": {"resultType": "surprise"}}))]
    }),
    behavior("content of wrong types", |r| {
        vec![reply(
            r,
            json!({"result": {"resultType": "complete", "content": {"type": 1}, "tools": 3}}),
        )]
    }),
    behavior("an input request that the client did not declare", |r| {
        let ask = json!({"k": {"method": "sampling/createMessage", "params": {}}});
        vec![reply(
            r,
            json!({"result": {"resultType": "input_required", "inputRequests": ask}}),
        )]
    }),
    behavior("a request from the server", |r| {
        let own = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
        vec![own.to_string(), good(r)]
    }),
    behavior("a flood of progress", |r| {
        let told = |n: u32| {
            let params = json!({"progressToken": r["id"], "progress": n});
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                .to_string()
        };
        (0..10_000).map(told).chain([good(r)]).collect()
    }),
    behavior("the same key twice", |r| {
        let id = &r["id"];
        vec![
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"id\":{id},\"result\":{{}}}}"),
            error(r),
        ]
    }),
    behavior("texts with invisible characters", |r| {
        vec![reply(
            r,
            json!({"error": {"code": 1, "message": "a\u{202e}b\u{200b}\u{e0041}\u{1b}[31m"}}),
        )]
    }),
];

const fn behavior(name: &'static str, lines: fn(&Value) -> Vec<String>) -> HostileBehavior {
    HostileBehavior { name, lines }
}

fn reply(request: &Value, more: Value) -> String {
    let mut message = json!({"jsonrpc": "2.0", "id": request["id"]});
    if let (Some(message), Some(more)) = (message.as_object_mut(), more.as_object()) {
        message.extend(more.clone());
    }
    message.to_string()
}

/// Returns a response that is valid for a call and for a list of every kind.
fn good(request: &Value) -> String {
    let result = json!({"resultType": "complete", "content": [], "tools": [], "resources": [],
        "resourceTemplates": [], "prompts": [], "ttlMs": 0, "cacheScope": "private"});
    reply(request, json!({"result": result}))
}

fn error(request: &Value) -> String {
    reply(request, json!({"error": {"code": -32603, "message": "no"}}))
}
