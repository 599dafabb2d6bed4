//! Answers that exceed a limit or cannot be read.

use super::peer::{Peer, all, call, legacy, modern, options, soon, start};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{join, time::Instant};
use toolgate::{
    Error, Outcome, Service,
    client::{OpenError, RemoteServer},
    core::ErrorKind,
};
use toolgate_protocol::memory_budget::{BudgetScope, MemoryBudget};

/// Returns unusable results (over a limit or not JSON) with their error texts.
pub(crate) fn bad_results() -> Vec<(String, &'static str)> {
    let keys: Vec<String> = (0..5_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let numbers = vec!["1"; 120_000].join(",");
    let deep = "[".repeat(70) + &"]".repeat(70);
    vec![
        (
            format!("{{{}}}", keys.join(",")),
            "exceeds the limit `keys` (4096)",
        ),
        (deep, "exceeds the limit `depth` (64)"),
        (
            format!("[{numbers}]"),
            "exceeds the limit `elements` (100000)",
        ),
        ("NaN".to_owned(), "cannot be read: the text is not JSON"),
        (
            r#"{"a":1,"a":2}"#.to_owned(),
            "an object has a duplicate key",
        ),
    ]
}

/// A reply whose result has that inside, the id before it or after it.
pub(crate) fn reply_with(id: &Value, inside: &str, id_first: bool) -> String {
    let result = format!(r#""result":{{"content":[],"structuredContent":{{"x":{inside}}}}}"#);
    match id_first {
        true => format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#),
        false => format!(r#"{{{result},"jsonrpc":"2.0","id":{id}}}"#),
    }
}

/// A call that is answered with a line; it must end before any time has passed.
async fn answered_with(
    remote: &RemoteServer,
    peer: &mut Peer,
    line: impl FnOnce(&Value) -> String,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        peer.send(&line(&request["id"])).await;
    });
    assert!(began.elapsed() < Duration::from_secs(1));
    outcome
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_a_limit_or_that_is_not_json_ends_its_call_at_once() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        for (inside, words) in bad_results() {
            for id_first in [true, false] {
                // Another call is in flight, so that the id alone tells which one ends.
                let mut other = remote.call(call("other", "{}"));
                let waits = tokio::select! {
                    _ = &mut other => panic!("nobody answered"),
                    request = peer.read() => request,
                };
                let line = |id: &Value| reply_with(id, &inside, id_first);
                let error = answered_with(&remote, &mut peer, line).await.unwrap_err();
                assert_eq!(*error.kind(), ErrorKind::BadResponse);
                let said = error.public_message();
                assert!(said.contains(words), "{said}");
                assert!(said.ends_with("the call may have taken effect"), "{said}");
                let unusable = remote.status().last_alert.unwrap().1;
                assert!(unusable.contains("its answer to a call"), "{unusable}");
                let (outcome, ()) = join!(soon(other), async {
                    peer.reply(&waits, json!({"content": []})).await;
                });
                outcome.unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_limit_ends_its_call_at_once() {
    let mut short = options();
    short.max_line_bytes = 1000;
    let (remote, mut peer) = super::peer::legacy_with(json!({}), short).await;
    let long = format!("\"{}\"", "x".repeat(2000));
    for id_first in [true, false] {
        let line = |id: &Value| reply_with(id, &long, id_first);
        let error = answered_with(&remote, &mut peer, line).await.unwrap_err();
        let said = error.public_message();
        assert!(
            said.contains("exceeds the limit `line_bytes` (1000)"),
            "{said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn text_glued_to_a_reply_ends_its_call_and_other_text_ends_none() {
    let (remote, mut peer) = legacy(json!({})).await;
    let reply = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
    type Glue = fn(String) -> String;
    let glued: [Glue; 4] = [
        |reply| format!("INFO done {reply}"),
        |reply| format!("{reply} took 3 ms"),
        // A message that was written over many lines, or a line end within a string.
        |_| "{\n  \"jsonrpc\": \"2.0\",\n".to_owned(),
        |reply| reply.replace("[]}", "[{\"type\":\"text\",\"text\":\"a\nb\"}]}"),
    ];
    for glue in glued {
        let line = |id: &Value| glue(reply(id).to_string());
        let error = answered_with(&remote, &mut peer, line).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::BadResponse);
        assert!(error.public_message().contains("cannot be read"), "{error}");
    }
    let noisy = |id: &Value| format!("Handling the call\n{{ a: 1 }}\n{}", reply(id));
    answered_with(&remote, &mut peer, noisy).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_meant_without_doubt_is_read_as_it_is_meant() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let lines: [fn(&Value) -> String; 4] = [
            |id| format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"content":[]}}}}"#),
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":null,"result":{{"content":[]}}}}"#),
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
            |id| {
                let text = r#"{"type":"text","text":"a\ud800b\udc00\ud83d\ude00"}"#;
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{text}]}}}}"#)
            },
        ];
        for line in lines {
            let outcome = answered_with(&remote, &mut peer, line).await;
            let Ok(Outcome::Done(output)) = outcome else {
                panic!("{outcome:?}")
            };
            for block in &output.tool().unwrap().content {
                let text = block.json.get("text").unwrap().string().unwrap();
                assert_eq!(text, "a\u{fffd}b\u{fffd}😀");
            }
        }
        let no_id = |_: &Value| {
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#.to_owned()
        };
        let error = answered_with(&remote, &mut peer, no_id).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::JsonRpc(-32700), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_ends_no_call_where_two_are_in_flight() {
    let (remote, mut peer) = legacy(json!({})).await;
    let (first, second, ()) = join!(
        soon(remote.call(call("a", "{}"))),
        soon(remote.call(call("b", "{}"))),
        async {
            let (a, b) = (peer.read().await, peer.read().await);
            for line in [
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
                r#"{"jsonrpc":"2.0","id":null,"result":{"x":NaN}}"#,
            ] {
                peer.send(line).await;
            }
            peer.reply(&a, json!({"content": []})).await;
            peer.reply(&b, json!({"content": []})).await;
        }
    );
    first.unwrap();
    second.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_over_a_limit_fails_at_once_with_the_reason() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let (listed, ()) = join!(soon(remote.list(all())), async {
        let request = peer.read().await;
        let deep = "[".repeat(70) + &"]".repeat(70);
        let tool = format!(r#"{{"name":"a","inputSchema":{{"type":"object","x":{deep}}}}}"#);
        let id = &request["id"];
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tool}]}}}}"#);
        peer.send(&line).await;
    });
    let error = listed.err().unwrap();
    let said = error.public_message();
    assert!(
        said.contains("the list exceeds the limit `depth` (64)"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_banner_or_a_byte_order_mark_before_the_handshake_is_passed_over() {
    for before in ["Server ready on stdio\n", "\u{feff}"] {
        let (opening, mut peer) = start(options());
        let probe = peer.read().await;
        let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
        let reply = json!({"jsonrpc": "2.0", "id": probe["id"], "result": result});
        peer.send(&format!("{before}{reply}")).await;
        let remote = opening.await.unwrap().unwrap();
        let note = remote.status().last_problem.unwrap();
        let expected = match before {
            "\u{feff}" => "byte order mark",
            _ => r#"expected one JSON message per line, got "Server ready on stdio""#,
        };
        assert!(note.contains(expected), "{note}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_handshake_is_quoted() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let banner = format!("\u{1b}[31mUsage: server {token} {}", "x".repeat(500));
    let (opening, mut peer) = start(options());
    peer.read().await;
    peer.send(&banner).await;
    let error = opening.await.unwrap().err().unwrap();
    let OpenError::NotJson(words) = &error else {
        panic!("{error:?}")
    };
    assert!(words.contains("got \"Usage: server [redacted"), "{words}");
    assert!(words.len() < 400 && !words.contains('\u{1b}'), "{words}");

    let (opening, mut peer) = start(options());
    for _ in 0..2 {
        let request = peer.read().await;
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": {}});
        peer.send(&serde_json::to_string_pretty(&reply).unwrap())
            .await;
    }
    let error = opening.await.unwrap().err().unwrap().to_string();
    assert!(
        error.contains("expected one JSON message per line, got \"{\""),
        "{error}"
    );
}

/// The server's description is stored in short copies; its answer is freed and returns its memory budget.
#[tokio::test(start_paused = true)]
async fn nothing_long_of_a_handshake_is_kept() {
    let room = MemoryBudget::new(64 << 20);
    let long = "I".repeat(700 << 10);
    for probe in [true, false] {
        let mut options = options();
        options.budget_scope = BudgetScope::of(&room, "s".into());
        options.probe = probe;
        let (opening, mut peer) = start(options);
        let request = peer.read().await;
        let about = json!({"name": long, "version": long, "title": long});
        let result = match probe {
            true => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
                "instructions": long, "_meta": {"io.modelcontextprotocol/serverInfo": about}})
            }
            false => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "instructions": long, "serverInfo": about})
            }
        };
        peer.reply(&request, result).await;
        let remote = opening.await.unwrap().unwrap();
        assert_eq!(room.used(), 0);
        assert_eq!(remote.instructions().unwrap().len(), 64 << 10);
        let server = remote.status().server.unwrap();
        assert_eq!(
            (server.name.len(), server.title.unwrap().len()),
            (4096, 4096)
        );
        // An error with a long message is cut before anything is made of it.
        let error = answered_with(&remote, &mut peer, |id| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"{long}"}}}}"#)
        });
        assert!(error.await.unwrap_err().public_message().len() < 17 << 10);
        assert_eq!(room.used(), 0);
    }
    let mut options = options();
    options.probe = false;
    let (opening, mut peer) = start(options);
    let request = peer.read().await;
    let capabilities = json!({"experimental": {"x": {"y": "I".repeat(300 << 10)}}});
    peer.reply(&request, super::peer::welcome("2025-11-25", capabilities))
        .await;
    let error = opening.await.unwrap().err().unwrap().to_string();
    assert!(error.contains("its capabilities are larger"), "{error}");
}
