//! Detection of a server's era, and the handshake.

use super::{
    super::remote::peer::{all, call, options},
    server::{Asked, discovered, legacy, modern, soon, start, start_with},
};
use serde_json::{Value, json};
use toolgate::{
    Service,
    client::{HttpOptions, OpenError, RemoteServer},
    core::ErrorKind,
};

/// Holds: HTTPM-05, HTTPM-06, HTTPM-07, HTTPM-18, HTTPM-24, VER-11.
#[tokio::test]
async fn a_modern_server_is_found_by_one_post() {
    let (opening, server) = start().await;
    let probe = server.next().await;
    assert_eq!(
        (probe.method.as_str(), probe.path.as_str()),
        ("POST", "/mcp")
    );
    assert_eq!(probe.body["method"], "server/discover");
    assert_eq!(
        probe.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(probe.header("content-type"), Some("application/json"));
    assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
    let meta = &probe.body["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(probe.header("mcp-method"), Some("server/discover"));
    assert_eq!(probe.header("mcp-name"), None);
    assert_eq!(probe.header("mcp-session-id"), None);
    probe.result(discovered(json!({}))).await;
    let status = soon(opening).await.unwrap().unwrap().status();
    assert_eq!((status.revision, status.lost_reason), ("2026-07-28", None));
}

/// Holds: VER-02, VER-12, VER-15.
#[tokio::test]
async fn a_modern_error_means_modern_and_the_probe_is_repeated() {
    let refusals = [
        (
            -32022,
            json!({"supported": ["2026-07-28"], "requested": "2026-07-28"}),
        ),
        (-32020, Value::Null),
        (-32021, json!({"requiredCapabilities": {}})),
    ];
    for (code, data) in refusals {
        let (opening, server) = start().await;
        let probe = server.next().await;
        probe.error("400 Bad Request", code, "no", data).await;
        let again = server.next().await;
        assert_eq!(again.body["method"], "server/discover", "{code}");
        again.result(discovered(json!({"tools": {}}))).await;
        let status = soon(opening).await.unwrap().unwrap().status();
        assert_eq!(status.revision, "2026-07-28");
    }
}

/// Holds: VER-12, VER-13, VER-15, HTTPL-04, HTTPL-24, HTTPL-29, LIFE-12, HTTPL-05
#[tokio::test]
async fn any_other_refusal_means_a_handshake() {
    let refusals = [
        ("400 Bad Request", "", ""),
        ("400 Bad Request", "text/plain", "what?"),
        (
            "400 Bad Request",
            "application/json",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#,
        ),
        ("404 Not Found", "text/html", "<h1>?</h1>"),
        ("405 Method Not Allowed", "", ""),
        ("406 Not Acceptable", "", ""),
        (
            "422 Unprocessable Entity",
            "application/json",
            r#"{"error":-32022}"#,
        ),
        ("500 Internal Server Error", "", ""),
        ("202 Accepted", "", ""),
        ("200 OK", "text/html", "hello"),
        (
            "200 OK",
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}"#,
        ),
    ];
    for (status, kind, body) in refusals {
        let (opening, server) = start().await;
        let probe = server.next().await;
        probe.answer(status, &[("content-type", kind)], body).await;
        let hello = server.next().await;
        is_post(&hello);
        assert_eq!(hello.header("mcp-protocol-version"), None);
        assert_eq!(hello.header("mcp-method"), None);
        hello.welcome("2025-06-18", Some("s1")).await;
        let done = server.next().await;
        is_post(&done);
        assert_eq!(done.body["method"], "notifications/initialized");
        assert_eq!(done.header("mcp-session-id"), Some("s1"), "{status}");
        assert_eq!(done.header("mcp-protocol-version"), Some("2025-06-18"));
        done.answer("202 Accepted", &[], "").await;
        let status = soon(opening).await.unwrap().unwrap().status();
        assert_eq!(status.revision, "2025-06-18");
    }
}

/// One message, sent as the pages on Streamable HTTP want it.
fn is_post(asked: &Asked) {
    assert_eq!(asked.method, "POST");
    assert_eq!(
        asked.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert!(asked.body.is_object(), "{}", asked.body);
}

/// Requests, answers and notifications of a session, two of them at once.
///
/// Holds: HTTPL-04
#[tokio::test]
async fn each_message_of_a_session_is_its_own_post() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (remote, server) = legacy(revision).await;
        let calls =
            async { tokio::join!(remote.call(call("a", "{}")), remote.call(call("b", "{}"))) };
        let (both, ()) = tokio::join!(calls, async {
            let (first, second) = (server.next().await, server.next().await);
            for asked in [&first, &second] {
                is_post(asked);
                assert_eq!(asked.body["method"], "tools/call", "{revision}");
            }
            assert_ne!(first.body["id"], second.body["id"]);
            let mut told = first.stream().await;
            told.message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))
                .await;
            let pong = server.next().await;
            is_post(&pong);
            assert_eq!(pong.body["id"], "p", "{revision}");
            pong.answer("202 Accepted", &[], "").await;
            told.result(json!({"content": []})).await;
            told.end().await;
            second.result(json!({"content": []})).await;
        });
        assert!(both.0.is_ok() && both.1.is_ok(), "{revision}");
        let mut running = remote.call(call("slow", "{}"));
        let held = tokio::select! {
            _ = &mut running => panic!("nobody answered"),
            asked = server.next() => asked,
        };
        drop(running);
        let cancel = server.next().await;
        is_post(&cancel);
        assert_eq!(cancel.body["method"], "notifications/cancelled");
        assert_eq!(cancel.body["params"]["requestId"], held.body["id"]);
    }
}

async fn fails(opening: super::super::remote::peer::Opening) -> OpenError {
    soon(opening)
        .await
        .unwrap()
        .err()
        .expect("it cannot be opened")
}

#[tokio::test]
async fn who_may_not_come_in_hears_why() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (opening, server) = start().await;
        let probe = server.next().await;
        probe
            .error(status, -32001, "ask \u{1b}[31mBob", Value::Null)
            .await;
        let error = fails(opening).await.to_string();
        assert!(error.contains(&status[..3]), "{error}");
        assert!(error.contains("ask Bob"), "{error}");
    }
}

#[tokio::test]
async fn a_refused_handshake_carries_the_words_of_the_server() {
    let refusals = [
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"too old"}}"#,
        ),
        ("422 Unprocessable Entity", r#"{"message":"too old"}"#),
        (
            "401 Unauthorized",
            r#"{"error":"invalid_token","error_description":"too old"}"#,
        ),
        ("503 Service Unavailable", r#"{"error":"too old"}"#),
        (
            "200 OK",
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"too old"}}"#,
        ),
    ];
    for (status, body) in refusals {
        let (opening, server) = start().await;
        server.next().await.answer("404 Not Found", &[], "").await;
        let hello = server.next().await;
        hello
            .answer(status, &[("content-type", "application/json")], body)
            .await;
        if status.starts_with("400") {
            // It could be a server of 2024-11-05.
            let get = server.next().await;
            assert_eq!(get.method, "GET");
            get.answer("405 Method Not Allowed", &[], "").await;
        }
        let error = fails(opening).await;
        assert!(error.to_string().contains("too old"), "{status}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_server_is_said_so() {
    // The listener is gone, so nobody answers there.
    let url = super::server::Server::new().await.url;
    let error = soon(RemoteServer::connect(
        &url,
        options(),
        HttpOptions::default(),
    ))
    .await;
    let error = error.err().unwrap();
    assert!(
        matches!(&error, OpenError::Unreachable(words) if words.contains("refused")),
        "{error}"
    );
    let url = "ftp://a.test/";
    let error = RemoteServer::connect(url, options(), HttpOptions::default())
        .await
        .err();
    assert!(matches!(error, Some(OpenError::Unusable(_))), "{error:?}");
}

/// Holds: BASE-28, HTTPM-08.
#[tokio::test]
async fn a_modern_server_that_asks_is_not_answered() {
    let (opening, server) = start().await;
    let mut probe = server.next().await.stream().await;
    probe
        .message(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}))
        .await;
    probe.result(discovered(json!({}))).await;
    probe.end().await;
    let remote = soon(opening).await.unwrap().unwrap();
    assert_eq!(remote.status().counters.stray_requests, 1);
    let list = tokio::join!(remote.list(all()), async {
        let next = server.next().await;
        assert_eq!(next.body["method"], "tools/list", "and nothing before it");
        next.result(json!({"tools": []})).await;
    });
    list.0.unwrap();
}

/// Holds: HTTPL-05.
#[tokio::test]
async fn a_ping_during_the_handshake_is_answered_in_the_session() {
    let (opening, server) = start().await;
    server.next().await.answer("404 Not Found", &[], "").await;
    let hello = server.next().await;
    let mut hello = hello.stream_with("mcp-session-id: s9\r\n").await;
    hello
        .message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))
        .await;
    let pong = server.next().await;
    assert_eq!(
        pong.body,
        json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    assert_eq!(pong.header("mcp-session-id"), Some("s9"));
    pong.answer("202 Accepted", &[], "").await;
    hello
        .result(super::super::remote::peer::welcome("2025-11-25", json!({})))
        .await;
    hello.end().await;
    server.next().await.answer("202 Accepted", &[], "").await;
    assert_eq!(
        soon(opening).await.unwrap().unwrap().status().revision,
        "2025-11-25"
    );
}

#[tokio::test]
async fn headers_of_the_operator_go_with_every_request() {
    let http = HttpOptions::default()
        .header("authorization", "Bearer k")
        .unwrap();
    let (opening, server) = start_with(options(), http).await;
    let probe = server.next().await;
    assert_eq!(probe.header("authorization"), Some("Bearer k"));
    assert!(!probe.names().contains(&"cookie"));
    let answer = json!({"jsonrpc": "2.0", "id": probe.body["id"], "result": discovered(json!({}))});
    let headers = [("content-type", "application/json"), ("set-cookie", "a=b")];
    probe.answer("200 OK", &headers, &answer.to_string()).await;
    let remote = soon(opening).await.unwrap().unwrap();
    let (list, ()) = tokio::join!(remote.list(all()), async {
        let next = server.next().await;
        assert_eq!(next.header("authorization"), Some("Bearer k"));
        assert_eq!(next.header("cookie"), None);
        next.result(json!({"tools": []})).await;
    });
    list.unwrap();
}

/// The server is probed once, and again when its era proves wrong: here by an error that could be of either era.
///
/// Holds: VER-08.
#[tokio::test]
async fn a_server_that_changes_its_era_has_to_be_opened_anew() {
    let legacy = |code: i64| json!({"code": code, "message": "no session"});
    let refusals = [
        (-32022, json!({"supported": ["2027-01-01"]}), None),
        (-32000, Value::Null, Some(legacy(-32000))),
        (-32600, Value::Null, Some(legacy(-32601))),
        (7, Value::Null, Some(legacy(7))),
    ];
    for (code, data, probed) in refusals {
        let (remote, server) = modern(json!({})).await;
        for _ in 0..3 {
            let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
                let asked = server.next().await;
                assert_eq!(asked.body["method"], "tools/call", "no second probe");
                asked.result(json!({"content": []})).await;
            });
            outcome.unwrap();
        }
        let (list, ()) = tokio::join!(remote.list(all()), async {
            let asked = server.next().await;
            asked.error("400 Bad Request", code, "no", data).await;
            if let Some(error) = probed {
                let probe = server.next().await;
                assert_eq!(probe.body["method"], "server/discover", "{code}");
                let body = json!({"jsonrpc": "2.0", "id": probe.body["id"], "error": error});
                probe.json("400 Bad Request", body).await;
            }
        });
        assert!(list.is_err());
        let why = soon(remote.closed()).await;
        assert!(why.contains("no longer supports"), "{code}: {why}");
    }
}

/// An error says nothing of the era by a code of the range that implementations use as they like: the server is probed, and
/// stays open where it still answers.
///
/// Holds: BASE-19, VER-08
#[tokio::test]
async fn codes_of_the_implementation_defined_range_have_no_meaning_over_http() {
    let (remote, server) = modern(json!({})).await;
    let data = json!({"requiredCapabilities": {"sampling": {}}, "supported": ["2025-11-25"], "requested": "x"});
    let range = (-32019..=-32000_i64).filter(|code| *code != -32002);
    for code in range.chain([7]) {
        for status in ["200 OK", "400 Bad Request"] {
            let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
                let asked = server.next().await;
                asked.error(status, code, "no", data.clone()).await;
                if status != "200 OK" {
                    let probe = server.next().await;
                    assert_eq!(probe.body["method"], "server/discover", "{code}");
                    probe.result(discovered(json!({}))).await;
                }
            });
            assert_eq!(
                *outcome.unwrap_err().kind(),
                ErrorKind::JsonRpc(code),
                "{status}"
            );
        }
    }
    // A probe that fails says nothing either.
    for status in [
        "500 Internal Server Error",
        "503 Service Unavailable",
        "403 Forbidden",
    ] {
        let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
            let asked = server.next().await;
            asked
                .error("400 Bad Request", -32000, "no", Value::Null)
                .await;
            server.next().await.answer(status, &[], "").await;
        });
        assert_eq!(*outcome.unwrap_err().kind(), ErrorKind::JsonRpc(-32000));
    }
    assert_eq!(remote.status().lost_reason, None);
}

/// Holds: HTTPL-28.
#[tokio::test]
async fn a_session_is_ended_when_it_is_no_longer_used() {
    let (remote, server) = legacy("2025-11-25").await;
    drop(remote);
    let end = server.next().await;
    assert_eq!(end.method, "DELETE");
    assert_eq!(end.header("mcp-session-id"), Some("s1"));
    assert_eq!(end.header("mcp-protocol-version"), Some("2025-11-25"));
    end.answer("405 Method Not Allowed", &[], "").await;
    let (remote, server) = legacy("2025-11-25").await;
    let ((), ()) = tokio::join!(soon(remote.close_and_wait()), async {
        let end = server.next().await;
        assert_eq!(end.method, "DELETE");
        end.answer("204 No Content", &[], "").await;
    });
}

#[tokio::test]
async fn a_modern_server_has_no_session_to_end() {
    let (remote, server) = modern(json!({})).await;
    remote.close();
    let next = server
        .next_within(std::time::Duration::from_millis(200))
        .await;
    assert!(next.is_none(), "{:?}", next.map(|next| next.method));
}
