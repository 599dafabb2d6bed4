//! The HTTP endpoint: what each request gets, in both eras.

use super::{Scripted, desk::until, server};
use crate::official::Checked;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{sync::atomic::Ordering, time::Duration};
use toolgate::{
    Caller,
    edge::http::{HttpEndpoint, HttpLimits},
};

/// Every message in it is checked against the official schema.
pub(crate) type Body = Checked<toolgate::edge::http::Body>;

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

pub(crate) fn endpoint(scripted: std::sync::Arc<Scripted>) -> HttpEndpoint {
    let mut limits = HttpLimits::default();
    limits.stream_after = Duration::from_millis(50);
    HttpEndpoint::new(server(scripted), limits)
}

pub(crate) async fn send(
    endpoint: &HttpEndpoint,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Body> {
    exchange(endpoint, method, headers, body, body).await
}

/// The same, where the response is to a request that was `asked` before.
pub(crate) async fn exchange(
    endpoint: &HttpEndpoint,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
    asked: &str,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri("/mcp");
    let usual = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    for (name, value) in usual
        .iter()
        .filter(|(n, _)| !headers.iter().any(|(h, _)| h == n))
        .chain(headers)
    {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Full::<bytes::Bytes>::from(body.to_owned()))
        .unwrap();
    let session = headers.iter().find(|(name, _)| *name == "mcp-session-id");
    let response = endpoint.handle(Caller::new("test"), request).await;
    Checked::new(asked, session.map(|(_, id)| *id), response)
}

pub(crate) async fn text(response: Response<Body>) -> String {
    String::from_utf8(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec(),
    )
    .unwrap()
}

fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}",{MODERN}}}}}"#
    )
}

fn modern(name: &str) -> Vec<(&str, &str)> {
    vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ]
}

/// Holds: HTTPM-01, HTTPM-13, HTTPM-14
#[tokio::test]
async fn a_modern_call_is_answered_as_json_and_a_slow_one_as_a_stream() {
    let endpoint = endpoint(Scripted::new());
    let response = send(&endpoint, "POST", &modern("echo"), &call("echo")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(text(response).await.contains(r#""resultType":"complete""#));

    let body = call("count").replace(
        r#"Capabilities":{}"#,
        r#"Capabilities":{},"progressToken":"p""#,
    );
    let response = send(&endpoint, "POST", &modern("count"), &body).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let stream = text(response).await;
    let events: Vec<&str> = stream.lines().filter(|l| l.starts_with("data: ")).collect();
    assert_eq!(events.len(), 4, "{stream}");
    assert!(events[3].contains("counted"), "the reply is last: {stream}");
}

/// Holds: CANC-08
#[tokio::test]
async fn a_closed_modern_stream_cancels_the_call() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let endpoint = endpoint(scripted);
    let response = send(&endpoint, "POST", &modern("forever"), &call("forever")).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);
    drop(response);
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

/// Holds: HTTPL-01, HTTPL-16
#[tokio::test]
async fn one_endpoint_takes_post_and_get() {
    let endpoint = endpoint(Scripted::new());
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    assert_eq!(opened.status(), 200);
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let with = [("mcp-session-id", session.as_str())];
    let stream = send(&endpoint, "GET", &with, "").await;
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(send(&endpoint, "PUT", &with, "").await.status(), 405);
}

#[tokio::test]
async fn a_lost_connection_of_a_session_ends_nothing_but_delete_does() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let endpoint = endpoint(scripted);
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let with = [("mcp-session-id", session.as_str())];
    let forever = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}"#;
    drop(send(&endpoint, "POST", &with, forever).await);
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    // The session still answers, and the call still runs.
    let ping = send(
        &endpoint,
        "POST",
        &with,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    )
    .await;
    assert_eq!(text(ping).await, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(running.load(Ordering::SeqCst), 1);

    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(send(&endpoint, "POST", &with, cancel).await.status(), 202);
    until("the notification cancels", || {
        running.load(Ordering::SeqCst) == 0
    })
    .await;

    drop(send(&endpoint, "POST", &with, forever).await);
    until("it runs again", || running.load(Ordering::SeqCst) == 1).await;
    assert_eq!(send(&endpoint, "DELETE", &with, "").await.status(), 204);
    until("the end of the session cancels", || {
        running.load(Ordering::SeqCst) == 0
    })
    .await;
    assert_eq!(
        send(
            &endpoint,
            "POST",
            &with,
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#
        )
        .await
        .status(),
        404
    );
}

/// Holds: HTTPL-17
#[tokio::test]
async fn the_stream_of_a_session_has_no_answers() {
    let scripted = Scripted::new();
    let endpoint = endpoint(scripted.clone());
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let with = [("mcp-session-id", session.as_str())];
    let mut stream = send(&endpoint, "GET", &with, "").await.into_body();
    stream.frame().await.unwrap().unwrap();
    for id in 1..=20 {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let answer = text(send(&endpoint, "POST", &with, &body).await).await;
        assert!(answer.contains(&format!("\"id\":{id}")), "{answer}");
    }
    // Whatever reached the stream came before a change that was told later.
    let mut seen = String::new();
    let told = async {
        while !seen.contains("list_changed") {
            scripted.change();
            let frame = tokio::time::timeout(Duration::from_millis(20), stream.frame()).await;
            if let Ok(Some(Ok(frame))) = frame {
                seen += &String::from_utf8_lossy(&frame.into_data().unwrap());
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told)
        .await
        .unwrap();
    assert!(
        !seen.contains("\"result\"") && !seen.contains("\"id\":"),
        "{seen}"
    );
}

/// Holds: HTTPL-16
#[tokio::test]
async fn list_changes_reach_the_stream_of_the_session() {
    let scripted = Scripted::new();
    let endpoint = endpoint(scripted.clone());
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut stream = send(&endpoint, "GET", &[("mcp-session-id", &session)], "")
        .await
        .into_body();
    stream.frame().await.unwrap().unwrap();
    // The stream subscribes in a task of its own, so tell until it hears.
    let heard = async {
        loop {
            scripted.change();
            let frame = tokio::time::timeout(Duration::from_millis(20), stream.frame()).await;
            if let Ok(Some(Ok(frame))) = frame {
                return String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            }
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(10), heard)
        .await
        .unwrap();
    assert!(
        heard.contains("notifications/tools/list_changed"),
        "{heard}"
    );
}

/// One bad request: headers in the place of the good ones, body, and what it gets.
async fn check(headers: &[(&str, &str)], body: &str, status: u16, code: i64) -> Value {
    let response = send(&endpoint(Scripted::new()), "POST", headers, body).await;
    assert_eq!(response.status().as_u16(), status, "{headers:?} {body}");
    let text = text(response).await;
    let mut reply: Value = serde_json::from_str(&text).expect(&text);
    assert_eq!(reply["error"]["code"], code, "{headers:?} {body}: {text}");
    reply["error"].take()
}

/// Holds: HTTPM-09, HTTPM-19, HTTPM-20, HTTPM-21, HTTPM-23, HTTPL-31, VER-01
#[tokio::test]
async fn bad_requests_get_the_right_status_and_code() {
    let good = modern("echo");
    let change = |name: &str, value: &'static str| -> Vec<(String, String)> {
        let kept = good
            .iter()
            .filter(|(n, _)| *n != name)
            .map(|(n, v)| (n.to_string(), v.to_string()));
        kept.chain((!value.is_empty()).then(|| (name.to_owned(), value.to_owned())))
            .collect()
    };
    for (name, value) in [
        ("mcp-method", "tools/list"),
        ("mcp-method", "TOOLS/CALL"),
        ("mcp-method", ""),
        ("mcp-name", "count"),
        ("mcp-name", "Echo"),
        ("mcp-name", ""),
        ("mcp-name", "=?base64?Y291bnQ=?="),
        ("mcp-name", "=?base64?!!?="),
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        let headers = change(name, value);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        check(&headers, &call("echo"), 400, -32020).await;
    }
    let mut twice = good.clone();
    twice.push(("mcp-name", "echo"));
    check(&twice, &call("echo"), 400, -32020).await;
    let later = call("echo").replace("2026-07-28", "2099-01-01");
    let unknown = [("mcp-protocol-version", "2099-01-01")];
    let refused = check(&unknown, &later, 400, -32022).await;
    assert_eq!(
        refused["data"],
        json!({"supported": ["2026-07-28"], "requested": "2099-01-01"})
    );
    check(&unknown, &call("echo"), 400, -32020).await;
    check(&good, &later, 400, -32020).await;
    check(&good, "{", 400, -32700).await;
    check(&good, "[]", 400, -32600).await;
    check(
        &good,
        &call("echo").replace("\"id\":1", "\"id\":null"),
        400,
        -32600,
    )
    .await;
    check(
        &good,
        &call("echo").replace("\"params\":{", "\"params\":{\"name\":\"x\","),
        400,
        -32600,
    )
    .await;
    check(
        &[],
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        400,
        -32602,
    )
    .await;
    check(&[("content-type", "text/plain")], OPEN, 415, -32600).await;
    check(&[("accept", "application/json")], OPEN, 406, -32600).await;
    check(
        &[("mcp-session-id", "none")],
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        404,
        -32600,
    )
    .await;
    let mut no_method = modern("echo");
    no_method[1].1 = "no/such";
    check(
        &no_method,
        &call("echo").replace("tools/call", "no/such"),
        404,
        -32601,
    )
    .await;
    let large = format!("{OPEN}{}", " ".repeat(4 << 20));
    check(&[], &large, 413, -32600).await;
}

/// Holds: HTTPL-31
#[tokio::test]
async fn a_session_speaks_one_revision_whatever_the_method() {
    let endpoint = endpoint(Scripted::new());
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    for method in ["GET", "DELETE", "POST"] {
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", "1999-01-01"),
        ];
        let body = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        assert_eq!(
            send(&endpoint, method, &headers, body).await.status(),
            400,
            "{method}"
        );
    }
}

#[tokio::test]
async fn another_callers_session_is_not_there() {
    let endpoint = endpoint(Scripted::new());
    let opened = send(&endpoint, "POST", &[], OPEN).await;
    let request = Request::builder()
        .method("POST")
        .header("content-type", "application/json")
        .header("accept", "*/*")
        .header("mcp-session-id", &opened.headers()["mcp-session-id"])
        .body(Full::<bytes::Bytes>::from(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ))
        .unwrap();
    assert_eq!(
        endpoint
            .handle(Caller::new("somebody else"), request)
            .await
            .status(),
        404
    );
}

#[tokio::test]
async fn one_session_over_the_limit_ends_an_idle_one_and_never_a_busy_one() {
    let mut limits = HttpLimits::default();
    limits.max_sessions = 1;
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let endpoint = HttpEndpoint::new(server(scripted), limits);
    let first = send(&endpoint, "POST", &[], OPEN).await;
    let second = send(&endpoint, "POST", &[], OPEN).await;
    assert_eq!(second.status(), 200);
    let id = |response: &Response<Body>| {
        let id = response.headers()["mcp-session-id"].to_str().unwrap();
        id.to_owned()
    };
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let (first, second) = (id(&first), id(&second));
    let gone = send(&endpoint, "POST", &[("mcp-session-id", &first)], ping).await;
    assert_eq!(gone.status(), 404, "the idle one made room");
    let forever = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}"#;
    drop(send(&endpoint, "POST", &[("mcp-session-id", &second)], forever).await);
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    assert_eq!(send(&endpoint, "POST", &[], OPEN).await.status(), 503);
}
