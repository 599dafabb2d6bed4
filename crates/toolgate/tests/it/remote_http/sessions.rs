//! Sessions: their id, their end, and the next one.

use super::{
    posts::{called, done},
    server::{Asked, Server, legacy, quiet_legacy, soon, start},
};
use serde_json::{Value, json};
use toolgate::client::OpenError;

/// Plays the handshake that follows the end of a session.
async fn handshake(server: &Server, session: &str) {
    let hello = server.next().await;
    hello.welcome("2025-11-25", Some(session)).await;
    let done = server.next().await;
    assert_eq!(done.body["method"], "notifications/initialized");
    assert_eq!(done.header("mcp-session-id"), Some(session));
    done.answer("202 Accepted", &[], "").await;
}

/// The next POST; the stream that belongs to a new session is refused.
async fn next_post(server: &Server) -> Asked {
    let next = server.next().await;
    if next.method == "POST" {
        return next;
    }
    next.answer("405 Method Not Allowed", &[], "").await;
    server.next().await
}

/// Holds: HTTPL-24, HTTPL-27.
#[tokio::test]
async fn after_the_end_of_a_session_the_call_goes_out_in_a_new_one() {
    let endings = [
        ("404 Not Found", Value::Null),
        (
            "404 Not Found",
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}),
        ),
        (
            "400 Bad Request",
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}),
        ),
    ];
    for (status, body) in endings {
        let (remote, server) = legacy("2025-11-25").await;
        let outcome = called(&remote, &server, async |asked| {
            assert_eq!(asked.header("mcp-session-id"), Some("s1"));
            asked.json(status, body).await;
            handshake(&server, "s2").await;
            let again = next_post(&server).await;
            assert_eq!(again.body["method"], "tools/call");
            assert_eq!(again.header("mcp-session-id"), Some("s2"));
            again.result(done("again")).await;
        });
        assert_eq!(outcome.await, Ok("again".to_owned()), "{status}");
    }
}

#[tokio::test]
async fn a_session_is_opened_anew_once_for_a_call() {
    let (remote, server) = legacy("2025-11-25").await;
    let outcome = called(&remote, &server, async |asked| {
        asked.answer("404 Not Found", &[], "").await;
        handshake(&server, "s2").await;
        let again = next_post(&server).await;
        again.answer("404 Not Found", &[], "").await;
    });
    assert!(outcome.await.unwrap_err().contains("HTTP 404"));
}

#[tokio::test]
async fn a_handshake_that_fails_is_tried_again_by_the_next_call() {
    let (remote, server) = legacy("2025-11-25").await;
    let outcome = called(&remote, &server, async |asked| {
        asked.answer("404 Not Found", &[], "").await;
        let hello = server.next().await;
        hello
            .error("503 Service Unavailable", -32603, "starting", Value::Null)
            .await;
    });
    let error = outcome.await.unwrap_err();
    assert!(
        error.contains("ended its session") && error.contains("starting"),
        "{error}"
    );
    let outcome = called(&remote, &server, async |hello| {
        hello.welcome("2025-11-25", Some("s2")).await;
        server.next().await.answer("202 Accepted", &[], "").await;
        next_post(&server).await.result(done("back")).await;
    });
    assert_eq!(outcome.await, Ok("back".to_owned()));
}

/// A server that never gave a session has none to end.
#[tokio::test]
async fn a_404_without_a_session_is_a_404() {
    let (opening, server) = start().await;
    server.next().await.answer("404 Not Found", &[], "").await;
    server.next().await.welcome("2025-11-25", None).await;
    let ready = server.next().await;
    assert_eq!(ready.header("mcp-session-id"), None);
    ready.answer("202 Accepted", &[], "").await;
    let remote = soon(opening).await.unwrap().unwrap();
    server
        .next()
        .await
        .answer("405 Method Not Allowed", &[], "")
        .await;
    let outcome = called(&remote, &server, async |asked| {
        asked.answer("404 Not Found", &[], "").await;
    });
    assert!(outcome.await.unwrap_err().contains("HTTP 404"));
}

/// Holds: HTTPL-23.
#[tokio::test]
async fn a_session_id_is_plain_text_and_is_not_told() {
    for wrong in ["a b", "é", &"x".repeat(2000)] {
        let (opening, server) = start().await;
        server.next().await.answer("404 Not Found", &[], "").await;
        server.next().await.welcome("2025-11-25", Some(wrong)).await;
        let error = soon(opening).await.unwrap().err();
        assert!(matches!(error, Some(OpenError::Malformed(_))), "{error:?}");
    }
    let (remote, server) = legacy("2025-11-25").await;
    let outcome = called(&remote, &server, async |asked| {
        asked.answer("500 Internal Server Error", &[], "").await
    });
    let words = format!("{:?} {:?}", outcome.await, remote.status());
    assert!(!words.contains("s1"), "{words}");
}

/// Holds: HTTPL-27.
#[tokio::test]
async fn a_session_that_ends_while_nobody_asks_is_opened_anew_to_listen() {
    for status in ["404 Not Found", "400 Bad Request"] {
        let (_remote, server) = quiet_legacy("2025-11-25").await;
        let mut told = server.next().await.stream().await;
        told.raw("id: 1\nretry: 1\ndata:\n\n").await;
        told.end().await;
        let again = server.next().await;
        assert_eq!(again.header("mcp-session-id"), Some("s1"));
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "No valid session ID"}});
        again.json(status, error).await;
        handshake(&server, "s2").await;
        let listen = server.next().await;
        assert_eq!(listen.method, "GET");
        assert_eq!(listen.header("mcp-session-id"), Some("s2"));
        assert_eq!(listen.header("last-event-id"), None);
    }
}
