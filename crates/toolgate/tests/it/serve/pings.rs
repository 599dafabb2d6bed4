//! Keepalive pings to an idle client.

use super::{Scripted, desk::until};
use crate::official::{Side, Tapped, tapped};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf, split};
use toolgate::{
    Caller,
    core::BoxFuture,
    edge::{MissedPings, ProtocolServer, Rejection, RejectionLog, ServerLimits, stdio},
};

const EVERY: Duration = Duration::from_secs(60);

/// Remembers which clients left pings without an answer.
#[derive(Default)]
struct Told(Mutex<Vec<MissedPings>>);

impl Told {
    fn all(&self) -> Vec<(u32, bool)> {
        let told = self.0.lock().unwrap();
        told.iter()
            .map(|one| (one.consecutive, one.disconnects))
            .collect()
    }
}

impl RejectionLog for Told {
    fn rejected(&self, _: Rejection) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn missed_pings(&self, _: &Caller, transport: &'static str, unheard: MissedPings) {
        assert_eq!(transport, "stdio");
        self.0.lock().unwrap().push(unheard);
    }
}

/// A client that is played by hand.
struct Played {
    lines: Lines<BufReader<ReadHalf<Tapped>>>,
    to: WriteHalf<Tapped>,
    told: Arc<Told>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    scripted: Arc<Scripted>,
}

async fn played(ping: Option<Duration>) -> Played {
    let (told, scripted) = (Arc::<Told>::default(), Scripted::new());
    let mut limits = ServerLimits::default();
    limits.ping_interval = ping;
    let front = ProtocolServer::new(scripted.clone(), "s", "1", limits).unwrap();
    let front = Arc::new(front.with_rejection_log(told.clone()));
    let (near, far) = tapped(&[Side::Server]);
    let (read, write) = split(far);
    #[allow(clippy::disallowed_methods, reason = "the test plays the other side")]
    let serving = tokio::spawn(stdio::serve(front, Caller::new("test"), read, write));
    let (read, to) = split(near);
    let lines = BufReader::new(read).lines();
    let mut played = Played {
        lines,
        to,
        told,
        serving,
        scripted,
    };
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    played.say(hello).await;
    played.hears().await;
    played
        .say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    played
}

impl Played {
    async fn say(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.to.write_all(line.as_bytes()).await.unwrap();
    }

    async fn hears(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    /// Returns whether nothing arrives for that time.
    async fn is_left_alone(&mut self, time: Duration) -> bool {
        let next = self.lines.next_line();
        tokio::time::timeout(time, next).await.is_err()
    }

    /// The next ping, which does not come before its time.
    async fn is_pinged(&mut self) -> Value {
        assert!(self.is_left_alone(EVERY - Duration::from_secs(1)).await);
        let ping = self.hears().await;
        assert_eq!(ping["method"], "ping", "{ping}");
        ping
    }
}

/// The half of LIFE-17 that is about clients: the other one is in `remote/pings.rs`.
///
/// Holds: LIFE-17
#[tokio::test(start_paused = true)]
async fn a_client_that_stops_answering_pings_is_gone() {
    let mut client = played(Some(EVERY)).await;
    let running = client.scripted.running.clone();
    let ping = client.is_pinged().await;
    client
        .say(json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}))
        .await;
    // That it knows none is an answer, too.
    let ping = client.is_pinged().await;
    let no = json!({"code": -32601, "message": "no"});
    client
        .say(json!({"jsonrpc": "2.0", "id": ping["id"], "error": no}))
        .await;
    client
        .say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "forever"}}))
        .await;
    until("it runs", || running.load(Ordering::SeqCst) == 1).await;
    for _ in 0..2 {
        let ping = client.hears().await;
        assert_eq!(ping["method"], "ping", "{ping}");
        let cancel = client.hears().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], ping["id"]);
    }
    let served = tokio::time::timeout(EVERY, client.serving).await;
    served.expect("it ends").unwrap().unwrap();
    assert_eq!(running.load(Ordering::SeqCst), 0, "nothing runs for it");
    assert_eq!(client.told.all(), [(2, true)]);
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answered_a_ping_is_kept_and_left_alone() {
    let mut client = played(Some(EVERY)).await;
    for _ in 0..2 {
        client.is_pinged().await;
        assert_eq!(client.hears().await["method"], "notifications/cancelled");
    }
    assert!(client.is_left_alone(10 * EVERY).await);
    assert_eq!(client.told.all(), [(2, false)]);
    client
        .say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        .await;
    assert_eq!(client.hears().await["id"], 2, "it is served as before");
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_no_client_is_pinged() {
    let mut client = played(ServerLimits::default().ping_interval).await;
    assert!(client.is_left_alone(100 * EVERY).await);
}
