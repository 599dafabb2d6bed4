//! Changes of single resources: who is asked for them, and when that ends.

use super::peer::{Peer, legacy, modern, soon};
use serde_json::{Value, json};
use std::time::Duration;
use toolgate::{
    Caller, Service,
    client::RemoteServer,
    core::{ChangeFilter, ChangeStream},
};

async fn hear(remote: &RemoteServer, uris: &[&str]) -> ChangeStream {
    let mut want = ChangeFilter::all_lists(Caller::new("test"));
    want.lists = Vec::new();
    want.uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
    soon(remote.changes(want)).await.unwrap()
}

/// The next request, which must be this one; it is answered.
async fn asked(peer: &mut Peer, method: &str, uri: &str) {
    let request = peer.read().await;
    assert_eq!(
        (&request["method"], &request["params"]["uri"]),
        (&json!(method), &json!(uri))
    );
    peer.reply(&request, json!({})).await;
}

/// Two listen to one resource: the server is asked once, and told that it is enough after both have gone.
#[tokio::test(start_paused = true)]
async fn an_old_server_is_asked_once_for_all_who_listen() {
    let (remote, mut peer) = legacy(json!({"resources": {"subscribe": true}})).await;
    let (first, ()) = tokio::join!(
        hear(&remote, &["t://a"]),
        asked(&mut peer, "resources/subscribe", "t://a")
    );
    let (second, ()) = tokio::join!(
        hear(&remote, &["t://a", "t://b"]),
        asked(&mut peer, "resources/subscribe", "t://b")
    );
    let (mut first, mut second) = (first, second);
    let told = json!({"uri": "t://a"});
    peer.notify("notifications/resources/updated", told).await;
    for changes in [&mut first, &mut second] {
        let changed = soon(changes.next()).await.unwrap();
        assert_eq!(*changed.updated, ["t://a".into()]);
    }
    drop(first);
    assert!(peer.is_left_alone().await, "somebody still listens");
    drop(second);
    asked(&mut peer, "resources/unsubscribe", "t://a").await;
    asked(&mut peer, "resources/unsubscribe", "t://b").await;
    let (third, ()) = tokio::join!(
        hear(&remote, &["t://a"]),
        asked(&mut peer, "resources/subscribe", "t://a")
    );
    drop(third);
    asked(&mut peer, "resources/unsubscribe", "t://a").await;
}

/// A server that does not tell is not asked, and one that refuses costs the listener nothing else.
#[tokio::test(start_paused = true)]
async fn a_server_that_tells_nothing_is_not_asked() {
    let (remote, mut peer) = legacy(json!({"resources": {}})).await;
    let _changes = hear(&remote, &["t://a"]).await;
    assert!(peer.is_left_alone().await);
    let (remote, mut peer) = legacy(json!({"resources": {"subscribe": true}})).await;
    let refused = async {
        let request = peer.read().await;
        peer.reply_error(&request, -32603, "no", json!(null)).await;
        peer
    };
    let (mut changes, mut peer) = tokio::join!(hear(&remote, &["t://a"]), refused);
    peer.notify("notifications/resources/list_changed", json!({}))
        .await;
    let changed = soon(changes.next()).await.unwrap();
    assert_eq!(changed.lists, [toolgate::core::ItemKind::Resource]);
}

/// A refusal is no subscription: the next who listens asks again, and nobody ends what never began.
#[tokio::test(start_paused = true)]
async fn a_refused_subscription_is_asked_for_again() {
    let (remote, mut peer) = legacy(json!({"resources": {"subscribe": true}})).await;
    let refused = async |peer: &mut Peer| {
        let request = peer.read().await;
        assert_eq!(request["method"], "resources/subscribe");
        peer.reply_error(&request, -32603, "no", json!(null)).await;
    };
    let (first, ()) = tokio::join!(hear(&remote, &["t://a"]), refused(&mut peer));
    let (second, ()) = tokio::join!(
        hear(&remote, &["t://a"]),
        asked(&mut peer, "resources/subscribe", "t://a")
    );
    drop(first);
    assert!(peer.is_left_alone().await, "somebody still listens");
    drop(second);
    asked(&mut peer, "resources/unsubscribe", "t://a").await;
    let (third, ()) = tokio::join!(hear(&remote, &["t://a"]), refused(&mut peer));
    drop(third);
    assert!(peer.is_left_alone().await, "nothing is to be ended");
}

/// However many there are, a server that is dead is waited for once.
#[tokio::test(start_paused = true)]
async fn many_subscriptions_at_a_dead_server_cost_one_wait() {
    let (remote, _peer) = legacy(json!({"resources": {"subscribe": true}})).await;
    let uris: Vec<String> = (0..1024).map(|n| format!("t://{n}")).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let began = tokio::time::Instant::now();
    let _changes = hear(&remote, &uris).await;
    let took = began.elapsed();
    println!("1,024 subscriptions at a dead server took {took:?}");
    assert!(took <= Duration::from_secs(31), "{took:?}");
}

/// Since 2026-07-28 whoever listens waits for the acknowledgement: what changes after that is heard. A server that
/// gives none, or refuses, is not waited for any longer than for a list.
#[tokio::test(start_paused = true)]
async fn whoever_listens_waits_for_the_acknowledgement() {
    let (remote, mut peer) = modern(json!({"resources": {"subscribe": true}})).await;
    let mut hearing = Box::pin(hear(&remote, &["t://a"]));
    let early = async {
        let listen = peer.read().await;
        assert!(peer.is_left_alone().await);
        listen
    };
    let listen = tokio::select! {
        _ = &mut hearing => panic!("it did not wait"),
        listen = early => listen,
    };
    let stream = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
    let filter = json!({"resourceSubscriptions": ["t://a"]});
    let acknowledged = json!({"_meta": stream, "notifications": filter});
    peer.notify("notifications/subscriptions/acknowledged", acknowledged)
        .await;
    let began = tokio::time::Instant::now();
    let mut changes = hearing.await;
    assert!(began.elapsed() < Duration::from_secs(1));
    let updated = json!({"_meta": stream, "uri": "t://a"});
    peer.notify("notifications/resources/updated", updated)
        .await;
    assert_eq!(
        *soon(changes.next()).await.unwrap().updated,
        ["t://a".into()]
    );
    let began = tokio::time::Instant::now();
    let (_refused, ()) = tokio::join!(hear(&remote, &["t://b"]), async {
        let listen = peer.read().await;
        peer.reply_error(&listen, -32603, "no", json!(null)).await;
    });
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "a refusal is an answer"
    );
    let _silent = hear(&remote, &["t://c"]).await;
    assert!(began.elapsed() < Duration::from_secs(40));
}

/// The server's acknowledgement is compared with the request.
///
/// Holds: SUB-04
#[tokio::test(start_paused = true)]
async fn an_acknowledgement_of_less_is_noticed() {
    for (filter, missing) in [
        (json!({"resourceSubscriptions": ["t://a", "t://b"]}), None),
        (
            json!({"resourceSubscriptions": ["t://b", "t://c"]}),
            Some("1 of 2 resources"),
        ),
        (json!({}), Some("2 of 2 resources")),
        (json!(null), Some("2 of 2 resources")),
    ] {
        let (remote, mut peer) = modern(json!({"resources": {"subscribe": true}})).await;
        let (_changes, ()) = tokio::join!(hear(&remote, &["t://a", "t://b"]), async {
            let listen = peer.read().await;
            let stream = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
            let acknowledged = json!({"_meta": stream, "notifications": filter});
            peer.notify("notifications/subscriptions/acknowledged", acknowledged)
                .await;
        });
        tokio::task::yield_now().await;
        let note = remote.status().last_problem;
        match missing {
            None => assert_eq!(note, None),
            Some(missing) => assert!(
                note.as_ref().is_some_and(|n| n.contains(missing)),
                "{note:?}"
            ),
        }
    }
}

/// Compares the acknowledged filter of the connection with the lists that it requested.
///
/// Holds: SUB-04
#[tokio::test(start_paused = true)]
async fn an_acknowledgement_without_a_list_is_noticed() {
    let both = json!({"toolsListChanged": true, "promptsListChanged": true});
    for (filter, missing) in [
        (both.clone(), None),
        (json!({"promptsListChanged": true}), Some("its tools")),
        (
            json!({"toolsListChanged": false, "promptsListChanged": true}),
            Some("its tools"),
        ),
        (json!({"toolsListChanged": true}), Some("its prompts")),
        (json!({}), Some("its tools and its prompts")),
    ] {
        let able = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}});
        let (remote, mut peer) = modern(able).await;
        let listen = peer.read().await;
        assert_eq!(listen["params"]["notifications"], both);
        acknowledge(&mut peer, &listen["id"], &filter).await;
        assert!(peer.is_left_alone().await);
        let note = remote.status().last_problem;
        match missing {
            None => assert_eq!(note, None),
            Some(missing) => assert!(
                note.as_ref()
                    .is_some_and(|n| n.contains(&format!("changes to {missing}"))),
                "{filter}: {note:?}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_subscription_is_noted_with_its_kinds() {
    let able = json!({"prompts": {"listChanged": true}, "resources": {"listChanged": true}});
    let (remote, mut peer) = modern(able).await;
    let listen = peer.read().await;
    peer.reply_error(&listen, -32601, "no", json!(null)).await;
    assert!(peer.is_left_alone().await);
    let note = remote.status().last_problem.unwrap();
    let said = "it refused to report changes to its resources and prompts";
    assert_eq!(note, said);

    let (remote, mut peer) = modern(json!({"resources": {"subscribe": true}})).await;
    let (_changes, ()) = tokio::join!(hear(&remote, &["t://a", "t://b"]), async {
        let listen = peer.read().await;
        peer.reply_error(&listen, -32601, "no", json!(null)).await;
    });
    let note = remote.status().last_problem.unwrap();
    assert_eq!(note, "it refused to report changes to 2 resources");
}

async fn acknowledge(peer: &mut Peer, id: &Value, filter: &Value) {
    let stream = json!({"io.modelcontextprotocol/subscriptionId": id});
    let acknowledged = json!({"_meta": stream, "notifications": filter});
    peer.notify("notifications/subscriptions/acknowledged", acknowledged)
        .await;
}

/// Waits for a change of that resource.
async fn changed(changes: &mut ChangeStream, uri: &str) {
    loop {
        let changed = soon(changes.next()).await.unwrap();
        if changed.updated.iter().any(|updated| **updated == *uri) {
            return;
        }
    }
}

/// Each stream is acknowledged, notified and ended by its own id.
///
/// Holds: SUB-05
#[tokio::test(start_paused = true)]
async fn concurrent_subscriptions_are_demultiplexed_by_id() {
    let (remote, mut peer) = modern(json!({"resources": {"subscribe": true}})).await;
    let filter = |uri: &str| json!({"resourceSubscriptions": [uri]});
    let updated = async |peer: &mut Peer, id: &Value, uri: &str| {
        let stream = json!({"io.modelcontextprotocol/subscriptionId": id});
        let told = json!({"_meta": stream, "uri": uri});
        peer.notify("notifications/resources/updated", told).await;
    };
    let (mut first, mut second, (one, two)) = tokio::join!(
        hear(&remote, &["t://a"]),
        hear(&remote, &["t://b"]),
        async {
            let (one, two) = (peer.read().await, peer.read().await);
            assert_eq!(one["params"]["notifications"], filter("t://a"));
            assert_eq!(two["params"]["notifications"], filter("t://b"));
            acknowledge(&mut peer, &two["id"], &filter("t://b")).await;
            acknowledge(&mut peer, &one["id"], &filter("t://a")).await;
            (one["id"].clone(), two["id"].clone())
        }
    );
    assert_ne!(one, two);
    assert_eq!(
        remote.status().last_problem,
        None,
        "each has its own acknowledgement"
    );
    updated(&mut peer, &one, "t://a").await;
    changed(&mut first, "t://a").await;
    updated(&mut peer, &two, "t://b").await;
    changed(&mut second, "t://b").await;
    // A stream that ends is opened again; the other one continues.
    let ended =
        json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": one}});
    peer.reply(&json!({"id": one}), ended).await;
    let again = soon(peer.read()).await;
    assert_eq!(again["method"], "subscriptions/listen");
    assert_eq!(again["params"]["notifications"], filter("t://a"));
    assert!(again["id"] != one && again["id"] != two);
    acknowledge(&mut peer, &again["id"], &filter("t://a")).await;
    assert_eq!(remote.status().counters.stray_notifications, 0);
    updated(&mut peer, &one, "t://a").await;
    updated(&mut peer, &two, "t://b").await;
    changed(&mut second, "t://b").await;
    assert!(peer.is_left_alone().await);
    assert_eq!(
        remote.status().counters.stray_notifications,
        1,
        "a message of the stream that ended is stray"
    );
}

/// Whoever listens waits for the answer of the server, and not for ever.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_holds_up_nobody() {
    let (remote, mut peer) = legacy(json!({"resources": {"subscribe": true}})).await;
    let mut changes = hear(&remote, &["t://a"]).await;
    assert_eq!(peer.read().await["method"], "resources/subscribe");
    let told = json!({"uri": "t://a"});
    peer.notify("notifications/resources/updated", told).await;
    assert_eq!(soon(changes.next()).await.unwrap().updated.len(), 1);
}

/// Since 2026-07-28 each listener has a stream of its own, which ends with it.
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_heard_over_a_stream_for_each_listener() {
    let (remote, mut peer) = modern(json!({"resources": {"subscribe": true}})).await;
    let mut changes = hear(&remote, &["t://a", "t://b"]).await;
    let listen = peer.read().await;
    assert_eq!(listen["method"], "subscriptions/listen");
    let filter = json!({"resourceSubscriptions": ["t://a", "t://b"]});
    assert_eq!(listen["params"]["notifications"], filter);
    let told = |id: &serde_json::Value, uri: &str| json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "uri": uri});
    let updated = "notifications/resources/updated";
    peer.notify(updated, told(&json!("other"), "t://a")).await;
    peer.notify(updated, told(&listen["id"], "t://b")).await;
    let changed = soon(changes.next()).await.unwrap();
    assert_eq!(
        *changed.updated,
        ["t://b".into()],
        "only what belongs to the stream"
    );
    drop(changes);
    let over = tokio::time::timeout(Duration::from_secs(60), peer.read()).await;
    let over = over.expect("the stream ends with its listener");
    assert_eq!(over["method"], "notifications/cancelled");
    assert_eq!(over["params"]["requestId"], listen["id"]);
}
