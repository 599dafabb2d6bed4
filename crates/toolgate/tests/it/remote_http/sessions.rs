//! Sessions: their id, their end, and the next one.

use super::{
    posts::{called, done},
    server::{Asked, Server, legacy, quiet_legacy, soon, start},
};
use crate::remote::peer::{all, call};
use serde_json::{Value, json};
use toolgate::{Caller, Service, client::OpenError, core::ChangeFilter};

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

/// A call that was refused with 400 and words of a session may have run: it is not sent twice. The next one opens a new
/// session, and a list, which does nothing, goes out again at once.
#[tokio::test]
async fn words_of_a_session_send_no_call_twice() {
    let words = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}});
    let (remote, server) = legacy("2025-11-25").await;
    let outcome = called(&remote, &server, async |asked| {
        asked.json("400 Bad Request", words.clone()).await;
    });
    let error = outcome.await.unwrap_err();
    assert!(error.contains("No valid session ID") && error.contains("not resent"));
    let outcome = called(&remote, &server, async |hello| {
        hello.welcome("2025-11-25", Some("s2")).await;
        server.next().await.answer("202 Accepted", &[], "").await;
        let next = next_post(&server).await;
        assert_eq!(next.header("mcp-session-id"), Some("s2"));
        next.result(done("next")).await;
    });
    assert_eq!(outcome.await, Ok("next".to_owned()));
    let list = async {
        let list = next_post(&server).await;
        assert_eq!(list.body["method"], "tools/list");
        list.json("400 Bad Request", words.clone()).await;
        handshake(&server, "s3").await;
        let again = next_post(&server).await;
        assert_eq!(again.body["method"], "tools/list");
        again.result(json!({"tools": []})).await;
    };
    let (listed, ()) = soon(async { tokio::join!(remote.list(all()), list) }).await;
    assert!(listed.unwrap().items().is_empty());
}

/// A new session repeats the subscriptions of the old one, and reports possible changes in between.
#[tokio::test]
async fn a_new_session_is_asked_to_tell_what_the_old_one_told() {
    let (opening, server) = start().await;
    server.next().await.answer("404 Not Found", &[], "").await;
    let hello = server.next().await;
    let abilities = json!({"tools": {}, "resources": {"subscribe": true}});
    hello
        .welcome_with("2025-11-25", "s1", abilities.clone())
        .await;
    server.next().await.answer("202 Accepted", &[], "").await;
    let remote = soon(opening).await.unwrap().unwrap();
    let subscribed = async |session: &str| {
        let asked = next_post(&server).await;
        assert_eq!(asked.body["method"], "resources/subscribe");
        assert_eq!(asked.body["params"]["uri"], "t://a");
        assert_eq!(asked.header("mcp-session-id"), Some(session));
        asked.result(json!({})).await;
    };
    let mut want = ChangeFilter::all_lists(Caller::new("test"));
    want.uris = vec!["t://a".to_owned()];
    let (changes, ()) = soon(async { tokio::join!(remote.changes(want), subscribed("s1")) }).await;
    let mut changes = changes.unwrap();
    let (outcome, ()) = soon(async {
        tokio::join!(remote.call(call("echo", "{}")), async {
            next_post(&server)
                .await
                .answer("404 Not Found", &[], "")
                .await;
            let hello = server.next().await;
            hello.welcome_with("2025-11-25", "s2", abilities).await;
            server.next().await.answer("202 Accepted", &[], "").await;
            // The call and the subscription go out in either order.
            for _ in 0..2 {
                let asked = next_post(&server).await;
                assert_eq!(asked.header("mcp-session-id"), Some("s2"));
                match asked.body["method"].as_str().unwrap() {
                    "tools/call" => asked.result(done("again")).await,
                    "resources/subscribe" => asked.result(json!({})).await,
                    other => panic!("{other}"),
                }
            }
        })
    })
    .await;
    outcome.unwrap();
    let changed = soon(async {
        loop {
            let changed = changes.next().await.unwrap();
            if !changed.updated.is_empty() {
                return changed;
            }
        }
    });
    assert_eq!(*changed.await.updated, ["t://a".into()]);
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
