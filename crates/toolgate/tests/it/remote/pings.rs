//! Keepalive pings to an idle server.

use super::peer::{Peer, call, legacy_with, options, soon, start};
use serde_json::json;
use std::time::Duration;
use tokio::{
    join,
    time::{Instant, sleep},
};
use toolgate::{Service, client::RemoteOptions};

const EVERY: Duration = Duration::from_secs(60);

fn pinging() -> RemoteOptions {
    let mut pinging = options();
    pinging.ping_interval = Some(EVERY);
    pinging
}

/// The next ping, which is not sent before its time.
async fn is_pinged(peer: &mut Peer) -> serde_json::Value {
    for _ in 0..5 {
        // Ten seconds each.
        assert!(peer.is_left_alone().await, "not more often than it says");
    }
    sleep(Duration::from_secs(5)).await;
    let ping = peer.read().await;
    assert_eq!(ping["method"], "ping", "{ping}");
    ping
}

/// The half of LIFE-17 that is about servers.
///
/// Holds: LIFE-17
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_answering_pings_is_gone() {
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), pinging()).await;
    for _ in 0..2 {
        let ping = is_pinged(&mut peer).await;
        peer.reply(&ping, json!({})).await;
    }
    // That it knows none is an answer, too.
    let ping = is_pinged(&mut peer).await;
    peer.reply_error(&ping, -32601, "no", json!(null)).await;
    let began = Instant::now();
    let why = remote.closed().await;
    assert!(
        why.contains("did not answer a ping within 30 s, 2 times"),
        "{why}"
    );
    let took = began.elapsed();
    assert!(took >= 2 * EVERY && took < 4 * EVERY, "{took:?}");
    assert_eq!(remote.status().counters.unanswered, 2);
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answered_a_ping_is_kept_and_left_alone() {
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), pinging()).await;
    for _ in 0..2 {
        is_pinged(&mut peer).await;
        sleep(Duration::from_secs(25)).await;
        assert_eq!(peer.read().await["method"], "notifications/cancelled");
    }
    sleep(5 * EVERY).await;
    assert!(peer.is_left_alone().await);
    assert_eq!(remote.status().lost_reason, None);
    let note = remote.status().last_problem.unwrap();
    assert!(note.contains("does not answer pings"), "{note}");
    let (done, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        peer.reply(&request, json!({"content": []})).await;
    });
    done.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_pings_a_server_that_works_or_one_that_has_no_pings() {
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), pinging()).await;
    let running = remote.call(call("a", "{}"));
    let (done, ()) = join!(running, async {
        let request = peer.read().await;
        sleep(5 * EVERY).await;
        assert!(peer.is_left_alone().await);
        peer.reply(&request, json!({"content": []})).await;
    });
    done.unwrap();
    sleep(EVERY).await;
    assert_eq!(peer.read().await["method"], "ping");
    let (opening, mut peer) = start(pinging());
    let probe = peer.read().await;
    let modern =
        json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
    peer.reply(&probe, modern).await;
    let _remote = opening.await.unwrap().unwrap();
    sleep(5 * EVERY).await;
    assert!(peer.is_left_alone().await);
}
