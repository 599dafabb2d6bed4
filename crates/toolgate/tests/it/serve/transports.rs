//! Transports of one HTTP endpoint: all by default, and each can be disabled.

use super::{HANG, Scripted, server};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use toolgate::{
    Http,
    core::Caller,
    edge::http::{Body, HttpLimits},
};

const STATELESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn service() -> Http {
    Http::new(server(Scripted::new()), HttpLimits::default())
}

async fn send(
    service: &Http,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::<bytes::Bytes>::from(body.to_owned());
    let mut request = request.body(body).unwrap();
    request.extensions_mut().insert(Caller::new("test"));
    service.handle(request).await
}

async fn json(response: Response<Body>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

/// The first event of a stream.
async fn event(response: Response<Body>) -> String {
    let mut body = response.into_body();
    let frame = tokio::time::timeout(HANG, body.frame()).await.unwrap();
    let data = frame.unwrap().unwrap().into_data().unwrap();
    String::from_utf8(data.to_vec()).unwrap()
}

const DISCOVER: [(&str, &str); 2] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "server/discover"),
];

#[tokio::test]
async fn serves_every_revision_by_default() {
    let service = service();
    let stateless = send(&service, ("POST", "/"), &DISCOVER, STATELESS).await;
    assert_eq!(stateless.status(), 200);
    let opened = send(&service, ("POST", "/"), &[], OPEN).await;
    assert!(opened.headers().contains_key("mcp-session-id"));
    for path in ["/sse", "/mcp/sse"] {
        let stream = send(&service, ("GET", path), &[], "").await;
        assert_eq!(stream.status(), 200);
        let first = event(stream).await;
        let start = "event: endpoint\ndata: messages?sessionId=";
        assert!(first.starts_with(start), "{first}");
    }
}

/// The endpoint of the newer transports may have a path that ends like one of the older transport.
#[tokio::test]
async fn serves_newer_clients_at_the_paths_of_the_older_transport() {
    let service = service();
    for path in ["/sse", "/messages"] {
        let opened = send(&service, ("POST", path), &[], OPEN).await;
        let session = opened.headers()["mcp-session-id"].to_str().unwrap();
        let with = [("mcp-session-id", session)];
        let stream = send(&service, ("GET", path), &with, "").await;
        assert_eq!(stream.status(), 200, "{path}");
        let first = event(stream).await;
        assert!(first.starts_with("id: "), "a resumable stream: {first}");
        let ended = send(&service, ("DELETE", path), &with, "").await;
        assert_eq!(ended.status(), 204, "{path}");
    }
}

#[tokio::test]
async fn a_disabled_transport_names_the_revisions_of_the_others() {
    let service_without = service().without_stateless();
    let refused = send(&service_without, ("POST", "/"), &DISCOVER, STATELESS).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let data = json(refused).await["error"]["data"].take();
    let supported = json!(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(
        data,
        json!({"supported": supported, "requested": "2026-07-28"})
    );
    let opened = send(&service_without, ("POST", "/"), &[], OPEN).await;
    assert_eq!(opened.status(), 200);

    let service_without = service().without_sessions();
    let refused = send(&service_without, ("POST", "/"), &[], OPEN).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let data = json(refused).await["error"]["data"].take();
    assert_eq!(
        data,
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})
    );
    let stateless = send(&service_without, ("POST", "/"), &DISCOVER, STATELESS).await;
    assert_eq!(stateless.status(), 200);
}

#[tokio::test]
async fn without_http_sse_its_paths_have_no_meaning() {
    let service = service().without_http_sse();
    let stream = send(&service, ("GET", "/sse"), &[], "").await;
    assert_eq!(stream.status(), StatusCode::METHOD_NOT_ALLOWED);
    let path = "/messages?sessionId=x";
    let opened = send(&service, ("POST", path), &[], OPEN).await;
    assert_eq!(opened.status(), 200, "Streamable HTTP at this path");
}
