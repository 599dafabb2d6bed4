//! Log messages of a server, which carry no mark of the call they belong to.

use super::peer::{Peer, call, legacy, modern, soon};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::join;
use toolgate::{
    Call, Caller, Service,
    client::RemoteServer,
    core::{CallReporter, EventSink, ReporterEvent},
};

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl EventSink for Heard {
    fn report(&self, event: ReporterEvent) {
        if let ReporterEvent::Log(log) = event {
            self.0.lock().unwrap().push(log.data.as_str().to_owned());
        }
    }
}

impl Heard {
    fn words(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A call of that caller, who wants messages of that level.
fn listening(caller: &str, least: Option<&'static str>) -> (Call, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let mut call = call("slow", "{}");
    call.caller = Caller::new(caller);
    call.reporter = CallReporter::new(heard.clone()).with_min_log_level(least);
    (call, heard)
}

async fn log(peer: &mut Peer, words: &str) {
    let message = json!({"level": "info", "data": words});
    peer.notify("notifications/message", message).await;
}

fn done() -> Value {
    json!({"resultType": "complete", "content": []})
}

fn asked(request: &Value) -> &Value {
    &request["params"]["_meta"]["io.modelcontextprotocol/logLevel"]
}

#[tokio::test(start_paused = true)]
async fn the_one_call_that_asked_for_messages_gets_them() {
    let (remote, mut peer) = modern(json!({"logging": {}})).await;
    let (one, heard) = listening("a", Some("info"));
    let (deaf, nothing) = listening("b", None);
    let (first, second, ()) = join!(soon(remote.call(one)), soon(remote.call(deaf)), async {
        let (one, deaf) = (peer.read().await, peer.read().await);
        assert_eq!((asked(&one), asked(&deaf)), (&json!("info"), &Value::Null));
        log(&mut peer, "mine").await;
        peer.reply(&one, done()).await;
        log(&mut peer, "too late").await;
        peer.reply(&deaf, done()).await;
    });
    first.unwrap();
    second.unwrap();
    assert_eq!(heard.words(), ["\"mine\""]);
    assert!(nothing.words().is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_two_calls_that_asked_neither_gets_them() {
    let (remote, mut peer) = modern(json!({"logging": {}})).await;
    let (one, heard) = listening("a", Some("debug"));
    let (two, also) = listening("b", Some("debug"));
    let (first, second, ()) = join!(soon(remote.call(one)), soon(remote.call(two)), async {
        let (one, two) = (peer.read().await, peer.read().await);
        log(&mut peer, "whose?").await;
        peer.reply(&one, done()).await;
        log(&mut peer, "of the second").await;
        peer.reply(&two, done()).await;
    });
    first.unwrap();
    second.unwrap();
    assert!(heard.words().is_empty());
    assert_eq!(also.words(), ["\"of the second\""]);
    assert_eq!(remote.status().counters.stray_notifications, 1);
}

/// Gives up a call of that caller after it left.
async fn give_up(remote: &RemoteServer, peer: &mut Peer, caller: &str) {
    let (call, _) = listening(caller, Some("info"));
    tokio::select! {
        _ = remote.call(call) => panic!("it ended"),
        request = peer.read() => assert_eq!(asked(&request), "info"),
    }
    assert_eq!(peer.read().await["method"], "notifications/cancelled");
}

/// Returns the log messages that a call of `caller` receives.
async fn hears(remote: &RemoteServer, peer: &mut Peer, caller: &str) -> usize {
    let (call, heard) = listening(caller, Some("info"));
    let (outcome, ()) = join!(soon(remote.call(call)), async {
        let request = peer.read().await;
        log(peer, "of whichever call").await;
        peer.reply(&request, done()).await;
    });
    outcome.unwrap();
    heard.words().len()
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_call_that_was_given_up_reaches_nobody_else() {
    let (remote, mut peer) = modern(json!({"logging": {}})).await;
    assert_eq!(hears(&remote, &mut peer, "b").await, 1);
    give_up(&remote, &mut peer, "a").await;
    assert_eq!(hears(&remote, &mut peer, "b").await, 0, "it may be a's");
    assert_eq!(hears(&remote, &mut peer, "a").await, 1, "all of it is a's");
    give_up(&remote, &mut peer, "b").await;
    assert_eq!(hears(&remote, &mut peer, "a").await, 0, "it may be b's");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_handshake_is_asked_for_none_and_none_is_believed() {
    let (remote, mut peer) = legacy(json!({"logging": {}})).await;
    assert_eq!(hears(&remote, &mut peer, "a").await, 0);
}
