//! T08: a server gets the headers that we make, and none that a client sent.

use super::{
    upstream::{Came, Upstream},
    web::{open, request},
};
use std::{collections::BTreeMap, sync::Arc};
use toolgate::{
    Service,
    core::Pipeline,
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
    },
};
use toolgate_testkit::SeededRng;

/// Headers that a client might hope to be passed on.
const NAMES: [&str; 44] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "cookie2",
    "x-api-key",
    "x-auth-token",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
    "proxy-authenticate",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-http-method-override",
    "x-original-url",
    "traceparent",
    "tracestate",
    "baggage",
    "last-event-id",
    "origin",
    "referer",
    "user-agent",
    "expect",
    "range",
    "if-match",
    "content-language",
    "mcp-param-where",
    "mcp-param-other",
    "mcp-param-",
    "mcp-param-authorization",
    "mcp-foo",
    "mcp-session",
    "mcp-session-id-2",
    "mcp-tenant",
    "x-mcp-header",
    "x-mcp-session-id",
    "x-planted",
    "sec-websocket-key",
];

/// Header names that our requests may have.
const OURS: [&str; 11] = [
    "accept",
    "cache-control",
    "content-length",
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-param-where",
    "mcp-protocol-version",
    "mcp-session-id",
    "user-agent",
];

/// Checks one request that came; the first words of what is wrong.
fn check(came: &Came, session: Option<&str>) {
    let mut seen = BTreeMap::new();
    for (name, value) in &came.headers {
        let value = value.to_str().unwrap();
        assert!(!value.contains("planted"), "{name}: {value}");
        assert!(OURS.contains(&name.as_str()), "{name}: {value}");
        assert!(seen.insert(name.as_str(), value).is_none(), "{name} twice");
    }
    assert_eq!(seen.get("mcp-session-id").copied(), session);
    if session.is_none() {
        assert_eq!(seen["mcp-protocol-version"], "2026-07-28");
        assert_eq!(seen["mcp-method"], came.method());
        let called = came.method() == "tools/call";
        assert_eq!(seen.get("mcp-name").copied(), called.then_some("echo"));
        let here = called.then_some("here");
        assert_eq!(seen.get("mcp-param-where").copied(), here);
    }
    assert!(!came.body.contains("planted"), "{}", came.body);
}

#[tokio::test]
async fn t08_no_header_of_a_client_reaches_a_server() {
    const SETS: usize = 10_000;
    let (mut dice, mut arrived, mut refused) = (SeededRng::new(0x2545_f491_4f6c_dd1d), 0, 0);
    for old in [false, true] {
        let upstream = Upstream::start(old).await;
        let remote: Arc<dyn Service> = Arc::new(upstream.open().await);
        let service = Arc::new(Pipeline::new().resolve().service(remote));
        let front = ProtocolServer::new(service, "gate", "1", ServerLimits::default()).unwrap();
        let endpoint = HttpEndpoint::new(Arc::new(front), HttpLimits::default());
        let session = open(&endpoint, "a", "2025-11-25").await;
        upstream.take();
        for round in 0..SETS / 2 {
            let value = format!("planted-{round}");
            let mut headers: Vec<(&str, &str)> = (0..=dice.below(12))
                .map(|_| (NAMES[dice.below(NAMES.len())], value.as_str()))
                .collect();
            headers.push(("mcp-session-id", &session));
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"where":"here"}}}"#;
            let answer = request(&endpoint, "a", "POST", &headers, body).await;
            let came = upstream.take();
            came.iter()
                .for_each(|came| check(came, old.then_some("theirs")));
            let calls = came.iter().filter(|came| came.method() == "tools/call");
            match (answer.status, calls.count()) {
                (200, 1) => arrived += 1,
                (400, 0) => refused += 1,
                other => panic!("{other:?} {headers:?}"),
            }
        }
    }
    println!(
        "T08: {SETS} sets of headers, {arrived} calls arrived, {refused} refused, 0 headers passed on"
    );
    assert!(arrived > SETS / 2);
}
