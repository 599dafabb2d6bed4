//! One request and its response.

use super::{
    super::remote::peer::{all, call, tool},
    server::{Asked, Server, legacy, modern},
};
use serde_json::{Value, json};
use toolgate::{Call, Caller, Error, Json, Outcome, Service, client::RemoteServer, core::Op};

fn text(outcome: Result<Outcome, Error>) -> Result<String, String> {
    match outcome.map_err(|error| error.public_message().to_owned())? {
        Outcome::Done(output) => Ok(output.tool().unwrap().content[0]
            .json
            .get("text")
            .unwrap()
            .string()
            .unwrap()),
        Outcome::InputRequired(_) => Err("asks".to_owned()),
    }
}

/// Calls `echo` while the test answers.
pub(super) async fn called<F: Future<Output = ()>>(
    remote: &RemoteServer,
    server: &Server,
    play: impl FnOnce(Asked) -> F,
) -> Result<String, String> {
    let (outcome, ()) = super::server::soon(async {
        tokio::join!(remote.call(call("echo", r#"{"a":1.50}"#)), async {
            play(server.next().await).await
        })
    })
    .await;
    text(outcome)
}

pub(super) fn done(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

/// Holds: HTTPM-10, HTTPM-18, HTTPM-24, HTTPL-08, HTTPL-24, HTTPL-29, LIFE-12.
#[tokio::test]
async fn a_reply_is_json_or_a_stream_in_both_eras() {
    for revision in ["2026-07-28", "2025-11-25", "2025-03-26"] {
        let is_modern = revision == "2026-07-28";
        let (remote, server) = if is_modern {
            modern(json!({})).await
        } else {
            legacy(revision).await
        };
        let whole = called(&remote, &server, async |asked| {
            assert_eq!(asked.header("mcp-protocol-version"), Some(revision));
            assert_eq!(
                asked.header("mcp-method"),
                is_modern.then_some("tools/call")
            );
            assert_eq!(asked.header("mcp-name"), is_modern.then_some("echo"));
            assert_eq!(asked.header("mcp-session-id"), (!is_modern).then_some("s1"));
            asked.result(done("whole")).await;
        });
        assert_eq!(whole.await, Ok("whole".to_owned()), "{revision}");
        let stream = called(&remote, &server, async |asked| {
            let mut told = asked.stream().await;
            told.raw(": hello\n\nid: 1\nretry: 5\ndata:\n\nevent: other\ndata: {}\n\n")
                .await;
            told.result(done("stream")).await;
            told.end().await;
        });
        assert_eq!(stream.await, Ok("stream".to_owned()), "{revision}");
    }
}

/// Holds: HTTPM-25.
#[tokio::test]
async fn a_name_that_is_not_plain_goes_in_base64() {
    let (remote, server) = modern(json!({})).await;
    let (_, ()) = tokio::join!(remote.call(call("é", "{}")), async {
        let asked = server.next().await;
        assert_eq!(asked.header("mcp-name"), Some("=?base64?w6k=?="));
        asked.result(done("x")).await;
    });
}

/// Holds: HTTPM-24.
#[tokio::test]
async fn what_is_read_or_fetched_is_named_in_a_header() {
    let (remote, server) = modern(json!({"resources": {}, "prompts": {}})).await;
    let uses = [
        (Op::Resource, "resources/read", "file:///a%20b"),
        (Op::Prompt, "prompts/get", "greet"),
    ];
    for (op, method, name) in uses {
        let arguments = Json::from_value(&json!({"uri": name}));
        let used = Call::new("c", Caller::new("test"), op, name, arguments);
        let (_, ()) = tokio::join!(remote.call(used), async {
            let asked = server.next().await;
            assert_eq!(asked.header("mcp-method"), Some(method));
            assert_eq!(asked.header("mcp-name"), Some(name));
            asked.result(json!({"contents": [], "messages": []})).await;
        });
    }
}

#[tokio::test]
async fn a_response_that_is_no_reply_is_an_error_of_its_request() {
    let json = "application/json";
    let refusals = [
        ("202 Accepted", "", "", "202"),
        ("204 No Content", "", "", "neither JSON"),
        ("200 OK", "text/html", "<p>", "neither JSON"),
        ("200 OK", json, "", "the text is empty"),
        ("200 OK", json, "{\"jsonrpc\":\"2.0\",", "not JSON"),
        ("200 OK", json, "{}", "not a reply"),
        (
            "200 OK",
            json,
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            "not a reply",
        ),
        (
            "200 OK",
            json,
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            "not a reply",
        ),
        (
            "200 OK",
            json,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"odd bytes"}}"#,
            "odd bytes",
        ),
        (
            "400 Bad Request",
            json,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad name"}}"#,
            "bad name",
        ),
        (
            "404 Not Found",
            json,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such"}}"#,
            "no such",
        ),
        (
            "401 Unauthorized",
            json,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"who?"}}"#,
            "credentials, or rejects those that were sent: HTTP 401: who?",
        ),
        (
            "403 Forbidden",
            "text/plain",
            "not you",
            "denies access: HTTP 403: not you",
        ),
        ("429 Too Many Requests", "", "", "HTTP 429"),
        (
            "500 Internal Server Error",
            "text/plain",
            "oops",
            "HTTP 500 Internal Server Error: oops; it is not known",
        ),
        (
            "502 Bad Gateway",
            json,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"deep"}}"#,
            "deep",
        ),
    ];
    let (remote, server) = modern(json!({})).await;
    for (status, kind, body, expected) in refusals {
        let outcome = called(&remote, &server, async |asked| {
            asked.answer(status, &[("content-type", kind)], body).await;
        });
        let error = outcome.await.unwrap_err();
        assert!(error.contains(expected), "{status} {body}: {error}");
    }
    assert_eq!(remote.status().lost_reason, None);
    let fine = called(&remote, &server, async |asked| {
        asked.result(done("on")).await
    });
    assert_eq!(
        fine.await,
        Ok("on".to_owned()),
        "one failure is not the end of the server"
    );
}

/// Holds: HTTPM-17.
#[tokio::test]
async fn a_broken_connection_loses_one_request() {
    let (remote, server) = modern(json!({})).await;
    let error = called(&remote, &server, async |asked| drop(asked)).await;
    let error = error.unwrap_err();
    assert!(error.contains("not known whether"), "{error}");
    let error = called(&remote, &server, async |asked| drop(asked.stream().await)).await;
    let error = error.unwrap_err();
    assert!(error.contains("not known whether"), "{error}");
    let fine = called(&remote, &server, async |asked| {
        asked.result(done("on")).await
    });
    assert_eq!(fine.await, Ok("on".to_owned()));
    assert_eq!(remote.status().lost_reason, None);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read() {
    let mut options = super::super::remote::peer::options();
    options.max_line_bytes = 4096;
    let (opening, server) = super::server::start_with(options, Default::default()).await;
    let probe = server.next().await;
    probe.result(super::server::discovered(json!({}))).await;
    let remote = opening.await.unwrap().unwrap();
    let long = done(&"x".repeat(5000));
    let whole = called(&remote, &server, async |asked| {
        asked.result(long.clone()).await
    });
    assert!(whole.await.unwrap_err().contains("limit"));
    let stream = called(&remote, &server, async |asked| {
        asked.stream().await.result(long.clone()).await;
    });
    assert!(stream.await.unwrap_err().contains("limit"));
    assert_eq!(remote.status().counters.long_lines, 2);
}

/// Only 307 and 308 are followed, only within the origin, and only three times.
#[tokio::test]
async fn redirects_stay_on_the_origin() {
    let (remote, server) = modern(json!({})).await;
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let followed = called(&remote, &server, async |asked| {
            let body = asked.body.clone();
            asked
                .answer(status, &[("location", "/other?x=1")], "")
                .await;
            let asked = server.next().await;
            assert_eq!(
                (asked.method.as_str(), asked.path.as_str()),
                ("POST", "/other?x=1")
            );
            assert_eq!(asked.body, body);
            assert_eq!(asked.header("mcp-name"), Some("echo"));
            asked.result(done("there")).await;
        });
        assert_eq!(followed.await, Ok("there".to_owned()));
    }
    let elsewhere = Server::new().await;
    let refused = [
        ("307 Temporary Redirect", elsewhere.url.clone()),
        (
            "308 Permanent Redirect",
            server.url.replace("http:", "https:"),
        ),
        ("308 Permanent Redirect", String::new()),
        ("301 Moved Permanently", "/other".to_owned()),
        ("302 Found", "/other".to_owned()),
        ("303 See Other", "/other".to_owned()),
    ];
    for (status, location) in refused {
        let outcome = called(&remote, &server, async |asked| {
            asked.answer(status, &[("location", &location)], "").await;
            if location.is_empty() {
                // The same address again, three times.
                for _ in 0..3 {
                    let next = server.next().await;
                    next.answer(status, &[("location", "/mcp")], "").await;
                }
            }
        });
        let error = outcome.await.unwrap_err();
        assert!(
            error.contains("redirect") || error.contains("HTTP 30"),
            "{error}"
        );
    }
    let short = std::time::Duration::from_millis(100);
    assert!(elsewhere.next_within(short).await.is_none());
}

/// One slow request blocks no other.
#[tokio::test]
async fn requests_run_side_by_side() {
    let (remote, server) = modern(json!({})).await;
    let slow = remote.call(call("echo", "{}"));
    tokio::pin!(slow);
    let held = tokio::select! {
        held = server.next() => held,
        _ = &mut slow => panic!("nobody answered"),
    };
    let (list, ()) = tokio::join!(remote.list(all()), async {
        let asked = server.next().await;
        assert_eq!(asked.body["method"], "tools/list");
        assert_eq!(asked.header("mcp-name"), None);
        asked.result(json!({"tools": [tool("echo")]})).await;
    });
    assert_eq!(list.unwrap().items().len(), 1);
    let (outcome, ()) = tokio::join!(slow, held.result(done("late")));
    assert_eq!(text(outcome), Ok("late".to_owned()));
}
