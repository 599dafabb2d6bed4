//! Headers, session id and extensions of HTTP requests in the context of a handler, in every revision.

use super::peer::{NEWEST_REVISION, Peer};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolgate::{
    Caller, Cx, Error, Server,
    core::ErrorKind,
    edge::http::{HttpEndpoint, HttpLimits, HttpRequestParts},
    layer, tool,
};

/// Extension that a middleware puts into requests.
#[derive(Clone)]
struct Tenant(&'static str);

/// Shows the parts of the request.
#[tool(read_only)]
fn show(cx: Cx) -> String {
    let header = |name: &str| match cx.headers().get(name) {
        Some(value) => value.to_str().unwrap().to_owned(),
        None => "none".to_owned(),
    };
    let credentials = ["authorization", "proxy-authorization", "cookie", "dpop"];
    format!(
        "x-test={} credentials={:?} session={} tenant={}",
        header("x-test"),
        credentials.map(header),
        cx.session_id().unwrap_or("none"),
        cx.extension::<Tenant>().map_or("none", |tenant| tenant.0),
    )
}

fn shown(session: &str) -> String {
    format!(
        r#"x-test=1 credentials=["none", "none", "none", "none"] session={session} tenant=acme"#
    )
}

fn endpoint() -> HttpEndpoint {
    let inner = Server::new("inner", "1").tool(show);
    let server = Server::new("parts", "1").tool(show).mount("inner", inner);
    let mut limits = HttpLimits::default();
    // A reply within it is plain JSON; the bound of a hang.
    limits.stream_after = Duration::from_secs(10);
    HttpEndpoint::new(server.build().unwrap(), limits)
}

fn request(uri: &str, more: &[(&str, &str)], body: &Value) -> Request<Full<bytes::Bytes>> {
    let usual = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "Bearer secret"),
        ("proxy-authorization", "Basic secret"),
        ("cookie", "secret"),
        ("dpop", "secret"),
        ("x-test", "1"),
    ];
    let mut request = Request::post(uri).extension(Tenant("acme"));
    for (name, value) in usual.iter().chain(more) {
        request = request.header(*name, *value);
    }
    request
        .body(Full::from(body.to_string().into_bytes()))
        .unwrap()
}

/// Posts a message; returns the reply, and the session id in its header.
async fn post(
    endpoint: &HttpEndpoint,
    headers: &[(&str, &str)],
    body: &Value,
) -> (Value, Option<String>) {
    let response = endpoint
        .handle(Caller::new("test"), request("/mcp", headers, body))
        .await;
    let session = response.headers().get("mcp-session-id");
    let session = session.map(|id| id.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (serde_json::from_slice(&body).unwrap_or_default(), session)
}

fn initialize(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

fn call(name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}})
}

fn stateless_call(name: &str) -> Value {
    let mut call = call(name);
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    call
}

fn stateless_headers(name: &str) -> [(&'static str, &str); 3] {
    [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ]
}

fn text(reply: &Value) -> &str {
    let text = reply["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{reply}"))
}

#[tokio::test]
async fn a_stateless_call_sees_headers_and_extensions_but_no_credentials() {
    let endpoint = endpoint();
    for name in ["show", "inner_show"] {
        let headers = stateless_headers(name);
        let (reply, _) = post(&endpoint, &headers, &stateless_call(name)).await;
        assert_eq!(text(&reply), shown("none"), "{name}");
    }
}

#[tokio::test]
async fn a_call_in_a_session_sees_its_own_headers_and_the_session_id() {
    let endpoint = endpoint();
    let (_, session) = post(&endpoint, &[], &initialize("2025-11-25")).await;
    let session = session.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    let (reply, _) = post(&endpoint, &headers, &call("show")).await;
    assert_eq!(text(&reply), shown(&session));
}

#[tokio::test]
async fn a_call_in_a_batch_sees_the_parts_of_the_batch() {
    let endpoint = endpoint();
    let (_, session) = post(&endpoint, &[], &initialize("2025-03-26")).await;
    let session = session.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    let (reply, _) = post(&endpoint, &headers, &json!([call("show")])).await;
    assert_eq!(text(&reply[0]), shown(&session));
}

#[tokio::test]
async fn a_call_over_the_transport_of_2024_sees_the_parts_of_its_post() {
    let (endpoint, caller) = (endpoint(), Caller::new("test"));
    let open = Request::get("/sse").header("accept", "text/event-stream");
    let response = endpoint.sse(&caller, &open.body(()).unwrap(), "/messages");
    let mut stream = response.into_body();
    let mut event = async || {
        let frame = stream.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    };
    let first = event().await;
    let address = first.strip_prefix("event: endpoint\ndata: ").unwrap();
    let address = address.trim_end();
    let session = address.split_once("sessionId=").unwrap().1;
    for message in [initialize("2024-11-05"), call("show")] {
        let posted = endpoint.messages(&caller, request(address, &[], &message));
        assert_eq!(posted.await.status(), 202);
        let reply = event().await;
        let data = reply.lines().find_map(|line| line.strip_prefix("data: "));
        let reply: Value = serde_json::from_str(data.unwrap()).unwrap();
        if reply["id"] == 1 {
            assert_eq!(text(&reply), shown(session));
        }
    }
}

#[tokio::test]
async fn there_are_no_parts_on_stdio() {
    let server = Server::new("parts", "1").tool(show).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let result = peer.result("tools/call", json!({"name": "show"})).await;
    let expected = shown("none").replace("x-test=1", "x-test=none");
    let expected = expected.replace("tenant=acme", "tenant=none");
    assert_eq!(result["content"][0]["text"], expected);
}

#[tokio::test]
async fn a_layer_can_require_a_header() {
    let server = Server::new("parts", "1")
        .tool(show)
        .layer(layer::from_fn("tenant", |call, next| {
            Box::pin(async move {
                let parts = HttpRequestParts::of(&call);
                match parts.and_then(|parts| parts.headers().get("x-tenant")) {
                    Some(_) => next.call(call).await,
                    None => Err(Error::new(ErrorKind::NotFound, "X-Tenant is missing")),
                }
            })
        }))
        .build()
        .unwrap();
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let mut headers = stateless_headers("show").to_vec();
    let (reply, _) = post(&endpoint, &headers, &stateless_call("show")).await;
    assert!(reply.to_string().contains("X-Tenant is missing"), "{reply}");
    headers.push(("x-tenant", "acme"));
    let (reply, _) = post(&endpoint, &headers, &stateless_call("show")).await;
    assert_eq!(text(&reply), shown("none"));
}

/// The headers of a request are parts of a buffer of hyper, so each open stream would keep this buffer alive.
#[tokio::test]
async fn an_open_notification_stream_does_not_keep_the_parts_of_its_request() {
    let headers = [
        ("mcp-protocol-version", NEWEST_REVISION),
        ("mcp-method", "subscriptions/listen"),
    ];
    let mut body = stateless_call("show");
    body["method"] = json!("subscriptions/listen");
    body["params"]["notifications"] = json!({"toolsListChanged": true});
    let mut request = request("/mcp", &headers, &body);
    let kept = Arc::new(());
    request.extensions_mut().insert(kept.clone());
    let response = endpoint().handle(Caller::new("ann"), request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body();
    let mut text = String::new();
    while !text.contains("acknowledged") {
        let frame = stream.frame().await.unwrap().unwrap();
        text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
    }
    assert_eq!(Arc::strong_count(&kept), 1, "{text}");
}
