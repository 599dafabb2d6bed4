//! A client survives every server of the testkit that misbehaves.

use super::peer::{Peer, all, call, legacy, modern, soon};
use serde_json::{Value, json};
use tokio::join;
use toolgate::{Service, client::RemoteServer};
use toolgate_testkit::hostile::{HOSTILE_BEHAVIORS, HostileBehavior};

/// The request ends, and the next one works.
async fn survives(misdeed: HostileBehavior, remote: &RemoteServer, peer: &mut Peer) {
    for method in ["tools/call", "tools/list"] {
        let asked = async {
            match method {
                "tools/call" => drop(remote.call(call("a", "{}")).await),
                _ => drop(remote.list(all()).await),
            }
        };
        let (_, ()) = join!(soon(asked), async {
            let request = request(peer, method).await;
            misdeed.instead_of_answering(peer, &request).await;
        });
    }
    let (outcome, ()) = join!(soon(remote.call(call("b", "{}"))), async {
        let request = request(peer, "tools/call").await;
        peer.reply(&request, json!({"resultType": "complete", "content": []}))
            .await;
    });
    assert!(outcome.is_ok(), "after {}: {outcome:?}", misdeed.name);
}

/// The next request of that method; what the client says to the misdeed comes before.
async fn request(peer: &mut Peer, method: &str) -> Value {
    loop {
        let message = peer.read().await;
        if message["method"] == method {
            return message;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_outlives_all_misdeeds_of_a_modern_server() {
    for misdeed in HOSTILE_BEHAVIORS {
        let (remote, mut peer) = modern(json!({"tools": {}})).await;
        survives(misdeed, &remote, &mut peer).await;
        assert!(
            remote.status().lost_reason.is_none(),
            "after {}",
            misdeed.name
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_outlives_all_misdeeds_of_a_legacy_server() {
    for misdeed in HOSTILE_BEHAVIORS {
        let (remote, mut peer) = legacy(json!({"tools": {}})).await;
        survives(misdeed, &remote, &mut peer).await;
        assert!(
            remote.status().lost_reason.is_none(),
            "after {}",
            misdeed.name
        );
    }
}
