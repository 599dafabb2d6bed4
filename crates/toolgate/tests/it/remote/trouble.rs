//! Lines that no server should send.

use super::peer::{call, legacy, legacy_with, options, soon, start, welcome};
use serde_json::json;
use tokio::join;
use toolgate::{Outcome, Service, core::ErrorKind};

#[tokio::test(start_paused = true)]
async fn a_bad_line_is_counted_and_the_stream_goes_on() {
    let mut short = options();
    short.max_line_bytes = 1000;
    let (remote, mut peer) = legacy_with(json!({}), short).await;
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        for line in [
            "Listening on port 80",
            "{",
            "",
            "\r",
            "\u{feff}",
            "[1]",
            "{}",
            "\"x\"",
            r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#,
        ] {
            peer.send(line).await;
        }
        peer.send(&"x".repeat(1001)).await;
        // Too long, and the answer to nothing.
        peer.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{{\"content\":\"{}\"}}}}",
            "x".repeat(2000)
        ))
        .await;
        for stray in [json!(77), json!("1")] {
            peer.reply(&json!({"id": stray}), json!({"content": []}))
                .await;
        }
        peer.reply(&request, json!({"content": []})).await;
        peer.reply(&request, json!({"content": []})).await;
    });
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
    assert!(peer.is_left_alone().await);
    let counters = remote.status().counters;
    assert_eq!((counters.bad_lines, counters.long_lines), (3, 2));
    assert_eq!(counters.malformed, 4);
    assert_eq!(
        counters.stray_replies, 3,
        "an unknown one, one with another kind of id, and a second one"
    );
    assert!(remote.status().lost_reason.is_none());
}

/// Holds: BASE-13.
#[tokio::test(start_paused = true)]
async fn a_server_of_2025_03_26_may_send_a_batch() {
    let mut old = options();
    old.probe = false;
    let (opening, mut peer) = start(old);
    let hello = peer.read().await;
    peer.reply(&hello, welcome("2025-03-26", json!({}))).await;
    let remote = opening.await.unwrap().unwrap();
    peer.read().await;
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}});
        let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
        peer.send(&json!([ping, 7, reply]).to_string()).await;
        assert_eq!(peer.read().await["id"], "p");
    });
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
    assert_eq!(remote.status().counters.malformed, 1);
}

#[tokio::test(start_paused = true)]
async fn no_words_of_a_message_stand_in_the_status() {
    let (remote, mut peer) = legacy(json!({})).await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"secret-1","params":NaN}"#,
        r#"{"jsonrpc":"2.0","id":"secret-2"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"secret-3"}"#,
        r#"{"jsonrpc":"2.0","method":"secret-4"}"#,
    ] {
        peer.send(line).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        let note = remote.status().last_problem.unwrap();
        assert!(!note.contains("secret"), "{note}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_with_result_and_error_ends_its_call() {
    let (remote, mut peer) = legacy(json!({})).await;
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let id = peer.read().await["id"].clone();
        peer.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}, "error": {"code": 1, "message": "x"}}).to_string()).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::BadResponse);
    assert!(
        error.public_message().contains("malformed reply"),
        "{}",
        error.public_message()
    );
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_input_of_the_server_and_all_calls() {
    let (remote, mut peer) = legacy(json!({})).await;
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        peer.read().await;
        remote.close();
    });
    assert!(outcome.is_err());
    assert_eq!(
        peer.line().await,
        "",
        "the end of its input, though the client is still there"
    );
    assert!(remote.status().lost_reason.is_some());
}

/// A completion notification for an unknown or closed page is ignored.
///
/// Holds: ELIC-10
#[tokio::test(start_paused = true)]
async fn the_end_of_an_unknown_page_is_ignored() {
    let (remote, mut peer) = legacy(json!({})).await;
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        for id in [json!("unknown"), json!("unknown"), json!("")] {
            let ended = json!({"elicitationId": id});
            peer.notify("notifications/elicitation/complete", ended)
                .await;
        }
        peer.reply(&request, json!({"content": []})).await;
    });
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
    assert!(peer.is_left_alone().await);
}
