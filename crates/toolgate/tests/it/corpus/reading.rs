//! Reading of messages, without confusion of their kinds.

use crate::{
    handlers::peer::{NEWEST_REVISION, Peer, REVISIONS},
    remote::peer::{all, call, legacy, modern},
};
use serde_json::{Value, json};
use toolgate::{
    Outcome, Service,
    handlers::{Cx, HandlerExit, Server, Structured, Tool},
};

/// An id may be written as `1.0`: it is the integer 1, for the server and for the client, and comes back as it was.
///
/// Holds: BASE-04, BASE-07
#[tokio::test(start_paused = true)]
async fn an_id_with_a_point_is_the_same_number() {
    let server = Server::new("s", "1").build().unwrap();
    let mut peer = Peer::open(&server, "2025-11-25", json!({})).await;
    peer.send_message(json!({"jsonrpc": "2.0", "id": 7.0, "method": "ping"}))
        .await;
    assert_eq!(peer.receive().await["id"], json!(7.0));

    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
        let asked = peer.read().await;
        let id = asked["id"].as_u64().unwrap();
        let result = json!({"content": [{"type": "text", "text": "x"}]});
        peer.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{result}}}"#
        ))
        .await;
    });
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
}

/// A whole number may be written as a float wherever one is meant: times, totals, codes.
#[tokio::test(start_paused = true)]
async fn a_whole_number_with_a_point_is_whole() {
    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    let (list, ()) = tokio::join!(remote.list(all()), async {
        let asked = peer.read().await;
        let tool = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
        let result = format!(
            r#"{{"resultType":"complete","tools":[{tool}],"ttlMs":6.0e4,"cacheScope":"public"}}"#
        );
        peer.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
            asked["id"]
        ))
        .await;
    });
    let list = list.unwrap();
    assert_eq!((list.cache_hint().ttl_ms, list.items().len()), (60_000, 1));
    let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
        let asked = peer.read().await;
        peer.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602.0,"message":"no such tool"}}}}"#,
            asked["id"]
        ))
        .await;
    });
    assert!(
        outcome
            .unwrap_err()
            .public_message()
            .contains("no such tool"),
        "the error is read"
    );
}

/// Numbers of arguments reach a function as they were written, big ones and small ones.
#[tokio::test]
async fn numbers_are_not_changed_on_their_way() {
    let echo = Tool::dynamic("echo", json!({"type": "object"}), |_, cx: Cx| async move {
        Ok::<_, HandlerExit>(cx.arguments().as_str().to_owned())
    });
    let server = Server::new("s", "1").tool(echo).build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        for number in ["9007199254740993", "0.1", "1.0", "-0.0", "1e-7"] {
            let arguments: Value = serde_json::from_str(&format!(r#"{{"n":{number}}}"#)).unwrap();
            let params = json!({"name": "echo", "arguments": arguments});
            let sent = params["arguments"].to_string();
            let result = peer.result("tools/call", params).await;
            assert_eq!(result["content"][0]["text"], sent, "{revision}");
        }
    }
}

/// `"structuredContent": null` is a value, not an absent one.
///
/// Holds: TOOL-11
#[tokio::test(start_paused = true)]
async fn a_structured_null_is_not_absent() {
    let nothing = Tool::dynamic("n", json!({"type": "object"}), |_, _| async {
        Ok::<_, HandlerExit>(Structured(()))
    });
    let server = Server::new("s", "1").tool(nothing).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let result = peer.result("tools/call", json!({"name": "n"})).await;
    assert_eq!(result.get("structuredContent"), Some(&Value::Null));

    let (remote, mut peer) = modern(json!({"tools": {}})).await;
    for (structured, expected) in [
        (json!({"structuredContent": null}), true),
        (json!({}), false),
    ] {
        let (outcome, ()) = tokio::join!(remote.call(call("a", "{}")), async {
            let asked = peer.read().await;
            let mut result = structured.clone();
            result["content"] = json!([]);
            peer.reply(&asked, result).await;
        });
        let Ok(Outcome::Done(output)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(output.tool().unwrap().structured.is_some(), expected);
    }
}

/// A hint about caching that makes no sense costs the hint, never the result.
#[tokio::test(start_paused = true)]
async fn a_strange_cache_hint_does_not_lose_the_list() {
    let tools = json!([{"name": "a", "inputSchema": {"type": "object"}}]);
    for hint in [
        json!({"cacheScope": ""}),
        json!({"cacheScope": null, "ttlMs": "long"}),
        json!({"cacheScope": 7, "ttlMs": -1}),
        json!({"ttlMs": 1e300}),
        json!({"ttlMs": 0.5}),
    ] {
        let (remote, mut peer) = modern(json!({"tools": {}})).await;
        let mut result = hint.clone();
        result["tools"] = tools.clone();
        let (list, ()) = tokio::join!(remote.list(all()), async {
            let asked = peer.read().await;
            peer.reply(&asked, result).await;
        });
        let list = list.unwrap();
        assert_eq!(list.items().len(), 1, "{hint}");
        assert!(!list.cache_hint().public, "{hint}");
    }
}

/// Every list and every resource says how long it is fresh, also where nobody set a time.
///
/// Holds: BASE-15
#[tokio::test]
async fn a_modern_client_always_hears_how_long_a_result_is_fresh() {
    let fixed = toolgate::handlers::ResourceContents::text("x");
    let server = Server::new("s", "1")
        .resource(toolgate::handlers::Resource::fixed("test://a", "a", fixed))
        .build()
        .unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://a"})),
    ] {
        let result = peer.result(method, params).await;
        assert!(result["ttlMs"].is_u64(), "{method}: {result}");
        let scope = result["cacheScope"].as_str();
        assert!(
            matches!(scope, Some("public" | "private")),
            "{method}: {result}"
        );
    }
}

/// A modern client is asked inside of a result, never by a request, however the tool asks.
///
/// Holds: MRTR-01
#[tokio::test]
async fn a_modern_client_gets_no_request() {
    let asks = Tool::dynamic("asks", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.ask("q", toolgate::handlers::ask::text("Who?"))
    });
    let server = Server::new("s", "1").tool(asks).build().unwrap();
    let able = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let mut peer = Peer::open(&server, NEWEST_REVISION, able).await;
    // `result` fails at a request from the server.
    let asked = peer.result("tools/call", json!({"name": "asks"})).await;
    assert_eq!(asked["resultType"], "input_required");
}

/// A page that is opened for a user has an id in 2025-11-25, though the tool gave none, and none in 2026-07-28.
///
/// Holds: ELIC-06, ELIC-09
#[tokio::test]
async fn a_page_has_an_id_where_the_revision_has_one() {
    let page = Tool::dynamic("page", json!({"type": "object"}), |_, cx: Cx| async move {
        let page = toolgate::handlers::ask::url("Log in.", "https://example.com/");
        cx.ask("q", page)?;
        Ok::<_, HandlerExit>("done")
    });
    let server = Server::new("s", "1").tool(page).build().unwrap();
    for revision in ["2025-11-25", NEWEST_REVISION] {
        let able = json!({"elicitation": {"url": {}}});
        let mut peer = Peer::open(&server, revision, able).await;
        let seen = std::sync::Mutex::new(None);
        peer.call("page", json!({}), |_, params| {
            *seen.lock().unwrap() = params.get("elicitationId").cloned();
            json!({"action": "accept"})
        })
        .await;
        let id = seen.into_inner().unwrap();
        let good = id
            .as_ref()
            .and_then(Value::as_str)
            .is_some_and(|id| !id.is_empty());
        assert_eq!(good, revision != NEWEST_REVISION, "{id:?}");
    }
}
