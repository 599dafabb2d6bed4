//! The list: its pages, and how long it is kept.

use super::peer::{Peer, all, call, legacy, legacy_with, modern, options, soon, tool};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{join, time::advance};
use toolgate::{
    Caller, Service,
    client::RemoteServer,
    core::{Catalog, ChangeFilter, ErrorKind},
};

/// Lists while the server answers with these pages.
async fn list(
    remote: &RemoteServer,
    peer: &mut Peer,
    pages: &[Value],
) -> Result<Catalog, toolgate::Error> {
    let answer = async {
        let mut asked = Vec::new();
        for page in pages {
            let request = peer.read().await;
            assert_eq!(request["method"], "tools/list");
            asked.push(request["params"]["cursor"].clone());
            peer.reply(&request, page.clone()).await;
        }
        asked
    };
    let (listed, asked) = join!(soon(remote.list(all())), answer);
    let next = pages.iter().map(|page| page["nextCursor"].clone());
    let expected: Vec<Value> = std::iter::once(Value::Null)
        .chain(next)
        .take(asked.len())
        .collect();
    assert_eq!(
        asked, expected,
        "each page is asked for by the cursor before it"
    );
    listed
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.items().iter().map(|item| item.def.name()).collect()
}

/// Holds: PAG-02, PAG-04, PAG-05, PAG-07
#[tokio::test(start_paused = true)]
async fn pages_are_joined_and_an_empty_cursor_is_a_cursor() {
    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    let pages = [
        json!({"tools": [tool("a")], "nextCursor": ""}),
        json!({"tools": [tool("b")], "nextCursor": "2"}),
        json!({"tools": [tool("c")], "nextCursor": null}),
    ];
    let listed = list(&remote, &mut peer, &pages).await.unwrap();
    assert_eq!(names(&listed), ["a", "b", "c"]);
    assert_eq!(listed.items()[0].full_name(), "files.a");
}

/// Before 2026-07-28 servers write `""` where there is no next page; one that does so later and repeats its page ends too.
#[tokio::test(start_paused = true)]
async fn an_empty_cursor_ends_the_list_of_an_older_server() {
    let last = json!({"tools": [tool("a")], "nextCursor": ""});
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let listed = list(&remote, &mut peer, std::slice::from_ref(&last)).await;
    assert_eq!(names(&listed.unwrap()), ["a"]);
    assert!(remote.status().definition_notes.is_empty());
    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    let listed = list(&remote, &mut peer, &[last.clone(), last]).await;
    assert_eq!(
        names(&listed.unwrap()),
        ["a"],
        "the second page is the first"
    );
}

#[tokio::test(start_paused = true)]
async fn pages_without_end_are_an_error() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let again = json!({"tools": [tool("a")], "nextCursor": "x"});
    let error = list(&remote, &mut peer, &[again.clone(), again])
        .await
        .unwrap_err();
    assert!(
        error.public_message().contains("repeats a cursor"),
        "{}",
        error.public_message()
    );
    let mut few = options();
    few.max_pages = 3;
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), few).await;
    let page = |n: u32| json!({"tools": [], "nextCursor": n.to_string()});
    let error = list(&remote, &mut peer, &[page(1), page(2), page(3)])
        .await
        .unwrap_err();
    assert!(
        error.public_message().contains("more than 3 pages"),
        "{}",
        error.public_message()
    );
}

#[tokio::test(start_paused = true)]
async fn tools_that_cannot_be_read_or_are_too_many_are_left_out_by_name() {
    let mut few = options();
    few.max_items = 3;
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), few).await;
    let nothing = json!({"title": "no\u{7}name"});
    let tools = json!([tool("a"), nothing, tool("a"), tool("d")]);
    let listed = list(&remote, &mut peer, &[json!({"tools": tools})])
        .await
        .unwrap();
    assert_eq!(names(&listed), ["a"]);
    let out: Vec<String> = remote
        .status()
        .definition_notes
        .into_iter()
        .map(|note| note.name.to_string())
        .collect();
    assert_eq!(
        out,
        ["", "number 2", "a"],
        "the list as a whole comes first"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_read_again_leaves_out_the_same_and_sees_what_changed() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let mut b = tool("b");
    let page = |b: &Value| {
        let tools = json!([tool("a"), tool("a"), {"title": "no"}, b, tool("c")]);
        [json!({"tools": tools})]
    };
    let first = list(&remote, &mut peer, &page(&b)).await.unwrap();
    for _ in 0..2 {
        advance(Duration::from_secs(61)).await;
        let again = list(&remote, &mut peer, &page(&b)).await.unwrap();
        assert!(again.is_same_snapshot(&first));
        assert_eq!(names(&again), ["a", "b", "c"]);
        assert_eq!(remote.status().definition_notes.len(), 2);
    }
    b["description"] = json!("another one");
    advance(Duration::from_secs(61)).await;
    let changed = list(&remote, &mut peer, &page(&b)).await.unwrap();
    let kept = changed.items().iter().zip(first.items());
    let kept: Vec<bool> = kept.map(|(new, old)| Arc::ptr_eq(new, old)).collect();
    assert_eq!(kept, [true, false, true]);
    assert_eq!(changed.items()[1].def.json().to_value(), b);
}

/// One tool that no strict reader would take hides itself and none of the others, and it is said why.
#[tokio::test(start_paused = true)]
async fn a_bad_key_in_one_tool_leaves_out_that_one() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let mut bad = tool("bad");
    bad["inputSchema"]["properties"]["x\u{0}y"] = json!({"type": "string"});
    let listed = list(
        &remote,
        &mut peer,
        &[json!({"tools": [tool("a"), bad, tool("c")]})],
    )
    .await
    .unwrap();
    assert_eq!(names(&listed), ["a", "c"]);
    let out = remote.status().definition_notes;
    assert_eq!((out.len(), &*out[0].name), (1, "bad"));
    assert!(out[0].note.reason.contains("U+0000"), "{out:?}");
    // Of what is no list all is strict: what was meant by such a result nobody knows.
    let (called, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        let result = json!({"content": [{"type": "text", "text": "t", "x\u{0}y": 1}]});
        peer.reply(&request, result).await;
    });
    assert_eq!(*called.unwrap_err().kind(), ErrorKind::BadResponse);
    assert_eq!(remote.status().counters.bad_lines, 1);
}

#[tokio::test(start_paused = true)]
async fn while_nothing_changes_the_list_is_one_object() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let both = json!({"tools": [tool("a"), tool("b")]});
    let first = list(&remote, &mut peer, std::slice::from_ref(&both))
        .await
        .unwrap();
    assert!(
        remote.list(all()).await.unwrap().is_same_snapshot(&first),
        "kept"
    );
    advance(Duration::from_secs(61)).await;
    assert!(
        list(&remote, &mut peer, &[both])
            .await
            .unwrap()
            .is_same_snapshot(&first),
        "read again, and equal"
    );

    advance(Duration::from_secs(61)).await;
    let mut changes = remote
        .changes(ChangeFilter::all_lists(Caller::new("test")))
        .await
        .unwrap();
    let other = json!({"tools": [tool("a"), {"name": "b", "inputSchema": {}}]});
    let second = list(&remote, &mut peer, &[other]).await.unwrap();
    assert!(!second.is_same_snapshot(&first));
    assert!(
        std::sync::Arc::ptr_eq(&first.items()[0], &second.items()[0]),
        "what stays is the same object"
    );
    assert!(!std::sync::Arc::ptr_eq(
        &first.items()[1],
        &second.items()[1]
    ));
    assert!(
        changes.next().await.is_some(),
        "a change that nobody told is told"
    );
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_that_tells_changes_is_asked_when_it_does() {
    let (remote, mut peer) = legacy(json!({"tools": {"listChanged": true}})).await;
    let mut changes = remote
        .changes(ChangeFilter::all_lists(Caller::new("test")))
        .await
        .unwrap();
    list(&remote, &mut peer, &[json!({"tools": [tool("a")]})])
        .await
        .unwrap();
    advance(Duration::from_secs(3600)).await;
    remote.list(all()).await.unwrap();
    peer.notify("notifications/tools/list_changed", json!({}))
        .await;
    assert!(changes.next().await.is_some());
    let listed = list(&remote, &mut peer, &[json!({"tools": [tool("b")]})])
        .await
        .unwrap();
    assert_eq!(names(&listed), ["b"]);
}

/// Holds: CACHE-11, STDIO-09, SUB-05, BASE-12
#[tokio::test(start_paused = true)]
async fn a_modern_server_tells_changes_by_a_subscription() {
    let (remote, mut peer) = modern(json!({"tools": {"listChanged": true}})).await;
    let listen = peer.read().await;
    assert_eq!(listen["method"], "subscriptions/listen");
    assert_eq!(
        listen["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    let meta = |id: &Value| json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"toolsListChanged": true}});
    peer.notify(
        "notifications/subscriptions/acknowledged",
        meta(&listen["id"]),
    )
    .await;
    assert!(peer.is_left_alone().await);
    let first = json!({"tools": [tool("a")], "ttlMs": 3_600_000});
    list(&remote, &mut peer, &[first]).await.unwrap();
    let (kept, is_left_alone) = join!(remote.list(all()), peer.is_left_alone());
    assert_eq!(names(&kept.unwrap()), ["a"]);
    assert!(is_left_alone, "what is fresh is not asked for again");
    let mut changes = remote
        .changes(ChangeFilter::all_lists(Caller::new("test")))
        .await
        .unwrap();
    peer.notify("notifications/tools/list_changed", json!({}))
        .await;
    peer.notify("notifications/tools/list_changed", meta(&json!("other")))
        .await;
    peer.notify("notifications/tools/list_changed", meta(&listen["id"]))
        .await;
    assert_eq!(
        changes.next().await.unwrap().lists,
        [toolgate::core::ItemKind::Tool],
        "only the one that belongs to the subscription counts"
    );
    assert_eq!(remote.status().counters.stray_notifications, 2);
    let changed = json!({"tools": [tool("b")], "ttlMs": 3_600_000});
    let listed = list(&remote, &mut peer, &[changed]).await.unwrap();
    assert_eq!(names(&listed), ["b"], "what changed is asked for again");
    peer.reply(&listen, json!({"resultType": "complete"})).await;
    let again = peer.read().await;
    assert_eq!(
        again["method"], "subscriptions/listen",
        "a stream that ended is opened again"
    );
    assert_ne!(again["id"], listen["id"]);
    drop(remote);
    assert_eq!(
        peer.line().await,
        "",
        "and the end of the client ends it all"
    );
}

/// Holds: CACHE-07, CACHE-08
#[tokio::test(start_paused = true)]
async fn the_time_to_live_of_a_modern_list_is_honoured() {
    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    let page = |ttl: u64| json!({"resultType": "complete", "tools": [tool("a")], "ttlMs": ttl, "cacheScope": "private"});
    list(&remote, &mut peer, &[page(5_000)]).await.unwrap();
    advance(Duration::from_secs(4)).await;
    remote.list(all()).await.unwrap();
    advance(Duration::from_secs(2)).await;
    list(&remote, &mut peer, &[page(0)]).await.unwrap();
    let mut list_request = all();
    list_request.only_name = Some("a".into());
    // Stale at once: shown, it is read again; looked up for a call, it holds a minute.
    remote.list(list_request).await.unwrap();
    list(&remote, &mut peer, &[page(0)]).await.unwrap();
    advance(Duration::from_secs(61)).await;
    let mut list_request = all();
    list_request.only_name = Some("a".into());
    let (looked, ()) = join!(remote.list(list_request), async {
        let request = peer.read().await;
        peer.reply(&request, page(u64::MAX)).await;
    });
    looked.unwrap();
    advance(Duration::from_secs(25 * 3600)).await;
    list(&remote, &mut peer, &[page(0)]).await.unwrap();
}

/// Absent, negative or no number: the list is stale at once, and asked for again by the next who wants it. Of several pages the
/// shortest time counts.
///
/// Holds: CACHE-07
#[tokio::test(start_paused = true)]
async fn a_list_without_a_time_to_live_is_stale_at_once() {
    let with = |ttl: Option<Value>, next: Option<&str>| {
        let mut page =
            json!({"resultType": "complete", "tools": [tool("a")], "cacheScope": "private"});
        if let Some(ttl) = ttl {
            page["ttlMs"] = ttl;
        }
        if let Some(next) = next {
            page["tools"] = json!([tool("b")]);
            page["nextCursor"] = json!(next);
        }
        page
    };
    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    for stale in [
        None,
        Some(json!(-1)),
        Some(json!(-60_000)),
        Some(json!(null)),
        Some(json!("60000")),
        Some(json!(0)),
    ] {
        let one = [with(stale.clone(), None)];
        list(&remote, &mut peer, &one).await.unwrap();
        let two = [
            with(Some(json!(60_000)), Some("2")),
            with(stale.clone(), None),
        ];
        // `list` fails where nothing is asked.
        list(&remote, &mut peer, &two).await.unwrap();
    }
    let fresh = [
        with(Some(json!(60_000)), Some("2")),
        with(Some(json!(5_000)), None),
    ];
    list(&remote, &mut peer, &fresh).await.unwrap();
    advance(Duration::from_secs(4)).await;
    soon(remote.list(all())).await.unwrap();
    assert!(peer.is_left_alone().await, "it is fresh");
    list(&remote, &mut peer, &fresh).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tools_has_an_empty_list() {
    let (remote, mut peer) = legacy(json!({})).await;
    let (listed, ()) = join!(soon(remote.list(all())), async {
        let request = peer.read().await;
        peer.reply_error(&request, -32601, "method not found", json!(null))
            .await;
    });
    assert!(listed.unwrap().items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_old_list_holds_while_a_new_one_cannot_be_read() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let first = list(&remote, &mut peer, &[json!({"tools": [tool("a")]})])
        .await
        .unwrap();
    advance(Duration::from_secs(61)).await;
    assert!(
        list(&remote, &mut peer, &[json!({"nothing": 1})])
            .await
            .unwrap()
            .is_same_snapshot(&first)
    );
    assert!(
        remote
            .status()
            .last_problem
            .unwrap()
            .contains("last known list")
    );
    drop(peer);
    remote.closed().await;
    assert_eq!(
        *remote.list(all()).await.unwrap_err().kind(),
        ErrorKind::Upstream,
        "but not when it is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_at_once_make_one_request() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let many = futures_util::future::join_all((0..20).map(|_| remote.list(all())));
    let (listed, ()) = join!(many, async {
        let request = peer.read().await;
        peer.reply(&request, json!({"tools": [tool("a")]})).await;
        assert!(peer.is_left_alone().await);
    });
    assert!(
        listed
            .iter()
            .all(|one| one.as_ref().unwrap().items().len() == 1)
    );
}

/// A definition that is repaired or withheld stays the same object while its server sends the same, with its notes.
#[tokio::test(start_paused = true)]
async fn a_repaired_tool_is_listed_with_notes_and_stays_the_same_object() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let odd = json!({"name": "odd", "description": null, "inputSchema": {"properties": {}}});
    let text = json!({"name": "text", "inputSchema": {"type": "string"}});
    let page = [json!({"tools": [odd, text, tool("a")]})];
    let first = list(&remote, &mut peer, &page).await.unwrap();
    assert_eq!(names(&first), ["odd", "text", "a"]);
    assert_eq!(
        first.items()[0].def.json().to_value(),
        json!({"name": "odd", "inputSchema": {"properties": {}, "type": "object"}})
    );
    let why = first.items()[1].withheld.clone().unwrap();
    assert!(why.contains("not \"object\""), "{why}");
    let notes: Vec<String> = first.all_notes().map(|note| note.to_string()).collect();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert_eq!(
        notes[0],
        "tool odd: repaired: \"description\" is not a string; it is ignored"
    );
    advance(Duration::from_secs(61)).await;
    assert!(
        list(&remote, &mut peer, &page)
            .await
            .unwrap()
            .is_same_snapshot(&first)
    );
}
