//! Several messages in one body, over HTTP: in sessions of 2025-03-26 and nowhere else.

use super::{
    Scripted,
    desk::until,
    http::{endpoint, send, text},
};
use std::sync::atomic::Ordering;
use toolgate::edge::http::HttpEndpoint;

async fn open(endpoint: &HttpEndpoint, revision: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    );
    let opened = send(endpoint, "POST", &[], &body).await;
    opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

const TWO: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}]"#;

/// Holds: BASE-13, HTTPL-06.
#[tokio::test]
async fn a_session_of_the_one_revision_with_batches_takes_them() {
    let endpoint = endpoint(Scripted::new());
    let session = open(&endpoint, "2025-03-26").await;
    let with = [("mcp-session-id", session.as_str())];
    let response = send(&endpoint, "POST", &with, TWO).await;
    assert_eq!(response.status(), 200);
    let replies: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    let mut ids: Vec<_> = replies
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_i64())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)], "{replies}");
    let told = r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":1,"result":{}}]"#;
    assert_eq!(send(&endpoint, "POST", &with, told).await.status(), 202);
    assert_eq!(send(&endpoint, "POST", &with, "[]").await.status(), 400);
}

/// Holds: BASE-13, HTTPL-06.
#[tokio::test]
async fn a_slow_batch_is_a_stream_and_what_is_cancelled_in_it_is_not_answered() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let endpoint = endpoint(scripted);
    let session = open(&endpoint, "2025-03-26").await;
    let with = [("mcp-session-id", session.as_str())];
    let body = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":7}}}]"#;
    let response = send(&endpoint, "POST", &with, body).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    let cancel =
        r#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#;
    assert_eq!(send(&endpoint, "POST", &with, cancel).await.status(), 202);
    let stream = text(response).await;
    let data: Vec<&str> = stream
        .lines()
        .filter_map(|l| l.strip_prefix("data: "))
        .collect();
    assert!(data[0].contains("notifications/progress"), "{stream}");
    let replies: serde_json::Value = serde_json::from_str(data.last().unwrap()).unwrap();
    assert_eq!(replies.as_array().unwrap().len(), 1, "{replies}");
    assert_eq!(replies[0]["id"], 2);
}

/// Holds: BASE-13, LIFE-02.
#[tokio::test]
async fn elsewhere_an_array_is_no_message() {
    let endpoint = endpoint(Scripted::new());
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = open(&endpoint, revision).await;
        let with = [("mcp-session-id", session.as_str())];
        assert_eq!(send(&endpoint, "POST", &with, TWO).await.status(), 400);
    }
    assert_eq!(send(&endpoint, "POST", &[], TWO).await.status(), 400);
    let gone = [("mcp-session-id", "gone")];
    assert_eq!(send(&endpoint, "POST", &gone, TWO).await.status(), 404);
    let session = open(&endpoint, "2025-03-26").await;
    let other = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    assert_eq!(send(&endpoint, "POST", &other, TWO).await.status(), 400);
}
