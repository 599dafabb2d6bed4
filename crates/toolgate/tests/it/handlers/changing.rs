//! Changes of the offered items while the server runs.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use serde_json::{Value, json};
use toolgate::{
    HandlerExit,
    edge::ServerLimits,
    handlers::{Prompt, Resource, ResourceContents, Server, Tool},
};

fn tool(name: &str) -> Tool {
    Tool::dynamic(name, json!({"type": "object"}), |_, _| async {
        Ok::<_, HandlerExit>("x")
    })
}

fn resource(uri: &str) -> Resource {
    Resource::fixed(uri, "r", ResourceContents::text("x"))
}

/// Three changes at once are one notification, and the list is the new one.
///
/// Holds: TOOL-05
#[tokio::test]
async fn changes_are_told_once() {
    for revision in REVISIONS.into_iter().filter(|r| *r != NEWEST_REVISION) {
        let (server, registry) = Server::new("s", "1")
            .tool(tool("a"))
            .build_with_registry()
            .unwrap();
        let mut peer = Peer::open(&server, revision, json!({})).await;
        peer.result("tools/list", json!({})).await;
        for name in ["b", "c", "d"] {
            registry.set_tool(tool(name)).unwrap();
        }
        assert!(registry.remove_tool("a") && !registry.remove_tool("a"));
        assert_eq!(
            peer.receive().await["method"],
            "notifications/tools/list_changed"
        );
        let list = peer.result("tools/list", json!({})).await;
        assert_eq!(
            list["tools"].as_array().unwrap().len(),
            3,
            "and no second notification came before"
        );
    }
}

/// Only what was asked for is told, with the id of the stream, after the acknowledgement.
///
/// Holds: TOOL-06, SUB-01, SUB-02, SUB-03, PROM-02, RES-03, BASE-42
#[tokio::test]
async fn a_stream_tells_what_it_was_opened_for() {
    let server = Server::new("s", "1")
        .tool(tool("a"))
        .resource(resource("test://a"))
        .resource(resource("test://b"))
        .prompt(Prompt::new("p", |_, _| async { Ok::<_, HandlerExit>("x") }));
    let (server, registry) = server.build_with_registry().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let filter =
        json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a", "test://hidden"]});
    let id = peer
        .send_request("subscriptions/listen", json!({"notifications": filter}))
        .await;
    let first = peer.receive().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a"]}),
        "only what it will tell"
    );
    let stream = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    assert_eq!(stream(&first), id);
    registry.set_tool(tool("b")).unwrap();
    registry.updated("test://b");
    registry
        .set_prompt(Prompt::new("q", |_, _| async { Ok::<_, HandlerExit>("x") }))
        .unwrap();
    let told = peer.receive().await;
    assert_eq!(told["method"], "notifications/prompts/list_changed");
    assert_eq!(stream(&told), id);
    registry.updated("test://a");
    let told = peer.receive().await;
    assert_eq!(stream(&told), id);
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (
            &json!("notifications/resources/updated"),
            &json!("test://a")
        )
    );
}

/// Holds: RES-03
#[tokio::test]
async fn a_session_hears_of_resources_that_it_subscribed_to() {
    let server = Server::new("s", "1")
        .resource(resource("test://a"))
        .resource(resource("test://b"));
    let (server, registry) = server.build_with_registry().unwrap();
    let mut peer = Peer::open(&server, "2025-11-25", json!({})).await;
    let missing = peer
        .error("resources/subscribe", json!({"uri": "test://c"}))
        .await;
    assert_eq!(missing["code"], -32002);
    peer.result("resources/subscribe", json!({"uri": "test://a"}))
        .await;
    peer.result("ping", json!({})).await;
    registry.updated("test://b");
    registry.updated("test://a");
    assert_eq!(peer.receive().await["params"]["uri"], "test://a");
    peer.result("resources/unsubscribe", json!({"uri": "test://a"}))
        .await;
    registry.updated("test://a");
    registry.remove_resource("test://b");
    assert_eq!(
        peer.receive().await["method"],
        "notifications/resources/list_changed"
    );
}

/// A wrong definition changes nothing.
#[tokio::test]
async fn a_wrong_definition_is_refused_while_running() {
    let (_, registry) = Server::new("s", "1")
        .tool(tool("a"))
        .build_with_registry()
        .unwrap();
    let error = registry.set_tool(tool("not a name")).unwrap_err();
    assert!(
        error.to_string().starts_with("the tool \"not a name\": "),
        "{error}"
    );
}

/// A cursor names its place, so what is added does not move it, and it ends with the item that it names.
///
/// Holds: PAG-03
#[tokio::test]
async fn a_cursor_keeps_its_place() {
    let mut limits = ServerLimits::default();
    limits.page_items = 2;
    for revision in REVISIONS {
        let server = ["a", "b", "c"].map(tool).into_iter();
        let server = server.fold(Server::new("s", "1"), Server::tool);
        let (server, registry) = server.limits(limits.clone()).build_with_registry().unwrap();
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let page = peer.result("tools/list", json!({})).await;
        let next = json!({"cursor": page["nextCursor"]});
        for expected in [&["c"][..], &["c", "d"]] {
            let page = peer.result("tools/list", next.clone()).await;
            let tools = page["tools"].as_array().unwrap();
            let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
            assert_eq!(names, expected, "{revision}");
            registry.set_tool(tool("d")).unwrap();
        }
        registry.remove_tool("b");
        let error = peer.error("tools/list", next).await;
        assert_eq!(error["code"], -32602, "{revision}");
    }
}
