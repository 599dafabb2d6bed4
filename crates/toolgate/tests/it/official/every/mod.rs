//! Every method of our server, in every revision, with all that it can say. The peer checks each message.

mod offer;

use crate::handlers::peer::{NEWEST_REVISION, Peer, REVISIONS};
use offer::{PAGE, PROMPTS, RESOURCES, TEMPLATES, TOOLS, object, offer, resource};
use serde_json::{Value, json};
use toolgate::handlers::{HandlerExit, ItemRegistry, Prompt, Tool};

fn able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": true}})
}

fn answer(method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///r", "name": "r"}]}),
        _ if params.get("url").is_some() => json!({"action": "accept"}),
        _ => {
            let mut content = json!({});
            for (name, field) in params["requestedSchema"]["properties"].as_object().unwrap() {
                content[name] = match field["type"].as_str() {
                    Some("boolean") => json!(true),
                    Some("integer" | "number") => json!(7),
                    Some("array") => json!(["a"]),
                    _ => json!("a"),
                };
            }
            json!({"action": "accept", "content": content})
        }
    }
}

/// Every page of a list, of which there are several; what its items are called by that member, in order.
async fn pages(peer: &mut Peer, method: &str, member: &str, key: &str) -> Vec<String> {
    let (mut params, mut names, mut count) = (json!({}), Vec::new(), 0);
    loop {
        let page = peer.result(method, params).await;
        let items = page[member].as_array().unwrap();
        assert!((1..=PAGE).contains(&items.len()), "{method}: {page}");
        names.extend(items.iter().map(|i| i[key].as_str().unwrap().to_owned()));
        count += 1;
        let Some(next) = page.get("nextCursor") else {
            assert!(count > 1, "{method}: one page");
            names.sort_unstable();
            return names;
        };
        assert!(next.is_string(), "{method}: {page}");
        params = json!({"cursor": next});
    }
}

/// Holds: BASE-15, TOOL-10, TOOL-11, TOOL-12, TOOL-16, PROM-03, LOG-02, BASE-01, BASE-09, STDIO-03, PAG-01
#[tokio::test]
async fn what_is_used_in_every_revision() {
    let (server, _) = offer();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, able()).await;
        for (method, member, key, expected) in [
            ("tools/list", "tools", "name", &TOOLS[..]),
            ("prompts/list", "prompts", "name", &PROMPTS),
            ("resources/list", "resources", "uri", &RESOURCES),
            (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
                &TEMPLATES,
            ),
        ] {
            let names = pages(&mut peer, method, member, key).await;
            assert_eq!(names, expected, "{revision}");
        }
        for tool in [
            "blocks", "object", "list", "null", "typed", "empty", "fails", "missing", "broken",
            "panics", "noisy", "meta",
        ] {
            let meta = json!({"progressToken": tool, "io.modelcontextprotocol/logLevel": "debug"});
            let params = json!({"name": tool, "arguments": {}, "_meta": meta});
            let reply = peer.request("tools/call", params).await;
            // Before 2025-06-18 a tool promises nothing about its result.
            if tool == "broken" && revision >= "2025-06-18" {
                let failed = reply.get("error").is_some() || reply["result"]["isError"] == true;
                assert!(failed, "{revision}: {reply}");
            }
        }
        for uri in ["test://text", "test://bytes", "test://parts", "note://1"] {
            peer.result("resources/read", json!({"uri": uri})).await;
        }
        for (name, argument) in [("blocks", "a"), ("typed", "city")] {
            let params = json!({"name": name, "arguments": {argument: "x"}});
            peer.result("prompts/get", params).await;
        }
        for of in [
            json!({"type": "ref/prompt", "name": "blocks"}),
            json!({"type": "ref/resource", "uri": "note://{a}"}),
        ] {
            let params = json!({"ref": of, "argument": {"name": "a", "value": "x"}});
            peer.result("completion/complete", params).await;
        }
        if revision == NEWEST_REVISION {
            peer.result("server/discover", json!({})).await;
        } else {
            peer.result("ping", json!({})).await;
            let level = json!({"level": "debug"});
            peer.result("logging/setLevel", level).await;
            peer.result("tools/call", json!({"name": "noisy"})).await;
        }
    }
}

/// Holds: TOOL-17, RES-05, LOG-02, BASE-07, BASE-10, STDIO-03
#[tokio::test]
async fn what_goes_wrong_in_every_revision() {
    let (server, _) = offer();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        for (method, params) in [
            ("no/such", json!({})),
            ("tools/call", json!({"name": "nobody"})),
            ("tools/call", json!({"name": 1})),
            ("tools/list", json!({"cursor": "strange"})),
            ("resources/read", json!({"uri": "test://nowhere"})),
            ("resources/read", json!({"uri": "note://9"})),
            ("prompts/get", json!({"name": "nobody"})),
            ("prompts/get", json!({"name": "blocks"})),
            ("prompts/get", json!({"name": "coded"})),
            ("completion/complete", json!({})),
        ] {
            peer.error(method, params).await;
        }
        for tool in ["typed", "text", "page", "model"] {
            let params = json!({"name": tool, "arguments": {"city": 1}});
            peer.request("tools/call", params).await;
        }
        if revision == NEWEST_REVISION {
            let version = "io.modelcontextprotocol/protocolVersion";
            let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
            let params = json!({"_meta": {version: "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {}}});
            let asked =
                json!({"jsonrpc": "2.0", "id": 900, "method": "tools/list", "params": params});
            peer.send_message(asked).await;
            assert_eq!(peer.receive().await["error"]["code"], -32022);
            peer.error("subscriptions/listen", json!({})).await;
        } else {
            let level = json!({"level": "loud"});
            peer.error("logging/setLevel", level).await;
            let nowhere = json!({"uri": "test://nowhere"});
            peer.error("resources/subscribe", nowhere).await;
        }
    }
}

/// Holds: MRTR-01, ELIC-06, SAMP-02, STDIO-08
#[tokio::test]
async fn questions_in_every_revision() {
    let (server, _) = offer();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, able()).await;
        for tool in [
            "text", "sure", "whole", "number", "choice", "form", "fields", "titled", "many",
            "page", "model", "sample", "tools", "roots", "all",
        ] {
            peer.call(tool, json!({}), answer).await;
        }
    }
}

fn change(registry: &ItemRegistry, name: &str) {
    let tool = Tool::dynamic(name, object(), |_, _| async { Ok::<_, HandlerExit>("x") });
    registry.set_tool(tool).unwrap();
    registry.updated("test://text");
    registry
        .set_prompt(Prompt::new(name, |_, _| async {
            Ok::<_, HandlerExit>("x")
        }))
        .unwrap();
    registry
        .set_resource(resource(&format!("test://{name}")))
        .unwrap();
}

/// Returns the methods of the notifications before an empty reply.
async fn told(peer: &mut Peer, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < count {
        let message = peer.receive().await;
        told.push(message["method"].as_str().unwrap().to_owned());
    }
    told.sort_unstable();
    told
}

const CHANGES: [&str; 4] = [
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
];

/// Holds: TOOL-05, PROM-02, RES-03, SUB-01, SUB-02, TOOL-06
#[tokio::test]
async fn changes_in_every_revision() {
    for revision in REVISIONS {
        let (server, registry) = offer();
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let uri = json!({"uri": "test://text"});
        if revision == NEWEST_REVISION {
            let all = json!({"toolsListChanged": true, "promptsListChanged": true,
                "resourcesListChanged": true, "resourceSubscriptions": ["test://text"]});
            let params = json!({"notifications": all.clone()});
            peer.send_request("subscriptions/listen", params).await;
            let opened = peer.receive().await;
            assert_eq!(opened["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(opened["params"]["notifications"], all);
        } else {
            peer.result("resources/subscribe", uri.clone()).await;
        }
        change(&registry, "new");
        assert_eq!(told(&mut peer, 4).await, CHANGES, "{revision}");
        if revision == NEWEST_REVISION {
            server.close();
            assert_eq!(peer.receive().await["method"], "notifications/cancelled");
            assert_eq!(peer.receive().await["result"]["resultType"], "complete");
        } else {
            peer.result("resources/unsubscribe", uri).await;
        }
    }
}
