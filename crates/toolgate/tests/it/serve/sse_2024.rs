//! The transport of 2024-11-05: a stream of events, and posts beside it.

use super::{HANG, Scripted, Seen, desk::until, server};
use crate::official::{Side, Talk};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use toolgate::{
    Caller,
    edge::{
        ProtocolServer, ServerLimits,
        http::{Body, HttpEndpoint, HttpLimits},
    },
};

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const FOREVER: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}"#;
const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#;

fn endpoint(scripted: Arc<Scripted>, limits: HttpLimits) -> HttpEndpoint {
    HttpEndpoint::new(server(scripted), limits)
}

/// A client of that transport.
struct Old {
    endpoint: HttpEndpoint,
    caller: Caller,
    stream: Body,
    address: String,
    talk: Talk,
}

impl Old {
    async fn open(endpoint: &HttpEndpoint) -> Old {
        let caller = Caller::new("test");
        let response = get(endpoint, &caller);
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (endpoint, stream) = (endpoint.clone(), response.into_body());
        let mut old = Old {
            endpoint,
            caller,
            stream,
            address: String::new(),
            talk: Talk::of(Side::Server),
        };
        let first = old.event().await.unwrap();
        let address = first.strip_prefix("event: endpoint\ndata: ").unwrap();
        old.address = address.trim_end().to_owned();
        old
    }

    async fn initialized(endpoint: &HttpEndpoint) -> Old {
        let mut old = Old::open(endpoint).await;
        assert_eq!(old.post(OPEN).await, 202);
        let opened = old.message().await;
        assert!(
            opened.contains(r#""protocolVersion":"2024-11-05""#),
            "{opened}"
        );
        old
    }

    async fn post(&mut self, body: &str) -> u16 {
        self.talk.heard(body);
        let response = post(&self.endpoint, &self.caller, &self.address, &[], body).await;
        response.status().as_u16()
    }

    /// The next event; nothing at the end of the stream.
    async fn event(&mut self) -> Option<String> {
        let frame = tokio::time::timeout(HANG, self.stream.frame())
            .await
            .expect("an event");
        let data = frame?.unwrap().into_data().unwrap();
        Some(String::from_utf8(data.to_vec()).unwrap())
    }

    async fn message(&mut self) -> String {
        let event = self.event().await.expect("a message");
        let data = event.strip_prefix("event: message\ndata: ").unwrap();
        self.talk.said(data);
        data.trim_end().to_owned()
    }
}

fn get(endpoint: &HttpEndpoint, caller: &Caller) -> Response<Body> {
    let request = Request::get("/sse")
        .header("accept", "text/event-stream")
        .body(())
        .unwrap();
    endpoint.sse(caller, &request, "/messages")
}

async fn post(
    endpoint: &HttpEndpoint,
    caller: &Caller,
    address: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Body> {
    let mut request = Request::post(address);
    for (name, value) in [("content-type", "application/json")]
        .iter()
        .filter(|(n, _)| !headers.iter().any(|(h, _)| h == n))
        .chain(headers)
    {
        request = request.header(*name, *value);
    }
    let body = Full::<bytes::Bytes>::from(body.to_owned());
    endpoint.messages(caller, request.body(body).unwrap()).await
}

/// Holds: SSE1-02, SSE1-03, SSE1-04, HTTPL-32.
#[tokio::test]
async fn the_first_event_says_where_to_post_and_replies_come_on_the_stream() {
    let scripted = Scripted::new();
    let endpoint = endpoint(scripted.clone(), HttpLimits::default());
    let mut old = Old::initialized(&endpoint).await;
    let (path, id) = old.address.split_once("?sessionId=").unwrap();
    assert_eq!(path, "/messages", "relative, so of the same origin");
    assert!(id.len() >= 32, "not to be guessed: {id}");
    assert_eq!(old.post(PING).await, 202);
    assert_eq!(
        old.message().await,
        r#"{"jsonrpc":"2.0","id":"p","result":{}}"#
    );
    assert_eq!(old.post(ECHO).await, 202);
    let echoed = old.message().await;
    assert!(
        echoed.contains(r#"{\"a\":1}"#),
        "not the last event: {echoed}"
    );
    scripted.change();
    let told = old.message().await;
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
}

/// Holds: SSE1-02.
#[tokio::test]
async fn a_closed_stream_ends_all_that_runs() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let endpoint = endpoint(scripted, HttpLimits::default());
    let mut old = Old::initialized(&endpoint).await;
    assert_eq!(old.post(FOREVER).await, 202);
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    let Old {
        address, stream, ..
    } = old;
    drop(stream);
    until("it is dropped", || running.load(Ordering::SeqCst) == 0).await;
    let after = post(&endpoint, &Caller::new("test"), &address, &[], PING).await;
    assert_eq!(after.status(), 404);
}

/// Holds: SSE1-01.
#[tokio::test]
async fn the_session_is_the_callers_own() {
    let endpoint = endpoint(Scripted::new(), HttpLimits::default());
    let mut old = Old::initialized(&endpoint).await;
    let other = post(
        &endpoint,
        &Caller::new("other"),
        &old.address,
        &[],
        r#"{"jsonrpc":"2.0","id":"stolen","method":"ping"}"#,
    )
    .await;
    assert_eq!(other.status(), 404);
    for address in ["/messages", "/messages?sessionId=", "/messages?sessionId=x"] {
        let none = post(&endpoint, &old.caller, address, &[], PING).await;
        assert_eq!(none.status(), 404, "{address}");
    }
    let twice = format!("{}&sessionId=x", old.address);
    let both = post(&endpoint, &old.caller, &twice, &[], PING).await;
    assert_eq!(both.status(), 404);
    assert_eq!(old.post(PING).await, 202);
    let next = old.message().await;
    assert!(next.contains(r#""id":"p""#), "nothing came before: {next}");
}

/// Holds: SSE1-02.
#[tokio::test]
async fn what_is_no_message_is_refused_at_the_post() {
    let endpoint = endpoint(Scripted::new(), HttpLimits::default());
    let mut old = Old::initialized(&endpoint).await;
    let check = async |headers: &[(&str, &str)], body: &str, expected: u16| {
        let response = post(&endpoint, &old.caller, &old.address, headers, body).await;
        assert_eq!(response.status(), expected, "{headers:?} {body}");
    };
    check(&[("content-type", "text/plain")], PING, 415).await;
    check(&[("content-encoding", "gzip")], PING, 415).await;
    check(&[], "{", 400).await;
    check(&[], r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400).await;
    check(&[("mcp-protocol-version", "2025-06-18")], PING, 400).await;
    check(&[("mcp-protocol-version", "2024-11-05")], PING, 202).await;
    let long = " ".repeat(ServerLimits::default().json.bytes + 1);
    check(&[], &long, 413).await;
    old.talk.heard(PING);
    assert!(old.message().await.contains(r#""id":"p""#));
    let wrong = Request::get(&old.address)
        .body(Full::<bytes::Bytes>::default())
        .unwrap();
    let refused = endpoint.messages(&old.caller, wrong).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    let wrong = Request::post("/sse").body(()).unwrap();
    let refused = endpoint.sse(&old.caller, &wrong, "/messages");
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"GET".parse().unwrap())
    );
    let html = Request::get("/sse")
        .header("accept", "text/html")
        .body(())
        .unwrap();
    assert_eq!(
        endpoint
            .sse(&old.caller, &html, "/messages")
            .status()
            .as_u16(),
        406
    );
}

/// Holds: SSE1-02.
#[tokio::test]
async fn a_call_before_initialize_is_refused_on_record() {
    let seen = Arc::new(Seen::default());
    let server =
        ProtocolServer::new(Scripted::new(), "test", "1", ServerLimits::default()).unwrap();
    let server = Arc::new(server.with_rejection_log(seen.clone()));
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let mut old = Old::open(&endpoint).await;
    assert_eq!(old.post(ECHO).await, 400);
    assert_eq!(seen.calls(), ["http echo"]);
}

/// Holds: SSE1-02.
#[tokio::test]
async fn streams_have_limits() {
    let mut per_caller = HttpLimits::default();
    per_caller.max_listen_streams_per_caller = 1;
    let mut in_all = HttpLimits::default();
    in_all.max_sessions = 1;
    for limits in [per_caller, in_all] {
        let endpoint = endpoint(Scripted::new(), limits);
        let first = Old::open(&endpoint).await;
        assert_eq!(get(&endpoint, &first.caller).status(), 429);
        drop(first);
        Old::open(&endpoint).await;
    }
}

/// Holds: SSE1-02.
#[tokio::test(start_paused = true)]
async fn an_old_stream_ends() {
    let endpoint = endpoint(Scripted::new(), HttpLimits::default());
    let mut old = Old::initialized(&endpoint).await;
    tokio::time::advance(HttpLimits::default().max_session_age + Duration::from_secs(1)).await;
    while let Some(event) = old.event().await {
        assert_eq!(event, ": alive\n\n");
    }
    assert_eq!(old.post(PING).await, 404);
}

/// Holds: SSE1-02.
#[tokio::test]
async fn what_runs_may_end_when_the_server_stops() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let server = server(scripted);
    let endpoint = HttpEndpoint::new(server.clone(), HttpLimits::default());
    let mut idle = Old::initialized(&endpoint).await;
    let mut busy = Old::initialized(&endpoint).await;
    assert_eq!(busy.post(FOREVER).await, 202);
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    server.close();
    assert_eq!(idle.event().await, None);
    assert_eq!(busy.post(PING).await, 202);
    assert!(
        busy.message().await.contains(r#""id":"p""#),
        "still there for its call"
    );
    endpoint.close();
    assert_eq!(busy.event().await, None);
    until("it is dropped", || running.load(Ordering::SeqCst) == 0).await;
}
