//! Every request that leaves has an end, whatever it asks for, and the server is told.

use super::peer::{Peer, legacy_with, options, soon, start, tool};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolgate::{
    Call, Caller, Json, Service,
    client::{OpenError, RemoteServer},
    core::{ChangeFilter, ItemKind, ListRequest, Op, Pipeline},
};
use toolgate_policy::{PerServer, Policy};

/// Time limit of the options under test.
const LIMIT: Duration = Duration::from_secs(3);

fn all() -> Value {
    json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}, "logging": {}})
}

/// Reads the request, says nothing, and waits for its cancellation.
async fn ignored(peer: &mut Peer, method: &str) {
    let asked = peer.read().await;
    assert_eq!(asked["method"], method);
    let told = peer.read().await;
    assert_eq!(told["method"], "notifications/cancelled", "{method}");
    assert_eq!(told["params"]["requestId"], asked["id"], "{method}");
}

/// Lists, and all that belongs to no call: as long as a list may take.
async fn without_a_call(remote: &RemoteServer, peer: &mut Peer, stateless: bool) -> usize {
    let who = || Caller::new("test");
    let lists = [
        (ItemKind::Tool, "tools/list"),
        (ItemKind::Resource, "resources/list"),
        (ItemKind::Template, "resources/templates/list"),
        (ItemKind::Prompt, "prompts/list"),
    ];
    let mut count = 0;
    for (kind, method) in lists {
        let list = remote.list(ListRequest::all(who(), kind));
        let (listed, ()) = soon(async { tokio::join!(list, ignored(peer, method)) }).await;
        assert!(listed.is_err(), "{method}");
        count += 1;
    }
    let ping = if stateless { "server/discover" } else { "ping" };
    let (pinged, ()) = soon(async { tokio::join!(remote.ping(), ignored(peer, ping)) }).await;
    assert!(pinged.is_err());
    if !stateless {
        let level = remote.set_log_level("debug");
        let ignored_level = ignored(peer, "logging/setLevel");
        let (set, ()) = soon(async { tokio::join!(level, ignored_level) }).await;
        assert!(set.is_err());
        let mut want = ChangeFilter::all_lists(who());
        want.uris = vec!["t://a".to_owned()];
        let changes = remote.changes(want);
        let ignored_want = ignored(peer, "resources/subscribe");
        let (changes, ()) = soon(async { tokio::join!(changes, ignored_want) }).await;
        drop(changes);
        count += 2;
    }
    count + 1
}

/// Calls of all kinds: as long as the deadline says.
async fn calls(pipeline: &Pipeline, peer: &mut Peer, lists: &Value) -> usize {
    let uses = [
        (Op::Tool, "a", "tools/call"),
        (Op::Resource, "t://a", "resources/read"),
        (Op::Prompt, "a", "prompts/get"),
        (Op::Complete(ItemKind::Prompt), "a", "completion/complete"),
    ];
    for (op, name, method) in uses {
        let arguments = match op {
            Op::Resource => json!({"uri": name}),
            Op::Complete(_) => json!({"argument": {"name": "x", "value": ""}}),
            _ => json!({}),
        };
        let arguments = Json::from_value(&arguments);
        let call = Call::new("c", Caller::new("test"), op, name, arguments);
        let served = async {
            let asked = loop {
                let asked = peer.read().await;
                let method = asked["method"].as_str().unwrap_or_default();
                let Some(result) = lists.get(method) else {
                    break asked;
                };
                peer.reply(&asked, result.clone()).await;
            };
            assert_eq!(asked["method"], method);
            let began = Instant::now();
            let told = peer.read().await;
            assert_eq!(told["params"]["requestId"], asked["id"], "{method}");
            assert_eq!(began.elapsed().as_secs(), 3, "{method}");
        };
        let (outcome, ()) = soon(async { tokio::join!(pipeline.call(call), served) }).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            *error.kind(),
            toolgate::core::ErrorKind::TimedOut,
            "{method} {error}"
        );
    }
    uses.len()
}

/// Holds: CANC-13
#[tokio::test(start_paused = true)]
async fn every_request_has_an_end_and_the_server_is_told() {
    let mut count = 0;
    let lists = json!({
        "tools/list": {"resultType": "complete", "tools": [tool("a")]},
        "resources/list": {"resultType": "complete", "resources": [{"uri": "t://a", "name": "a"}]},
        "prompts/list": {"resultType": "complete", "prompts": [{"name": "a", "arguments": [{"name": "x"}]}]},
    });
    for stateless in [false, true] {
        let open = async || {
            let mut options = options();
            options.list_timeout = LIMIT;
            if !stateless {
                return legacy_with(all(), options).await;
            }
            let (opening, mut peer) = start(options);
            let probe = peer.read().await;
            let found = json!({"resultType": "complete",
                "supportedVersions": ["2026-07-28"], "capabilities": all()});
            peer.reply(&probe, found).await;
            (opening.await.unwrap().unwrap(), peer)
        };
        let (remote, mut peer) = open().await;
        count += without_a_call(&remote, &mut peer, stateless).await;
        let (remote, mut peer) = open().await;
        let mut standard = Policy::default();
        standard.deadline.idle = PerServer::all(LIMIT);
        let pipeline = standard.over(Arc::new(remote));
        count += calls(&pipeline, &mut peer, &lists).await;
    }
    // The handshake is the one request that must not be cancelled; it ends all the same.
    let (opening, _peer) = start(options());
    let ended = soon(opening).await.unwrap();
    assert_eq!(ended.err(), Some(OpenError::Late(Duration::from_secs(30))));
    println!("{count} requests without an answer, all ended and cancelled");
}
