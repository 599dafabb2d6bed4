//! Pages of tools (the extension MCP Apps) through the gateway.

use crate::help::{Modern, Reply, Setup, answer_of, upstream};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const UI: &str = "io.modelcontextprotocol/ui";
const PAGE: &str = "text/html;profile=mcp-app";

/// A server whose tool has a page `ui://app`, listed or not; and all that it was asked.
fn server(name: &'static str, listed: bool) -> (String, Arc<Mutex<Vec<Value>>>) {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let keep = asked.clone();
    let address = upstream(move |message| {
        keep.lock().unwrap().push(message.clone());
        let answer = |result: Value| Reply::result(message, result);
        let tool = |tool: &str, ui: Value| {
            json!({
                "name": tool, "description": "Shows it.", "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true},
                "_meta": {"ui": ui, "ui/resourceUri": "ui://app", "example.com/own": 1},
            })
        };
        let page = json!({"uri": "ui://app", "name": "app", "mimeType": PAGE, "_meta": {"ui": {"prefersBorder": true}}});
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {"subscribe": true}},
                "serverInfo": {"name": name, "version": "1"},
            })),
            "tools/list" => answer(json!({"tools": [
                tool("show", json!({"resourceUri": "ui://app"})),
                tool("refresh", json!({"resourceUri": "ui://app", "visibility": ["app"]})),
            ]})),
            "resources/list" if listed => answer(json!({"resources": [page]})),
            "resources/list" => answer(json!({"resources": []})),
            "resources/templates/list" => answer(json!({"resourceTemplates": []})),
            "resources/read" => {
                let uri = &message["params"]["uri"];
                let text = html(name, uri.as_str().unwrap());
                let ui = json!({"csp": {"connectDomains": ["https://example.com"]}});
                answer(
                    json!({"contents": [{"uri": uri, "mimeType": PAGE, "text": text, "_meta": {"ui": ui}}]}),
                )
            }
            "tools/call" => answer(json!({
                "content": [
                    {"type": "text", "text": "shown"},
                    {"type": "resource_link", "uri": "ui://made", "name": "made", "mimeType": PAGE},
                    {"type": "resource", "resource": {"uri": "ui://whole", "mimeType": PAGE, "text": "<p>"}},
                ],
                "_meta": {"ui": {"resourceUri": "ui://app"}},
            })),
            _ => answer(json!({})),
        }
    });
    (address, asked)
}

fn html(name: &str, uri: &str) -> String {
    format!("<!doctype html><title>{name}</title><script>let a = \"{uri}\" && 1 < 2;</script>")
}

fn config(one: &str, two: &str, more: &str) -> String {
    let server =
        |id: &str, url: &str| format!("[server.{id}]\nurl = {url:?}\ntrust_annotations = true\n");
    let allow = "[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n";
    format!("{}{}{allow}{more}", server("one", one), server("two", two))
}

fn ask(port: u16, name: Option<&str>, method: &str, params: Value) -> Value {
    Modern::ask(port, name, &Modern::body(&json!(1), method, params))
}

fn read(port: u16, uri: &str) -> Value {
    ask(port, Some(uri), "resources/read", json!({"uri": uri}))
}

/// Holds: XAPPS-01
#[test]
fn pages_of_two_servers_do_not_meet_and_lead_back() {
    let ((one, asked), (two, asked_two)) = (server("one", true), server("two", false));
    let gate = Setup::config(config(&one, &two, "")).start();
    let port = gate.port;
    let tools = ask(port, None, "tools/list", json!({}))["result"]["tools"].clone();
    for (at, id) in [(0, "one"), (2, "two")] {
        let meta = &tools[at]["_meta"];
        let uri = format!("ui://{id}/app");
        assert_eq!(meta["ui"], json!({"resourceUri": uri}), "{tools}");
        assert_eq!(meta["ui/resourceUri"], uri);
        assert_eq!(meta["example.com/own"], 1);
        let meta = &tools[at + 1]["_meta"];
        assert_eq!(
            meta["ui"]["visibility"],
            json!(["app"]),
            "as the server says"
        );
        let page = read(port, &uri);
        let page = &page["result"]["contents"][0];
        assert_eq!(page["uri"], uri, "{page}");
        assert_eq!(page["mimeType"], PAGE);
        assert_eq!(page["text"], html(id, "ui://app"), "as it came");
        assert_eq!(
            page["_meta"]["ui"]["csp"]["connectDomains"][0],
            "https://example.com"
        );
    }
    let list = ask(port, None, "resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list[0]["uri"], "ui://one/app");
    assert_eq!(list[0]["_meta"]["ui"]["prefersBorder"], true);
    for nobody in [
        "ui://app",
        "ui://two/other",
        "ui://three/app",
        "ui://one/made",
    ] {
        let error = read(port, nobody);
        assert!(error["error"].is_object(), "{nobody}: {error}");
    }
    let shown = Modern::call(port, &json!(2), "one_show", json!({}));
    let shown = answer_of(&shown, &json!(2))["result"].clone();
    assert_eq!(shown["content"][1]["uri"], "ui://one/made", "{shown}");
    assert_eq!(shown["content"][2]["resource"]["uri"], "ui://one/whole");
    assert_eq!(shown["_meta"]["ui"]["resourceUri"], "ui://one/app");
    let made = read(port, "ui://one/made");
    assert_eq!(
        made["result"]["contents"][0]["text"],
        html("one", "ui://made")
    );

    let uris = |asked: &Mutex<Vec<Value>>, method: &str| -> Vec<Value> {
        let asked = asked.lock().unwrap();
        let of = asked.iter().filter(|message| message["method"] == method);
        of.map(|message| message["params"]["uri"].clone()).collect()
    };
    assert_eq!(uris(&asked, "resources/read"), ["ui://app", "ui://made"]);
    assert_eq!(uris(&asked_two, "resources/read"), ["ui://app"]);
    // Both sides hear of the extension.
    let opened = asked.lock().unwrap();
    let opened = opened
        .iter()
        .find(|message| message["method"] == "initialize");
    let told = &opened.unwrap()["params"]["capabilities"]["extensions"][UI];
    assert_eq!(*told, json!({"mimeTypes": [PAGE]}));
    let told = ask(port, None, "server/discover", json!({}));
    assert_eq!(
        told["result"]["capabilities"]["extensions"][UI],
        json!({}),
        "{told}"
    );
    // Pins are of what the server says, under its own names.
    let pins = gate.cli(&["pins", "list"]);
    assert!(
        pins.contains("one.resource:ui://app") && !pins.contains("ui://one"),
        "{pins}"
    );
    gate.stop();
}

#[test]
fn rules_speak_of_pages_and_what_is_for_pages_is_listed_and_not_found() {
    let ((one, _), (two, _)) = (server("one", true), server("two", false));
    let more = "[search]\n[[rule]]\ntools = [\"two.resource:ui://two/*\"]\naction = \"deny\"\n";
    let gate = Setup::config(config(&one, &two, more)).start();
    let port = gate.port;
    let tools = ask(port, None, "tools/list", json!({}))["result"]["tools"].clone();
    let names = tools.as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["find_tools", "call_tool", "one_refresh", "two_refresh"]
    );
    let found = Modern::call(
        port,
        &json!(2),
        "find_tools",
        json!({"query": "show refresh"}),
    );
    let found = answer_of(&found, &json!(2))["result"]["structuredContent"].clone();
    assert_eq!(found["found"], 2, "{found}");
    let meta = &found["tools"][0]["_meta"];
    assert_eq!(meta["ui"]["resourceUri"], "ui://one/app", "{found}");
    assert!(read(port, "ui://one/app")["result"].is_object());
    let hidden = read(port, "ui://two/app");
    let message = hidden["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("unknown resource"), "{hidden}");
    gate.stop();
}

#[test]
fn a_single_server_keeps_its_names() {
    let (one, _) = server("one", true);
    let text = format!("[server.one]\nurl = {one:?}\ntrust_annotations = true\nprefix = \"\"\n");
    let gate = Setup::config(text).start();
    let tools = ask(gate.port, None, "tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools[0]["_meta"]["ui"]["resourceUri"], "ui://app");
    let page = read(gate.port, "ui://app");
    assert_eq!(page["result"]["contents"][0]["uri"], "ui://app", "{page}");
    gate.stop();
}
