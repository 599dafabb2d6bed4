//! Icons, and pages of MCP Apps.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use serde_json::{Value, json};
use toolgate::{
    Cx, Server,
    handlers::{AppPage, AppPermission, Icon, IconTheme, IntoTool},
    prompt, resource, template, tool,
};

/// Tells the time.
#[tool(
    read_only,
    icon = "https://clock.example/now.png",
    ui = "ui://clock/face"
)]
fn now(cx: Cx) -> String {
    format!("noon, {}", cx.shows_apps())
}

/// Turns the hands.
#[tool(app_only, ui = "ui://clock/face")]
fn turn() {}

#[prompt(icon = "https://clock.example/ask.png")]
fn ask() -> &'static str {
    "What time is it?"
}

#[resource("clock:///time", icon = "https://clock.example/time.png")]
fn time() -> &'static str {
    "noon"
}

#[template("clock:///{zone}", icon = "https://clock.example/zone.png")]
fn zone(zone: String) -> String {
    zone
}

fn face() -> AppPage {
    AppPage::new("ui://clock/face", "<!doctype html>")
        .description("Face of the clock.")
        .connect_domains(["https://time.example"])
        .connect_domains(["wss://time.example"])
        .resource_domains(["https://cdn.example"])
        .permission(AppPermission::Geolocation)
        .permission(AppPermission::ClipboardWrite)
        .prefers_border(false)
}

fn server() -> Server {
    let dark = Icon::data("image/svg+xml", "<svg/>");
    Server::new("clock", "1")
        .icon(Icon::new("https://clock.example/icon.png"))
        .icon(dark.sizes(["any"]).theme(IconTheme::Dark))
        .app(face())
        .tool(
            now.into_tool()
                .icon(Icon::new("https://clock.example/2.png")),
        )
        .tool(turn)
        .prompt(ask)
        .resource(time)
        .template(zone)
}

const UI: &str = r#"{"csp":{"connectDomains":["https://time.example","wss://time.example"],"resourceDomains":["https://cdn.example"]},"permissions":{"clipboardWrite":{},"geolocation":{}},"prefersBorder":false}"#;

#[tokio::test]
async fn icons_are_sent_in_the_revisions_that_have_them() {
    for revision in REVISIONS {
        let has_icons = revision.as_bytes() >= b"2025-11-25".as_slice();
        let server = server().build().unwrap();
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let mut lists = Vec::new();
        for (method, list) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let listed = peer.result(method, json!({})).await;
            lists.push(listed[list].as_array().unwrap().clone());
        }
        let sources = |item: &Value| {
            let icons = item["icons"].as_array().cloned().unwrap_or_default();
            let sources = icons
                .iter()
                .map(|icon| icon["src"].as_str().unwrap().to_owned());
            sources.collect::<Vec<_>>().join(" ")
        };
        let found: Vec<String> = lists.iter().flatten().map(sources).collect();
        let expected = [
            "https://clock.example/now.png https://clock.example/2.png",
            "",
            "https://clock.example/ask.png",
            "",
            "https://clock.example/time.png",
            "https://clock.example/zone.png",
        ];
        let expected = expected.map(|sources| if has_icons { sources } else { "" });
        assert_eq!(found, expected, "{revision}");
    }
}

#[tokio::test]
async fn icons_of_the_server_have_all_their_members() {
    let server = server().build().unwrap();
    let opened = Peer::opened(&server, "2025-11-25").await;
    assert_eq!(
        opened["serverInfo"]["icons"],
        json!([
            {"src": "https://clock.example/icon.png"},
            {"src": "data:image/svg+xml;base64,PHN2Zy8+", "mimeType": "image/svg+xml", "sizes": ["any"], "theme": "dark"},
        ])
    );
    let older = Peer::opened(&server, "2025-06-18").await;
    assert_eq!(older["serverInfo"]["icons"], Value::Null);
}

#[tokio::test]
async fn a_page_has_its_settings_in_the_list_and_in_its_contents() {
    let settings: Value = serde_json::from_str(UI).unwrap();
    let server = server().build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let listed = peer.result("resources/list", json!({})).await;
    assert_eq!(
        listed["resources"][0],
        json!({"uri": "ui://clock/face", "name": "clock/face", "description": "Face of the clock.",
            "mimeType": "text/html;profile=mcp-app", "_meta": {"ui": settings}})
    );
    let uri = json!({"uri": "ui://clock/face"});
    let read = peer.result("resources/read", uri).await;
    assert_eq!(
        read["contents"],
        json!([{"uri": "ui://clock/face", "mimeType": "text/html;profile=mcp-app",
            "text": "<!doctype html>", "_meta": {"ui": settings}}])
    );
}

#[tokio::test]
async fn tools_name_their_page_and_who_uses_them() {
    let server = server().build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let listed = peer.result("tools/list", json!({})).await;
    let ui = |at: usize| listed["tools"][at]["_meta"]["ui"].clone();
    assert_eq!(ui(0), json!({"resourceUri": "ui://clock/face"}));
    let expected = json!({"resourceUri": "ui://clock/face", "visibility": ["app"]});
    assert_eq!(ui(1), expected);
}

#[tokio::test]
async fn a_handler_knows_whether_the_client_shows_pages() {
    for (mime, shown) in [("text/html;profile=mcp-app", true), ("text/plain", false)] {
        let extension = json!({"io.modelcontextprotocol/ui": {"mimeTypes": [mime]}});
        let capabilities = json!({"extensions": extension});
        let server = server().build().unwrap();
        let mut peer = Peer::open(&server, NEWEST_REVISION, capabilities).await;
        let result = peer.result("tools/call", json!({"name": "now"})).await;
        assert_eq!(result["content"][0]["text"], format!("noon, {shown}"));
    }
}

#[test]
fn rejects_a_tool_without_its_page_and_a_page_with_another_scheme() {
    let error = Server::new("clock", "1").tool(turn).build().err().unwrap();
    let text = error.to_string();
    assert!(text.contains("is not a resource of the server"), "{text}");
    let page = AppPage::new("https://clock.example", "<!doctype html>");
    let error = Server::new("clock", "1").app(page).build().err().unwrap();
    assert!(
        error.to_string().contains("begins with \"ui://\""),
        "{error}"
    );
}
