//! Requests of 2026-07-28 stand alone.

use super::peer::{MODERN, Peer};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{
    edge,
    handlers::{Cx, Server, Stop, Tool, ask},
};

/// Has a tool that asks, and one that says what it heard; works on one request at a time.
fn server() -> Arc<edge::Front> {
    let object = || json!({"type": "object"});
    let asks = Tool::dynamic("asks", object(), |_, cx: Cx| async move {
        cx.ask("q", ask::text("Who?"))
    });
    let echo = Tool::dynamic("echo", object(), |_, cx: Cx| async move {
        Ok::<_, Stop>(cx.arguments().as_str().to_owned())
    });
    let limits = edge::ServerLimits {
        in_flight: 1,
        ..edge::ServerLimits::default()
    };
    let server = Server::new("s", "1").tool(asks).tool(echo);
    server.limits(limits).build().unwrap()
}

/// What one request declared is not there for the next, in any order.
///
/// Holds: BASE-23, BASE-24
#[tokio::test]
async fn nothing_is_carried_over() {
    let mut peer = Peer::open(&server(), MODERN, json!({})).await;
    let asks = || json!({"name": "asks"});
    for _ in 0..2 {
        peer.declare(json!({"elicitation": {}}));
        let asked = peer.result("tools/call", asks()).await;
        assert_eq!(asked["resultType"], "input_required");
        peer.declare(json!({}));
        let error = peer.error("tools/call", asks()).await;
        assert_eq!(error["code"], -32021);
    }
    let meta = |version: &str| {
        json!({"io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}})
    };
    for (meta, code) in [
        (json!({}), json!(-32602)),
        (meta("2099-01-01"), json!(-32022)),
        (meta(MODERN), Value::Null),
    ] {
        let params = json!({"_meta": meta});
        peer.say(json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": params}))
            .await;
        let reply = peer.hear().await;
        assert_eq!(reply["error"]["code"], code, "{meta}: {reply}");
    }
}

/// A question that left holds nothing on the server: it may be answered on another connection, or never.
///
/// Holds: BASE-25, BASE-27, MRTR-09
#[tokio::test]
async fn a_question_is_answered_on_another_connection() {
    let server = server();
    let able = json!({"elicitation": {}});
    let mut first = Peer::open(&server, MODERN, able.clone()).await;
    let asked = first.result("tools/call", json!({"name": "asks"})).await;
    // With one request at a time, a question that waits would be in the way of these.
    for _ in 0..3 {
        first.result("tools/call", json!({"name": "asks"})).await;
    }
    drop(first);
    let mut second = Peer::open(&server, MODERN, able).await;
    let answers = json!({"q": {"action": "accept", "content": {"value": "Ada"}}});
    let again =
        json!({"name": "asks", "requestState": asked["requestState"], "inputResponses": answers});
    let done = second.result("tools/call", again).await;
    assert_eq!(done["content"][0]["text"], "Ada", "{done}");
}

/// Keys of the protocol that nobody here knows may have any value.
///
/// Holds: BASE-29
#[tokio::test]
async fn strange_values_under_reserved_keys_are_no_error() {
    let mut peer = Peer::open(&server(), MODERN, json!({})).await;
    for value in [
        json!(null),
        json!([1]),
        json!({"a": {}}),
        json!("x"),
        json!(7),
    ] {
        let meta =
            json!({"io.modelcontextprotocol/later": value, "dev.mcp/x": value, "mcp.dev/y": value});
        let params = json!({"name": "echo", "arguments": {"a": 1}, "_meta": meta});
        let done = peer.result("tools/call", params).await;
        assert_eq!(done["content"][0]["text"], r#"{"a":1}"#);
    }
}
