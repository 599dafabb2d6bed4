//! A call that waits for a person: cancel, and a caller that goes away.

use super::{HANG, Scripted, server};
use crate::official::{Side, tapped};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate::{Caller, edge::stdio};

/// Waits until `done`; a bound on a hang, not a measurement.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const FOREVER: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}"#;

/// Cancellations without effect: malformed, or for no running request.
const CANCEL_NOTHING: [&str; 9] = [
    "",
    r#","params":{}"#,
    r#","params":[1]"#,
    r#","params":{"requestId":null}"#,
    r#","params":{"requestId":[1]}"#,
    r#","params":{"requestId":1.5}"#,
    r#","params":{"requestId":"1"}"#,
    r#","params":{"requestId":99}"#,
    // Finished.
    r#","params":{"requestId":7}"#,
];

fn cancel(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled"{params}}}"#)
}

/// In a session, and without one.
///
/// Holds: STDIO-11, STDIO-12, CANC-12, CANC-04, CANC-08
#[tokio::test]
async fn a_cancelled_call_is_dropped_and_never_answered() {
    for opens in [true, false] {
        let scripted = Scripted::new();
        let running = scripted.running.clone();
        let (near, far) = tapped(&[Side::Server]);
        let (read, write) = tokio::io::split(far);
        let serving = stdio::serve(server(scripted), Caller::new("test"), read, write);
        let meta = if opens {
            "\"_meta\":{}"
        } else {
            super::stdio::MODERN
        };
        let call = |id: u32, tool: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"of":{id}}},{meta}}}}}"#
            )
        };
        let playing = async {
            let (read, mut write) = tokio::io::split(near);
            let mut lines = BufReader::new(read).lines();
            let mut send = async |line: &str| {
                let line = format!("{line}\n");
                write.write_all(line.as_bytes()).await.unwrap();
            };
            let mut next = async || -> serde_json::Value {
                let line = tokio::time::timeout(HANG, lines.next_line()).await;
                serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
            };
            if opens {
                send(OPEN).await;
                next().await;
            }
            send(&call(7, "echo")).await;
            assert_eq!(next().await["id"], 7);
            send(&call(1, "forever")).await;
            until("it runs", || running.load(Ordering::SeqCst) == 1).await;
            for nothing in CANCEL_NOTHING {
                send(&cancel(nothing)).await;
            }
            send(&call(2, "echo")).await;
            assert_eq!(next().await["id"], 2, "nothing else is answered");
            assert_eq!(running.load(Ordering::SeqCst), 1, "it goes on");
            send(&cancel(r#","params":{"requestId":1}"#)).await;
            until("it is dropped", || running.load(Ordering::SeqCst) == 0).await;
            send(&cancel(r#","params":{"requestId":1}"#)).await;
            // The id is free again, and the next answer is the next request's.
            send(&call(3, "echo")).await;
            assert_eq!(next().await["id"], 3);
            send(&call(1, "echo")).await;
            let answer = next().await;
            assert_eq!(answer["id"], 1);
            assert_eq!(answer["result"]["content"][0]["text"], r#"{"of":1}"#);
        };
        tokio::join!(serving, playing).0.unwrap();
    }
}

/// Holds: STDIO-14
#[tokio::test]
async fn the_end_of_input_cancels_what_runs() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let (mut near, far) = tapped(&[Side::Server]);
    let (read, write) = tokio::io::split(far);
    let serving = stdio::serve(server(scripted), Caller::new("test"), read, write);
    let playing = async {
        near.write_all(format!("{OPEN}\n{FOREVER}\n").as_bytes())
            .await
            .unwrap();
        until("it runs", || running.load(Ordering::SeqCst) == 1).await;
        near.shutdown().await.unwrap();
        until("it is dropped", || running.load(Ordering::SeqCst) == 0).await;
    };
    let _ = tokio::join!(serving, playing);
}

#[tokio::test]
async fn a_peer_that_reads_no_more_ends_what_runs() {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let (mut input, reader) = tokio::io::duplex(1 << 16);
    let (writer, output) = tokio::io::duplex(1 << 16);
    let serving = stdio::serve(server(scripted), Caller::new("test"), reader, writer);
    let playing = async {
        input
            .write_all(format!("{OPEN}\n{FOREVER}\n").as_bytes())
            .await
            .unwrap();
        until("it runs", || running.load(Ordering::SeqCst) == 1).await;
        drop(output);
        input
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n")
            .await
            .unwrap();
        until("it is dropped", || running.load(Ordering::SeqCst) == 0).await;
    };
    let (served, ()) = tokio::join!(serving, playing);
    assert!(served.is_err(), "a broken stream is told");
}

/// Holds: CANC-01
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends() {
    let (near, far) = tapped(&[Side::Server]);
    let (read, write) = tokio::io::split(far);
    let serving = stdio::serve(server(Scripted::new()), Caller::new("test"), read, write);
    let playing = async {
        let (read, mut write) = tokio::io::split(near);
        let mut lines = BufReader::new(read).lines();
        let able = OPEN.replace(
            "\"capabilities\":{}",
            "\"capabilities\":{\"elicitation\":{}}",
        );
        let ask = FOREVER.replace("forever", "ask");
        write
            .write_all(format!("{able}\n{READY}\n{ask}\n").as_bytes())
            .await
            .unwrap();
        lines.next_line().await.unwrap();
        let question = lines.next_line().await.unwrap().unwrap();
        assert!(question.contains("elicitation/create"), "{question}");
        let withdrawn = lines.next_line().await.unwrap().unwrap();
        assert!(withdrawn.contains("notifications/cancelled"), "{withdrawn}");
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let (question, withdrawn) = (read(&question), read(&withdrawn));
        assert!(!question["id"].is_null(), "{question}");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        let answer = lines.next_line().await.unwrap().unwrap();
        assert!(answer.contains("was not answered within"), "{answer}");
    };
    tokio::join!(serving, playing).0.unwrap();
}
