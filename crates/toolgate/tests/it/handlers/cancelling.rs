//! Cancellation token of a call, for work on other threads.

use super::peer::{NEWEST_REVISION, Peer};
use futures_util::FutureExt;
use serde_json::json;
use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use toolgate::{
    Cx, HandlerExit, Server, Tool, edge, handlers::CancellationToken, policy::CallTimeout,
};

/// Longest time that a test waits for a thread.
const PATIENCE: Duration = Duration::from_secs(30);

/// Events of the tools.
enum Event {
    /// The tool runs.
    Started(CancellationToken),
    /// The thread ended, and whether it saw the cancellation.
    ThreadEnded(bool),
}

/// Blocks a thread until the call is cancelled.
fn block(cx: &Cx, events: Sender<Event>) {
    let token = cx.cancellation();
    events.try_send(Event::Started(token.clone())).unwrap();
    std::thread::spawn(move || {
        let start = Instant::now();
        while !token.is_cancelled() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let seen = Event::ThreadEnded(token.is_cancelled());
        events.try_send(seen).unwrap();
    });
}

fn server(deadline: CallTimeout) -> (Arc<edge::ProtocolServer>, Receiver<Event>) {
    let (sender, receiver) = channel(4);
    let events = sender.clone();
    let schema = || json!({"type": "object"});
    let blocking = Tool::dynamic("block", schema(), move |_, cx| {
        let events = events.clone();
        async move {
            block(&cx, events);
            pending::<Result<String, HandlerExit>>().await
        }
    });
    let complete = Tool::dynamic("complete", schema(), move |_, cx: Cx| {
        let started = Event::Started(cx.cancellation());
        sender.try_send(started).unwrap();
        async { Ok::<_, HandlerExit>("done") }
    });
    let server = Server::new("cancelling", "1").tool(blocking).tool(complete);
    (server.deadline(deadline).build().unwrap(), receiver)
}

async fn started(events: &mut Receiver<Event>) -> CancellationToken {
    match events.recv().await {
        Some(Event::Started(token)) => token,
        _ => panic!("the tool starts first"),
    }
}

async fn assert_the_thread_is_cancelled(events: &mut Receiver<Event>) {
    match events.recv().await {
        Some(Event::ThreadEnded(seen)) => assert!(seen, "the token was not cancelled in time"),
        _ => panic!("the thread ends next"),
    }
}

#[tokio::test]
async fn the_token_is_cancelled_when_the_caller_cancels() {
    let (server, mut events) = server(CallTimeout::default());
    let mut peer = Peer::open(&server, "2025-11-25", json!({})).await;
    let call = peer
        .send_request("tools/call", json!({"name": "block"}))
        .await;
    let token = started(&mut events).await;
    assert!(!token.is_cancelled());
    assert!(token.cancelled().now_or_never().is_none());
    peer.send_message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}))
        .await;
    tokio::time::timeout(PATIENCE, token.cancelled())
        .await
        .unwrap();
    assert_the_thread_is_cancelled(&mut events).await;
}

#[tokio::test]
async fn the_token_is_cancelled_when_the_call_times_out() {
    let mut short = CallTimeout::default();
    short.max = Duration::from_millis(50);
    let (server, mut events) = server(short);
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    peer.send_request("tools/call", json!({"name": "block"}))
        .await;
    started(&mut events).await;
    assert_the_thread_is_cancelled(&mut events).await;
}

#[tokio::test]
async fn the_token_is_cancelled_when_the_client_disconnects() {
    let (server, mut events) = server(CallTimeout::default());
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    peer.send_request("tools/call", json!({"name": "block"}))
        .await;
    started(&mut events).await;
    drop(peer);
    assert_the_thread_is_cancelled(&mut events).await;
}

#[tokio::test]
async fn the_token_of_a_completed_call_is_never_cancelled() {
    let (server, mut events) = server(CallTimeout::default());
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    peer.result("tools/call", json!({"name": "complete"})).await;
    let token = started(&mut events).await;
    assert!(!token.is_cancelled());
    assert!(token.cancelled().now_or_never().is_none());
}
