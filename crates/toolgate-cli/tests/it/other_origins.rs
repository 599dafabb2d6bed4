//! Scripts of pages of other origins, in a real browser: the named one may use the endpoint, others may not.

use crate::help::{Modern, Script, Setup, browser, real, send};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

/// A web server with one empty page; its origin.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let page = "<!doctype html><link rel=icon href=data:,><title>x</title>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            );
        }
    });
    origin
}

fn headers(lines: &[String]) -> Value {
    let pairs = lines.iter().map(|line| line.split_once(": ").unwrap());
    pairs.map(|(name, value)| (name, json!(value))).collect()
}

#[test]
fn a_named_page_calls_from_its_script_and_another_cannot() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let (named, other) = (site(), site());
    let gate = Setup::fast_demo("")
        .top(&format!("allowed_origins = [{named:?}]"))
        .start();
    let call = json!({"name": "demo_add", "arguments": {"a": 2, "b": 3}});
    let body = Modern::body(&json!(1), "tools/call", call).to_string();
    let mut lines = Modern::headers("tools/call", Some("demo_add"));
    lines.push("Mcp-Param-Unknown: x".to_owned());
    let modern = json!({"method": "POST", "headers": headers(&lines), "body": body});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let lines = [
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ]
    .map(str::to_owned);
    let session = json!({"method": "POST", "headers": headers(&lines), "body": open.to_string()});
    let strange = json!({"method": "POST", "headers": {"Content-Type": "application/json", "X-Other": "1"}, "body": "{}"});
    let console = gate.endpoint.replace("/mcp", "/console/api/state");
    let steps = json!([
        {"do": "fetch", "url": gate.endpoint, "init": modern},
        {"do": "fetch", "url": gate.endpoint, "init": session, "read": "Mcp-Session-Id"},
        {"do": "fetch", "url": gate.endpoint, "init": strange},
        {"do": "fetch", "url": console, "init": {"headers": {"X-Toolgate-Console": "1"}}},
        {"do": "fetch", "url": console, "init": {}},
    ]);

    let mut page = Script::browser(&real, &named, steps.clone());
    let called = page.event("fetch");
    assert_eq!(called["status"], 200, "{called}");
    assert!(
        called["text"].as_str().unwrap().contains("\"sum\":5"),
        "{called}"
    );
    let opened = page.event("fetch");
    assert!(
        opened["read"].as_str().is_some_and(|id| id.len() >= 32),
        "{opened}"
    );
    for what in ["a header of another kind", "the console", "its answers"] {
        let refused = page.event("fetch");
        assert!(refused["refused"].is_string(), "{what}: {refused}");
    }
    page.event("done");

    let mut page = Script::browser(&real, &other, steps);
    for _ in 0..5 {
        let refused = page.event("fetch");
        assert!(refused["refused"].is_string(), "{refused}");
    }
    page.event("done");
}

#[test]
fn a_preflight_needs_no_token_and_lets_nothing_else_pass() {
    let gate = Setup::fast_demo("")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }\nallowed_origins = [\"https://app.example\"]")
        .env("TOOLGATE_TEST_TOKEN", "correct-horse-battery-staple")
        .start();
    let ask = |method: &str, path: &str, origin: &str| {
        let lines = [
            format!("Origin: {origin}"),
            "Access-Control-Request-Method: POST".to_owned(),
        ];
        send(gate.port, method, path, &lines, b"")
    };
    let allowed = "access-control-allow-origin";
    for path in ["/mcp", "/sse", "/messages"] {
        let answer = ask("OPTIONS", path, "https://app.example");
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header(allowed), Some("https://app.example"));
        let answer = ask("OPTIONS", path, "https://evil.example");
        assert_eq!((answer.status, answer.header(allowed)), (403, None));
        let own = format!("http://127.0.0.1:{}", gate.port);
        let answer = ask("OPTIONS", path, &own);
        assert_eq!((answer.status, answer.header(allowed)), (401, None));
    }
    let answer = ask("POST", "/mcp", "https://app.example");
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header(allowed),
        Some("https://app.example"),
        "so that the page can read why"
    );
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce")
    );
    for path in ["/", "/console/api/state", "/console/login", "/nowhere"] {
        for method in ["OPTIONS", "GET"] {
            let answer = ask(method, path, "https://app.example");
            assert_eq!(answer.header(allowed), None, "{method} {path}");
        }
    }
}

/// The way to a token is for listed pages, too. The document is public, but a page that is not listed reaches nothing here.
#[test]
fn the_metadata_is_for_listed_pages() {
    let gate = Setup::fast_demo(
        "[auth]\nresource = \"https://tools.example.com/mcp\"\n[auth.issuer.corp]\nurl = \"https://login.example.com\"\n",
    )
    .top("allowed_origins = [\"https://app.example\"]")
    .start();
    let ask = |method: &str, path: &str, origin: &str| {
        let mut lines = vec![format!("Origin: {origin}")];
        if method == "OPTIONS" {
            lines.push("Access-Control-Request-Method: GET".to_owned());
        }
        send(gate.port, method, path, &lines, b"")
    };
    let allowed = "access-control-allow-origin";
    let known = "/.well-known/oauth-protected-resource";
    for path in [known.to_owned(), format!("{known}/mcp")] {
        for (method, status) in [("GET", 200), ("OPTIONS", 204)] {
            let answer = ask(method, &path, "https://app.example");
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header(allowed), Some("https://app.example"));
            let answer = ask(method, &path, "https://evil.example");
            assert_eq!((answer.status, answer.header(allowed)), (403, None));
        }
        assert_eq!(send(gate.port, "GET", &path, &[], b"").status, 200);
    }
}
