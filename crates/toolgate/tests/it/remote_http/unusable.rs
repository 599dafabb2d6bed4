//! Responses that exceed a limit or cannot be read.

use super::{
    super::remote::{
        peer::{call, options},
        unusable::{bad_results, reply_with},
    },
    server::{legacy, modern, soon, start_with},
};
use serde_json::json;
use toolgate::{Service, client::HttpOptions, core::ErrorKind};

#[tokio::test]
async fn a_response_over_a_limit_or_that_is_not_json_ends_its_call_at_once() {
    for (remote, server) in [modern(json!({})).await, legacy("2025-11-25").await] {
        for (inside, words) in bad_results() {
            for events in [false, true] {
                let (outcome, ()) = tokio::join!(soon(remote.call(call("a", "{}"))), async {
                    let asked = server.next().await;
                    let text = reply_with(&asked.body["id"], &inside, true);
                    match events {
                        false => {
                            let json = [("content-type", "application/json")];
                            asked.answer("200 OK", &json, &text).await;
                        }
                        true => {
                            let mut stream = asked.stream().await;
                            stream.raw(&format!("data: {text}\n\n")).await;
                            // Nothing else comes, and the stream stays open.
                            stream.closed().await;
                        }
                    }
                });
                let error = outcome.unwrap_err();
                assert_eq!(*error.kind(), ErrorKind::BadResponse, "{error}");
                assert!(error.public_message().contains(words), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn the_response_says_which_call_an_answer_without_an_id_belongs_to() {
    let (remote, server) = modern(json!({})).await;
    for (text, kind) in [
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
            ErrorKind::JsonRpc(-32700),
        ),
        (
            r#"{"jsonrpc":"2.0","result":{"content":[]}}"#,
            ErrorKind::BadResponse,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":{"x":NaN}}"#,
            ErrorKind::BadResponse,
        ),
    ] {
        for events in [false, true] {
            let (outcome, ()) = tokio::join!(soon(remote.call(call("a", "{}"))), async {
                let asked = server.next().await;
                if events {
                    let mut stream = asked.stream().await;
                    stream.raw("data: a line of a log\n\n").await;
                    stream.raw(&format!("data: {text}\n\n")).await;
                    return stream.closed().await;
                }
                let json = [("content-type", "application/json")];
                asked.answer("200 OK", &json, text).await;
            });
            assert_eq!(*outcome.unwrap_err().kind(), kind, "{text}");
        }
    }
}

#[tokio::test]
async fn a_response_with_a_byte_order_mark_or_half_a_surrogate_pair_is_read() {
    let (remote, server) = modern(json!({})).await;
    let (outcome, ()) = tokio::join!(soon(remote.call(call("a", "{}"))), async {
        let asked = server.next().await;
        let id = &asked.body["id"];
        let content = r#"[{"type":"text","text":"a\udc00"}]"#;
        let text = format!(
            "\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{{\"content\":{content}}}}}"
        );
        let json = [("content-type", "application/json")];
        asked.answer("200 OK", &json, &text).await;
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_response_over_line_bytes_names_the_limit() {
    let mut short = options();
    short.max_line_bytes = 1000;
    let (opening, server) = start_with(short, HttpOptions::default()).await;
    let probe = server.next().await;
    probe.result(super::server::discovered(json!({}))).await;
    let remote = soon(opening).await.unwrap().unwrap();
    for events in [false, true] {
        let (outcome, ()) = tokio::join!(soon(remote.call(call("a", "{}"))), async {
            let asked = server.next().await;
            let text = reply_with(&asked.body["id"], &format!("{:?}", "x".repeat(2000)), true);
            if events {
                let mut stream = asked.stream().await;
                stream.raw(&format!("data: {text}\n\n")).await;
                return stream.closed().await;
            }
            let json = [("content-type", "application/json")];
            asked.answer("200 OK", &json, &text).await;
        });
        let error = outcome.unwrap_err();
        assert!(
            error
                .public_message()
                .contains("exceeds the limit `line_bytes` (1000)"),
            "{error}"
        );
    }
}
