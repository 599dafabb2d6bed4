//! Text of servers and callers is only text at the console, wherever a page shows it.

use super::offering;
use crate::help::{Gate, Modern, SOON, Script, browser, raw, real, request, until};
use serde_json::{Value, json};
use std::thread::{self, JoinHandle};

/// Runs a script if a page takes it for markup, for a link or for an address.
const MARKUP: &str = "<img src=x onerror=\"window.ran='img'\"><script>window.ran='script'</script>\
    <a href=\"javascript:window.ran='link'\">x</a>'\"><svg onload=\"window.ran='svg'\">";

/// The same, with characters that reorder or hide text.
fn hostile() -> String {
    format!("{MARKUP}\u{202e}gpj\u{200b}.exe")
}

fn offer() -> Value {
    let tool = |name: &str| {
        json!({
            "name": name, "title": hostile(), "description": hostile(),
            "inputSchema": {"type": "object", "properties": {MARKUP: {"type": "string", "title": hostile(), "description": hostile(), "default": MARKUP}}},
        })
    };
    let text = json!({"type": "text", "text": hostile()});
    let link = json!({"type": "resource_link", "uri": "javascript:window.ran='uri'", "name": hostile(), "description": hostile()});
    let image = json!({"type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9IndpbmRvdy5yYW49J2ltYWdlJyIvPg=="});
    json!({
        "instructions": hostile(),
        "tools": [tool("look"), tool("fail")],
        "prompts": [{"name": "greet", "title": hostile(), "description": hostile(), "arguments": [{"name": MARKUP, "description": hostile()}]}],
        "resources": [{"uri": "javascript:window.ran='resource'", "name": hostile(), "title": hostile(), "description": hostile()}],
        "results": {
            "look": {"content": [text, link, image]},
            "fail": {"content": [text], "isError": true},
        },
    })
}

fn call(gate: &Gate, tool: &'static str) -> JoinHandle<()> {
    let params = json!({"name": tool, "arguments": {MARKUP: hostile()}});
    let mut body = Modern::body(&json!(1), "tools/call", params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": hostile(), "version": hostile()});
    let headers = Modern::headers("tools/call", Some(tool));
    let bytes = request(
        gate.port,
        "POST",
        "/mcp",
        &headers,
        body.to_string().as_bytes(),
    );
    let port = gate.port;
    thread::spawn(move || drop(raw(port, &bytes)))
}

#[test]
fn text_of_servers_and_callers_is_inert_on_every_page() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let audit = "[audit]\narguments = \"redacted\"\nresults = \"redacted\"\n";
    let gate = offering(&offer(), audit);
    let go = |to: &str, at: &str| {
        [
            json!({"do": "go", "to": to}),
            json!({"do": "see", "at": at}),
            json!({"do": "foreign", "page": to}),
        ]
    };
    let mut steps = vec![
        json!({"do": "go", "to": "#/calls"}),
        json!({"do": "see", "at": "#view-calls h2"}),
        json!({"do": "wait"}),
    ];
    let pages = [
        ("#/overview", "[data-map='server s']"),
        ("#/inbox", "[data-detail] [data-arguments]"),
        ("#/calls", "[data-call]"),
        ("#/tools", "[data-tool]"),
        ("#/servers", "[data-server=s]"),
        ("#/changes", "#view-changes h2"),
        ("#/sign-ins", "#view-sign-ins h2"),
        ("#/tasks", "#view-tasks h2"),
        ("#/rules", "#view-rules h2"),
        ("#/grants", "#view-grants h2"),
        ("#/callers", "#view-callers tbody tr"),
        ("#/keys", "#view-keys h2"),
        ("#/audit", "[data-record]"),
        ("#/notifications", "#view-notifications h2"),
        ("#/settings", "#view-settings [data-version]"),
    ];
    for (to, at) in pages {
        steps.extend(go(to, at));
    }
    let open = [
        (
            "#/tools",
            "[data-tool$='look'] .open",
            "[data-tool-detail] [data-act=call]",
        ),
        (
            "#/calls",
            "[data-call]:has-text('look') .open",
            "[data-call-detail] [data-result] *",
        ),
        (
            "#/audit",
            "[data-record]:has-text('call.end') .open",
            "#view-audit [aria-label='Audit record'] .facts",
        ),
    ];
    for (to, click, at) in open {
        steps.push(json!({"do": "go", "to": to}));
        steps.push(json!({"do": "click", "at": click}));
        steps.push(json!({"do": "see", "at": at}));
        steps.push(json!({"do": "foreign", "page": format!("{to}, one of them")}));
    }
    let mut page = Script::browser(&real, &gate.console(), json!(steps));
    page.event("waiting");
    let mut calls = Vec::new();
    for (tool, decide) in [
        ("s_look", "approve"),
        ("s_fail", "approve"),
        ("s_look", "deny"),
    ] {
        calls.push(call(&gate, tool));
        let id = gate.pending();
        match decide {
            "approve" => gate.cli(&["approve", &id]),
            _ => gate.cli(&["deny", &id, "-m", &hostile()]),
        };
        until("it is decided", SOON, || {
            gate.inbox().is_empty().then_some(())
        });
    }
    calls.push(call(&gate, "s_look"));
    gate.pending();
    gate.cli(&["freeze", "caller", "token@http", "--reason", &hostile()]);
    page.go_on();
    page.event("done");
    let seen = page.seen("foreign");
    assert_eq!(seen.len(), pages.len() + open.len());
    for found in seen {
        assert_eq!(found["ran"], Value::Null, "{found}");
        assert_eq!(found["markup"], json!([]), "{found}");
        assert_eq!(found["hidden"], 0, "unmarked characters: {found}");
    }
    let shown = page.seen("foreign");
    let with_text = shown.iter().filter(|found| found["shows"] == true).count();
    assert!(with_text >= 8, "the text is on {with_text} pages only");
    page.assert_no_page_error();
    gate.cli(&["freeze", "all"]);
    calls.into_iter().for_each(|call| call.join().unwrap());
}
