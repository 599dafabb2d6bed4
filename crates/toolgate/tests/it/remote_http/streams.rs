//! Responses that are streams: what comes on them, how they end, how they are taken up again.

use super::{
    super::remote::peer::{all, call, tool},
    posts::{called, done},
    server::{Heard, Server, changes_of, legacy, modern, quiet_legacy, soon},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolgate::{Service, handlers::ask::Reply};

#[tokio::test]
async fn progress_comes_before_the_reply() {
    for modern_era in [true, false] {
        let (remote, server) = if modern_era {
            modern(json!({})).await
        } else {
            legacy("2025-11-25").await
        };
        let (reporter, heard) = Heard::reporter();
        let mut wanted = call("echo", "{}");
        wanted.reporter = reporter;
        let (outcome, ()) = soon(async {
            tokio::join!(remote.call(wanted), async {
                let mut told = server.next().await.stream().await;
                let token = told.token.clone();
                told.message(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})).await;
                told.result(done("x")).await;
                told.end().await;
            })
        })
        .await;
        outcome.unwrap();
        assert_eq!(heard.progress(), [1.0]);
    }
}

/// Holds: CANC-07.
#[tokio::test]
async fn a_modern_call_that_is_dropped_closes_its_stream() {
    let (remote, server) = modern(json!({})).await;
    let asked_for = async |call: &mut std::pin::Pin<&mut _>| {
        tokio::select! {
            asked = server.next() => asked,
            _ = call => panic!("nobody answered"),
        }
    };
    let told = {
        let mut call = std::pin::pin!(remote.call(call("echo", "{}")));
        let mut told = asked_for(&mut call).await.stream().await;
        told.raw(": here\n\n").await;
        told
    };
    told.closed().await;
    let asked = {
        let mut call = std::pin::pin!(remote.call(call("echo", "{}")));
        asked_for(&mut call).await
    };
    asked.closed().await;
    let nothing = server.next_within(Duration::from_millis(100)).await;
    assert!(nothing.is_none(), "no notification");
}

/// Holds: CANC-04, CANC-07, CANC-09, HTTPL-14.
#[tokio::test]
async fn a_legacy_call_that_is_dropped_is_cancelled_by_a_notification() {
    let (remote, server) = legacy("2025-11-25").await;
    let asked = {
        let call = remote.call(call("echo", "{}"));
        tokio::pin!(call);
        tokio::select! {
            asked = server.next() => asked,
            _ = &mut call => panic!("nobody answered"),
        }
    };
    let cancel = server.next().await;
    assert_eq!(cancel.body["method"], "notifications/cancelled");
    assert_eq!(cancel.body["params"]["requestId"], asked.body["id"]);
    assert_eq!(cancel.header("mcp-session-id"), Some("s1"));
    cancel.answer("202 Accepted", &[], "").await;
    // The late answer reaches nobody; the next call gets its own.
    asked.result(done("late")).await;
    let next = called(&remote, &server, async |asked| {
        asked.result(done("own")).await
    });
    assert_eq!(next.await, Ok("own".to_owned()));
}

/// Holds: CANC-09.
#[tokio::test]
async fn an_answer_that_comes_twice_counts_once() {
    let (remote, server) = modern(json!({})).await;
    let first = called(&remote, &server, async |asked| {
        let mut told = asked.stream().await;
        told.result(done("one")).await;
        told.result(done("two")).await;
        told.end().await;
    });
    assert_eq!(first.await, Ok("one".to_owned()));
    let next = called(&remote, &server, async |asked| {
        asked.result(done("three")).await
    });
    assert_eq!(next.await, Ok("three".to_owned()));
}

/// Holds: HTTPL-10, HTTPL-11, HTTPL-20.
#[tokio::test]
async fn a_legacy_stream_that_was_closed_is_taken_up_after_the_wait() {
    let (remote, server) = legacy("2025-11-25").await;
    let outcome = called(&remote, &server, async |asked| {
        let mut told = asked.stream().await;
        told.raw("id: e1\nretry: 500\ndata:\n\n").await;
        let id = told.id.clone();
        told.end().await;
        let closed = Instant::now();
        let again = server.next().await;
        let waited = closed.elapsed();
        assert!(waited >= Duration::from_millis(450), "{waited:?}");
        assert!(waited < Duration::from_secs(5), "{waited:?}");
        assert_eq!(again.method, "GET");
        assert_eq!(again.header("last-event-id"), Some("e1"));
        assert_eq!(again.header("mcp-session-id"), Some("s1"));
        assert_eq!(again.header("accept"), Some("text/event-stream"));
        // Once more, and the wait is still known.
        let mut told = again.stream().await;
        told.raw("id: e2\ndata:\n\n").await;
        drop(told);
        let again = server.next().await;
        assert_eq!(again.header("last-event-id"), Some("e2"));
        let mut told = again.stream().await;
        told.message(&json!({"jsonrpc": "2.0", "id": id, "result": done("at last")}))
            .await;
        told.end().await;
    });
    assert_eq!(outcome.await, Ok("at last".to_owned()));
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_loses_its_request() {
    let (remote, server) = legacy("2025-11-25").await;
    // Without an id of an event there is nothing to take up.
    let outcome = called(&remote, &server, async |asked| {
        asked.stream().await.end().await
    });
    assert!(outcome.await.unwrap_err().contains("before the answer"));
    let outcome = called(&remote, &server, async |asked| {
        let mut told = asked.stream().await;
        told.raw("id: e1\nretry: 1\ndata:\n\n").await;
        told.end().await;
        let again = server.next().await;
        again.answer("400 Bad Request", &[], "").await;
    });
    assert!(outcome.await.unwrap_err().contains("not known whether"));
    // A modern stream is never taken up.
    let (remote, server) = modern(json!({})).await;
    let outcome = called(&remote, &server, async |asked| {
        let mut told = asked.stream().await;
        told.raw("id: e1\nretry: 1\ndata:\n\n").await;
        told.end().await;
    });
    assert!(outcome.await.unwrap_err().contains("not known whether"));
    assert!(
        server
            .next_within(Duration::from_millis(100))
            .await
            .is_none()
    );
}

/// Holds: HTTPL-15, HTTPL-20.
#[tokio::test]
async fn a_legacy_server_tells_changes_on_its_own_stream() {
    let (remote, server) = quiet_legacy("2025-06-18").await;
    let listen = server.next().await;
    assert_eq!(listen.method, "GET");
    assert_eq!(listen.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(listen.header("accept"), Some("text/event-stream"));
    assert_eq!(listen.header("last-event-id"), None);
    let mut told = listen.stream().await;
    let mut changes = changes_of(&remote).await;
    told.raw("id: 7\nretry: 20\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n").await;
    soon(changes.next()).await;
    // A ping on it is answered by a POST.
    told.message(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .await;
    let pong = server.next().await;
    assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    pong.answer("202 Accepted", &[], "").await;
    told.end().await;
    let again = server.next().await;
    assert_eq!(
        (again.method.as_str(), again.header("last-event-id")),
        ("GET", Some("7"))
    );
}

#[tokio::test]
async fn a_permanent_no_to_the_stream_ends_the_asking() {
    let check = async |status: &str| {
        let (remote, server) = quiet_legacy("2025-11-25").await;
        server.next().await.answer(status, &[], "").await;
        let again = server.next_within(Duration::from_millis(1500)).await;
        assert!(again.is_none(), "{status}");
        let fine = called(&remote, &server, async |asked| {
            asked.result(done("on")).await
        });
        assert_eq!(fine.await, Ok("on".to_owned()));
    };
    tokio::join!(
        check("400 Bad Request"),
        check("401 Unauthorized"),
        check("403 Forbidden"),
        check("405 Method Not Allowed"),
        check("410 Gone"),
        check("200 OK"),
    );
}

#[tokio::test]
async fn a_passing_no_to_the_stream_is_asked_again() {
    let (_remote, server) = quiet_legacy("2025-11-25").await;
    server
        .next()
        .await
        .answer("503 Service Unavailable", &[], "")
        .await;
    drop(server.next().await);
    assert_eq!(server.next().await.method, "GET");
}

/// Holds: HTTPM-17.
#[tokio::test]
async fn a_modern_server_tells_changes_on_a_post_that_stays() {
    let (remote, server) = modern(json!({"tools": {"listChanged": true}})).await;
    let listen = server.next().await;
    assert_eq!(
        (listen.method.as_str(), &listen.body["method"]),
        ("POST", &json!("subscriptions/listen"))
    );
    let mut told = listen.stream().await;
    let meta = json!({"io.modelcontextprotocol/subscriptionId": told.id});
    let note =
        |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}});
    told.message(&note("notifications/subscriptions/acknowledged"))
        .await;
    let mut changes = changes_of(&remote).await;
    told.message(&note("notifications/tools/list_changed"))
        .await;
    soon(changes.next()).await;
    // Others run meanwhile.
    let (list, ()) = tokio::join!(remote.list(all()), async {
        let asked = server.next().await;
        asked.result(json!({"tools": [tool("a")]})).await;
    });
    assert_eq!(list.unwrap().items().len(), 1);
    // A stream that breaks is opened again, and the server is not lost.
    let id = told.id.clone();
    drop(told);
    let again = server.next().await;
    assert_eq!(again.body["method"], "subscriptions/listen");
    assert_ne!(again.body["id"], id);
    assert_eq!(remote.status().lost_reason, None);
    again
        .error("404 Not Found", -32601, "no", Value::Null)
        .await;
}

/// A question for which there is no stream yet is lost by many servers.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
async fn a_client_that_answers_is_open_once_the_server_can_ask() {
    let server = Server::new().await;
    let url = server.url.clone();
    let client = toolgate::Client::builder().on_elicit(|_| async { Reply::Declined });
    let mut opening = tokio::spawn(async move { client.connect(&url).await });
    server.next().await.answer("404 Not Found", &[], "").await;
    let hello = server.next().await;
    hello.welcome("2025-11-25", Some("s1")).await;
    server.next().await.answer("202 Accepted", &[], "").await;
    let listen = server.next().await;
    assert_eq!(listen.method, "GET");
    let early = tokio::time::timeout(Duration::from_millis(200), &mut opening).await;
    assert!(early.is_err(), "it is open before the server can ask");
    let _told = listen.stream().await;
    soon(opening).await.unwrap().unwrap();
}
