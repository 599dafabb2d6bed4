//! Requests of 2026-07-28 stand alone.

use super::peer::{NEWEST_REVISION, Peer};
use crate::rows::web::request;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{
    edge::{
        self,
        http::{HttpEndpoint, HttpLimits},
    },
    handlers::{Cx, HandlerExit, LogLevel, Server, Tool, ask},
};

/// Has a tool that asks, one that says what it heard, one that logs, one that names its caller and one that names its trace;
/// works on one request at a time.
fn server() -> Arc<edge::ProtocolServer> {
    sealed_by([7; 32])
}

/// The same; what it seals, every process with that key opens.
fn sealed_by(key: [u8; 32]) -> Arc<edge::ProtocolServer> {
    let object = || json!({"type": "object"});
    let asks = Tool::dynamic("asks", object(), |_, cx: Cx| async move {
        cx.ask("q", ask::text("Who?"))
    });
    let echo = Tool::dynamic("echo", object(), |_, cx: Cx| async move {
        Ok::<_, HandlerExit>(cx.arguments().as_str().to_owned())
    });
    let mut limits = edge::ServerLimits::default();
    limits.max_in_flight = 1;
    let logs = Tool::dynamic("logs", object(), |_, cx: Cx| async move {
        cx.log(LogLevel::Error, "logged");
        Ok::<_, HandlerExit>("x")
    });
    let caller = Tool::dynamic("caller", object(), |_, cx: Cx| async move {
        Ok::<_, HandlerExit>(cx.caller().to_string())
    });
    let trace = Tool::dynamic("trace", object(), |_, cx: Cx| async move {
        let trace = cx.trace();
        let parts = json!([trace.parent, trace.state, trace.baggage]);
        Ok::<_, HandlerExit>(parts.to_string())
    });
    let server = Server::new("s", "1").tool(asks).tool(echo);
    let server = server.tool(logs).tool(caller).tool(trace);
    server.limits(limits).seal_key(key).build().unwrap()
}

/// Capabilities of one request do not carry over to the next, in any order.
///
/// Holds: BASE-23, BASE-24
#[tokio::test]
async fn nothing_is_carried_over() {
    let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({})).await;
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
        (meta(NEWEST_REVISION), Value::Null),
    ] {
        let params = json!({"_meta": meta});
        peer.send_message(
            json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": params}),
        )
        .await;
        let reply = peer.receive().await;
        assert_eq!(reply["error"]["code"], code, "{meta}: {reply}");
    }
    // Nor does the level of one request make the next one talkative.
    let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
    for (params, told) in [
        (json!({"name": "logs", "_meta": meta}), true),
        (json!({"name": "logs"}), false),
    ] {
        let id = peer.send_request("tools/call", params).await;
        let first = peer.receive().await;
        assert_eq!(first["method"] == "notifications/message", told, "{first}");
        if told {
            assert_eq!(peer.receive().await["id"], id);
        }
    }
}

/// Two callers in turn at one endpoint, each named by the request alone.
///
/// Holds: BASE-23
#[tokio::test]
async fn a_caller_is_known_by_the_request_alone() {
    let endpoint = HttpEndpoint::new(server(), HttpLimits::default());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "one and the same", "version": "1"}});
    let params = json!({"name": "caller", "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("mcp-protocol-version", NEWEST_REVISION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "caller"),
    ];
    for caller in ["ada", "bob", "ada"] {
        let answer = request(&endpoint, caller, "POST", &headers, &body.to_string()).await;
        let said = answer.json()["result"]["content"][0]["text"].take();
        assert_eq!(said, caller, "{answer:?}");
    }
}

/// A trace is passed to the function only in the formats of the W3C.
///
/// Holds: BASE-43
#[tokio::test]
async fn a_trace_in_another_format_is_left_out() {
    let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({})).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (given, seen) in [
        (
            [parent, "a=1,b=2", "k=v"],
            json!([parent, "a=1,b=2", "k=v"]),
        ),
        (["nonsense", "a=1", "k=v"], json!([null, null, "k=v"])),
        ([parent, "A=1", "k v"], json!([parent, null, null])),
    ] {
        let [parent, state, baggage] = given;
        let meta = json!({"traceparent": parent, "tracestate": state, "baggage": baggage});
        let params = json!({"name": "trace", "_meta": meta});
        let done = peer.result("tools/call", params).await;
        assert_eq!(done["content"][0]["text"], seen.to_string(), "{given:?}");
    }
}

/// A question that left holds nothing on the server: it may be answered on another connection, at another process with the same
/// key, or never.
///
/// Holds: BASE-25, BASE-27, MRTR-09
#[tokio::test]
async fn a_question_is_answered_on_another_connection() {
    let server = server();
    let able = json!({"elicitation": {}});
    let mut first = Peer::open(&server, NEWEST_REVISION, able.clone()).await;
    let asked = first.result("tools/call", json!({"name": "asks"})).await;
    // With one request at a time, a question that waits would be in the way of these.
    for _ in 0..3 {
        first.result("tools/call", json!({"name": "asks"})).await;
    }
    drop(first);
    let mut second = Peer::open(&server, NEWEST_REVISION, able).await;
    let answers = json!({"q": {"action": "accept", "content": {"value": "Ada"}}});
    let again =
        json!({"name": "asks", "requestState": asked["requestState"], "inputResponses": answers});
    let done = second.result("tools/call", again.clone()).await;
    assert_eq!(done["content"][0]["text"], "Ada", "{done}");
    for (key, good) in [([7; 32], true), ([8; 32], false)] {
        let able = json!({"elicitation": {}});
        let mut other = Peer::open(&sealed_by(key), NEWEST_REVISION, able).await;
        let done = other.request("tools/call", again.clone()).await;
        let said = &done["result"]["content"][0]["text"];
        assert_eq!(said == "Ada", good, "{done}");
    }
}

/// Keys of the protocol that nobody here knows may have any value.
///
/// Holds: BASE-29
#[tokio::test]
async fn strange_values_under_reserved_keys_are_no_error() {
    for revision in ["2025-06-18", "2025-11-25", NEWEST_REVISION] {
        let mut peer = Peer::open(&server(), revision, json!({})).await;
        for value in [
            json!(null),
            json!([1]),
            json!({"a": {}}),
            json!("x"),
            json!(7),
        ] {
            let mut meta = json!({"io.modelcontextprotocol/later": value, "dev.mcp/x": value, "mcp.dev/y": value,
                "io.modelcontextprotocol/related-task": value, "traceparent": value, "baggage": value});
            if revision != NEWEST_REVISION {
                // Later revisions know these.
                meta["io.modelcontextprotocol/logLevel"] = value.clone();
                meta["io.modelcontextprotocol/protocolVersion"] = value.clone();
            }
            let params = json!({"name": "echo", "arguments": {"a": 1}, "_meta": meta});
            let done = peer.result("tools/call", params).await;
            assert_eq!(done["content"][0]["text"], r#"{"a":1}"#, "{revision}");
        }
    }
}
