//! Nobody waits for somebody else's request, and nothing outlives its end.

use crate::{
    handlers::peer::{NEWEST_REVISION, Peer, REVISIONS},
    remote::peer::{call, legacy, modern, soon},
    serve::{
        HANG, Scripted,
        desk::until,
        http::{endpoint, send, text},
        server,
    },
};
use http_body_util::BodyExt;
use serde_json::json;
use std::sync::atomic::Ordering::SeqCst;
use toolgate::{
    Caller, Outcome, Service,
    edge::{
        http::{HttpEndpoint, HttpLimits},
        stdio,
    },
};

const FOREVER: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

async fn open(endpoint: &HttpEndpoint) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = send(endpoint, "POST", &[], &body.to_string()).await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap();
    id.to_owned()
}

async fn ping(endpoint: &HttpEndpoint, session: &str) -> u16 {
    let with = [("mcp-session-id", session)];
    let ping = send(endpoint, "POST", &with, PING);
    let ping = tokio::time::timeout(HANG, ping).await.expect("no waiting");
    ping.status().as_u16()
}

/// One slow request keeps no other one of the same peer waiting.
#[tokio::test]
async fn a_slow_request_blocks_no_other() {
    for revision in REVISIONS {
        let scripted = Scripted::new();
        let mut peer = Peer::open(&server(scripted.clone()), revision, json!({})).await;
        for _ in 0..8 {
            peer.send_request("tools/call", json!({"name": "forever"}))
                .await;
        }
        let result = peer.result("tools/call", json!({"name": "echo"})).await;
        assert_eq!(result["content"][0]["text"], "{}", "{revision}");
        assert_eq!(scripted.running.load(SeqCst), 8);
    }
}

/// A busy session delays neither other sessions nor their opening and end.
#[tokio::test]
async fn sessions_do_not_wait_for_each_other() {
    let scripted = Scripted::new();
    let endpoint = endpoint(scripted.clone());
    let busy = open(&endpoint).await;
    let with = [("mcp-session-id", busy.as_str())];
    let _stream = send(&endpoint, "POST", &with, FOREVER).await;
    until("it runs", || scripted.running.load(SeqCst) == 1).await;
    for _ in 0..3 {
        let other = open(&endpoint).await;
        assert_eq!(ping(&endpoint, &other).await, 200);
        let end = [("mcp-session-id", other.as_str())];
        assert_eq!(send(&endpoint, "DELETE", &end, "").await.status(), 204);
        assert_eq!(ping(&endpoint, &other).await, 404);
    }
    assert_eq!(ping(&endpoint, &busy).await, 200);
    assert_eq!(scripted.running.load(SeqCst), 1);
}

/// The end of an endpoint ends its sessions, their streams and what runs in them.
#[tokio::test]
async fn sessions_end_with_their_endpoint() {
    let scripted = Scripted::new();
    let endpoint = HttpEndpoint::new(server(scripted.clone()), HttpLimits::default());
    let session = open(&endpoint).await;
    let with = [("mcp-session-id", session.as_str())];
    let stream = send(&endpoint, "GET", &with, "").await;
    drop(send(&endpoint, "POST", &with, FOREVER).await);
    until("it runs", || scripted.running.load(SeqCst) == 1).await;
    endpoint.close();
    let rest = tokio::time::timeout(HANG, stream.into_body().collect());
    rest.await.expect("the stream ends").unwrap();
    until("it is dropped", || scripted.running.load(SeqCst) == 0).await;
    assert_ne!(ping(&endpoint, &session).await, 200);
}

/// An answer that comes after its call was dropped is nobody's, and the next call gets its own.
///
/// Holds: CANC-04, CANC-09
#[tokio::test(start_paused = true)]
async fn a_late_answer_is_nobodys() {
    for new in [true, false] {
        let tools = json!({"tools": {}});
        let (remote, mut peer) = if new {
            modern(tools).await
        } else {
            legacy(tools).await
        };
        let dropped = {
            let mut call = remote.call(call("slow", "{}"));
            tokio::select! {
                _ = &mut call => panic!("nobody answered"),
                asked = peer.read() => asked,
            }
        };
        assert_eq!(peer.read().await["method"], "notifications/cancelled");
        let text = |text: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
        let (outcome, ()) = tokio::join!(soon(remote.call(call("next", "{}"))), async {
            let asked = peer.read().await;
            peer.reply(&dropped, text("late")).await;
            peer.reply(&asked, text("mine")).await;
        });
        let Ok(Outcome::Done(output)) = outcome else {
            panic!("{outcome:?}")
        };
        let block = output.tool().unwrap().content[0].json.to_value();
        assert_eq!(block["text"], "mine");
    }
}

/// A line without an end is skipped while it comes, answered once, and what follows it is read.
#[tokio::test]
async fn a_line_without_end_is_not_kept() {
    let mut peer = Peer::open(&server(Scripted::new()), NEWEST_REVISION, json!({})).await;
    let limit = toolgate::edge::ServerLimits::default().json.bytes;
    let long = "x".repeat(limit);
    for _ in 0..4 {
        peer.send_raw(&long).await;
    }
    peer.send_raw("\n").await;
    assert_eq!(peer.receive().await["error"]["code"], -32600);
    let after = peer.result("tools/list", json!({})).await;
    assert!(after["tools"].is_array());
}

/// A stream that ends leaves nothing running, with requests open or without.
#[tokio::test]
async fn the_end_of_input_ends_the_serving() {
    let scripted = Scripted::new();
    let input = format!(
        "{}\n",
        FOREVER.replace(
            r#""name":"forever""#,
            r#""name":"forever","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
        )
    );
    let serving = stdio::serve(
        server(scripted.clone()),
        Caller::new("t"),
        input.as_bytes(),
        tokio::io::sink(),
    );
    tokio::time::timeout(HANG, serving)
        .await
        .expect("it ends")
        .unwrap();
    assert_eq!(scripted.running.load(SeqCst), 0);
}

/// A body is read whole before anything is said about it: JSON that breaks off is an error, not an acceptance.
#[tokio::test]
async fn broken_json_is_never_accepted() {
    let endpoint = endpoint(Scripted::new());
    let session = open(&endpoint).await;
    let with = [("mcp-session-id", session.as_str())];
    for body in [
        "",
        "{",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized""#,
        "null",
        "\"x\"",
    ] {
        let response = send(&endpoint, "POST", &with, body).await;
        assert_eq!(response.status(), 400, "{body}");
        let error = text(response).await;
        assert!(error.contains("\"error\""), "{error}");
    }
}
