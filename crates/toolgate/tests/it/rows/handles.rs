//! T06 and T26: a session or a state is good for the caller and the endpoint that it was made for, as long as it lives.
//! For all others it is answered byte for byte like one that never was.

use super::web::{Answer, Old, hello, open, post_old, request};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use toolgate::{
    edge::http::{HttpEndpoint, HttpLimits},
    handlers::{Cx, HandlerExit, Server, Tool, ask},
    ids,
};

const OLD: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A route: a server of its own, which counts what runs.
fn route(name: &str, limits: HttpLimits) -> (HttpEndpoint, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let (one, two) = (ran.clone(), ran.clone());
    let object = json!({"type": "object"});
    let echo = Tool::dynamic("echo", object.clone(), move |_, _| {
        one.fetch_add(1, SeqCst);
        async { Ok::<_, HandlerExit>("echo") }
    });
    let asks = Tool::dynamic("asks", object, move |_, cx: Cx| {
        let two = two.clone();
        async move {
            let said = cx.ask("q", ask::text("Who?"))?;
            two.fetch_add(1, SeqCst);
            Ok::<_, HandlerExit>(said)
        }
    });
    // The same key on all routes: what keeps them apart is not that they cannot read each other.
    let server = Server::new(name, "1")
        .tool(echo)
        .tool(asks)
        .seal_key([7; 32]);
    (HttpEndpoint::new(server.build().unwrap(), limits), ran)
}

/// All that a session may be used for: method and body.
fn uses() -> Vec<(&'static str, String)> {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    vec![
        ("POST", call.to_owned()),
        (
            "POST",
            r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.to_owned(),
        ),
        (
            "POST",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
        ),
        (
            "POST",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
                .to_owned(),
        ),
        (
            "POST",
            r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}"#.to_owned(),
        ),
        ("POST", format!("[{call}]")),
        ("GET", String::new()),
        ("DELETE", String::new()),
    ]
}

async fn with(
    endpoint: &HttpEndpoint,
    caller: &str,
    session: &str,
    used: &(&str, String),
) -> Answer {
    let header = [("mcp-session-id", session)];
    request(endpoint, caller, used.0, &header, &used.1).await
}

/// Holds: SEC-01, SEC-08
#[tokio::test]
async fn t06_a_session_is_good_for_its_route_and_its_caller_only() {
    let routes = [
        route("one", HttpLimits::default()),
        route("two", HttpLimits::default()),
    ];
    let callers = ["a", "b"];
    let places: Vec<(usize, &str)> = (0..2).flat_map(|r| callers.map(|c| (r, c))).collect();
    let mut tried = 0;
    for revision in OLD {
        for &(route, caller) in &places {
            let session = open(&routes[route].0, caller, revision).await;
            let old = Old::open(&routes[route].0, caller).await;
            for &(there, other) in places.iter().filter(|place| **place != (route, caller)) {
                let endpoint = &routes[there].0;
                for used in uses() {
                    let unknown = with(endpoint, other, &ids::secret_id(), &used).await;
                    let foreign = with(endpoint, other, &session, &used).await;
                    assert_eq!(foreign, unknown, "{revision} {used:?}");
                    assert!(matches!(foreign.status, 400 | 404), "{foreign:?}");
                    tried += 1;
                    if used.0 == "POST" {
                        let nobody = format!("/messages?sessionId={}", ids::secret_id());
                        let unknown = post_old(endpoint, other, &nobody, &used.1).await;
                        let foreign = old.post(endpoint, other, &used.1).await;
                        assert_eq!((&foreign, foreign.status), (&unknown, 404));
                        tried += 1;
                    }
                }
            }
            // A session of one transport is none of the other, for its own caller too.
            let (endpoint, used) = (&routes[route].0, &uses()[0]);
            let (_, id) = old.address.split_once("sessionId=").unwrap();
            assert_eq!(with(endpoint, caller, id, used).await.status, 404);
            let crossed = format!("/messages?sessionId={session}");
            assert_eq!(
                post_old(endpoint, caller, &crossed, &used.1).await.status,
                404
            );
            assert_eq!(routes.iter().map(|r| r.1.load(SeqCst)).sum::<usize>(), 0);
            assert_eq!(
                with(endpoint, caller, &session, &uses()[1]).await.status,
                200
            );
        }
    }
    println!("T06: {tried} uses of foreign sessions, all like unknown ones, 0 calls ran");
}

const MODERN: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "asks"),
];

async fn asks(endpoint: &HttpEndpoint, caller: &str, state: Option<&str>) -> Value {
    let mut params = json!({"name": "asks", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    if let Some(state) = state {
        params["requestState"] = json!(state);
        params["inputResponses"] = json!({"q": {"action": "accept", "content": {"value": "me"}}});
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    request(endpoint, caller, "POST", &MODERN, &body.to_string())
        .await
        .json()
}

/// Holds: SEC-01, SEC-02
#[tokio::test]
async fn t06_a_state_is_good_for_its_route_and_its_caller_only() {
    let routes = [
        route("one", HttpLimits::default()),
        route("two", HttpLimits::default()),
    ];
    let mut tried = 0;
    for (route, caller) in [(0, "a"), (0, "b"), (1, "a"), (1, "b")] {
        let asked = asks(&routes[route].0, caller, None).await;
        let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
        for (there, other) in [(0, "a"), (0, "b"), (1, "a"), (1, "b")] {
            let before = routes[there].1.load(SeqCst);
            let used = asks(&routes[there].0, other, Some(&state)).await;
            let ran = routes[there].1.load(SeqCst) - before;
            if (there, other) == (route, caller) {
                assert_eq!(
                    (used["result"]["content"][0]["text"].as_str(), ran),
                    (Some("me"), 1)
                );
                continue;
            }
            let unknown = asks(&routes[there].0, other, Some(&"0".repeat(state.len()))).await;
            assert_eq!((&used, ran), (&unknown, 0));
            assert_eq!(used["error"]["code"], -32602);
            tried += 1;
        }
    }
    println!("T06: {tried} uses of foreign states, all like unknown ones, 0 calls ran");
}

/// After its end, by whatever it ended, a session is like one that never was, for its own caller too.
///
/// Holds: SEC-08
#[tokio::test]
async fn t26_a_captured_session_is_no_good_after_its_end() {
    let end = |limits| route("ends", limits);
    let mut idle = HttpLimits::default();
    idle.session_idle_timeout = Duration::ZERO;
    let mut aged = HttpLimits::default();
    aged.max_session_age = Duration::ZERO;
    let mut tried = 0;
    for (limits, deleted) in [(HttpLimits::default(), true), (idle, false), (aged, false)] {
        for revision in OLD {
            let (endpoint, ran) = end(limits.clone());
            let session = open(&endpoint, "a", revision).await;
            if deleted {
                let delete = with(&endpoint, "a", &session, &uses()[7]).await;
                assert_eq!(delete.status, 204);
            }
            for caller in ["a", "b"] {
                for used in uses() {
                    let unknown = with(&endpoint, caller, &ids::secret_id(), &used).await;
                    let replayed = with(&endpoint, caller, &session, &used).await;
                    assert_eq!(replayed, unknown, "{revision} {used:?}");
                    tried += 1;
                }
            }
            assert_eq!(ran.load(SeqCst), 0);
        }
    }
    let (endpoint, ran) = end(HttpLimits::default());
    let old = Old::open(&endpoint, "a").await;
    let address = old.address.clone();
    drop(old);
    for used in uses().iter().filter(|used| used.0 == "POST") {
        assert_eq!(
            post_old(&endpoint, "a", &address, &used.1).await.status,
            404
        );
        tried += 1;
    }
    assert_eq!(ran.load(SeqCst), 0);
    println!("T26: {tried} replays after logout, idleness or age, all like unknown ones");
}

/// Nobody chooses the id of a session: one that a client brings along is not taken over.
///
/// Holds: SEC-08
#[tokio::test]
async fn t26_a_session_cannot_be_planted() {
    let (endpoint, _) = route("one", HttpLimits::default());
    let planted = ids::secret_id();
    let header = [("mcp-session-id", planted.as_str())];
    let opened = request(&endpoint, "a", "POST", &header, &hello("2025-11-25")).await;
    let given = opened.headers.get("mcp-session-id");
    assert!(given.is_none_or(|id| id != planted.as_str()));
    let used = with(&endpoint, "a", &planted, &uses()[1]).await;
    assert_eq!(used.status, 404);
}
