//! Trusted proxies: the address of the client in the audit log and in limits.

use crate::help::{Gate, Modern, Response, SOON, Setup, raw, request, send, until};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

fn setup(header: &str, more: &str) -> Setup {
    Setup::config(format!(
        "{more}\n[proxy]\ntrusted = [\"127.0.0.1\"]\nheader = \"{header}\"\n[server.demo]\ncommand = [{:?}, \"demo-server\"]\ntrust_annotations = true\n",
        env!("CARGO_BIN_EXE_toolgate")
    ))
}

/// Calls a tool with more headers.
fn call(gate: &Gate, lines: &[&str]) -> Response {
    let body = Modern::body(
        &json!(1),
        "tools/call",
        json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}}),
    );
    let mut headers = Modern::headers("tools/call", Some("demo_add"));
    headers.extend(lines.iter().map(|&line| line.to_owned()));
    send(
        gate.port,
        "POST",
        "/mcp",
        &headers,
        body.to_string().as_bytes(),
    )
}

/// The addresses in all records of an event, with the caller.
fn addresses(gate: &Gate, event: &str) -> Vec<Value> {
    let records = gate.audit();
    let of_event = records.iter().filter(|record| record["ev"] == event);
    of_event.map(|record| record["addr"].clone()).collect()
}

#[test]
fn the_audit_log_has_the_address_of_the_client_behind_a_trusted_proxy() {
    let gate = setup("x-forwarded-for", "").start();
    assert_eq!(
        call(&gate, &["X-Forwarded-For: 6.6.6.6, 192.0.2.1"]).status,
        200
    );
    assert_eq!(call(&gate, &["Forwarded: for=198.51.100.7"]).status, 200);
    let expected = [json!("192.0.2.1"), Value::Null];
    assert_eq!(addresses(&gate, "call.begin"), expected);
    assert_eq!(addresses(&gate, "call.end"), expected);
    drop(gate);
    let gate = setup("forwarded", "").start();
    assert_eq!(
        call(&gate, &["Forwarded: for=\"[2001:db8::1]:4\""]).status,
        200
    );
    assert_eq!(addresses(&gate, "call.begin"), [json!("2001:db8::1")]);
}

#[test]
fn headers_of_anyone_else_are_ignored() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let gate = Setup::config(format!(
        "[proxy]\ntrusted = [\"192.0.2.0/24\"]\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
    .start();
    let origin = format!("Origin: https://127.0.0.1:{}", gate.port);
    let lines = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"];
    assert_eq!(call(&gate, &lines).status, 200);
    assert_eq!(addresses(&gate, "call.begin"), [Value::Null]);
    assert_eq!(call(&gate, &[lines[0], lines[1], &origin]).status, 403);
}

#[test]
fn rejected_credentials_are_counted_for_each_client_behind_a_proxy() {
    let gate = setup(
        "x-forwarded-for",
        "[auth]\nrequired = true\n[limits]\nauth_failures = 1\n",
    )
    .start();
    let wrong = |client: &str| {
        let from = format!("X-Forwarded-For: {client}");
        call(&gate, &[&from, "Authorization: Bearer tg_wrong"]).status
    };
    assert_eq!(wrong("192.0.2.1"), 401);
    assert_eq!(wrong("192.0.2.1"), 429, "one too many");
    assert_eq!(wrong("192.0.2.2"), 401, "another client is not affected");
    let expected = ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map(Value::from);
    assert_eq!(addresses(&gate, "deny"), expected);
}

#[test]
fn the_console_works_behind_a_proxy_with_tls() {
    let gate = setup("x-forwarded-for", "allowed_hosts = [\"tools.example.com\"]").start();
    let token = gate.cli(&["console"]);
    let token = token.trim().split_once("#token=").unwrap().1;
    let login = |scheme: &str, origin: &str| {
        let lines = [
            "Content-Type: application/json",
            "X-Toolgate-Console: 1",
            "X-Forwarded-For: 192.0.2.1",
            &format!("X-Forwarded-Proto: {scheme}"),
            &format!("Origin: {origin}"),
        ];
        let body = json!({"token": token}).to_string();
        let lines = lines.map(str::to_owned);
        let bytes = request(gate.port, "POST", "/console/login", &lines, body.as_bytes());
        let text = String::from_utf8(bytes).unwrap();
        let own = format!("Host: 127.0.0.1:{}", gate.port);
        raw(
            gate.port,
            text.replace(&own, "Host: tools.example.com").as_bytes(),
        )
    };
    assert_eq!(login("http", "https://tools.example.com").status, 403);
    assert_eq!(login("https", "https://evil.test").status, 403);
    let entered = login("https", "https://tools.example.com");
    assert_eq!(entered.status, 200, "{entered:?}");
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

/// Calls a tool on a connection that begins with these bytes.
fn call_after(gate: &Gate, header: &[u8]) -> Response {
    let call = Modern::request(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    raw(gate.port, &[header, &call].concat())
}

#[test]
fn the_proxy_protocol_names_the_client_of_a_connection() {
    let gate = setup("proxy-protocol", "[limits]\nheader_seconds = 1\n").start();
    let v1 = b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n";
    assert_eq!(call_after(&gate, v1).status, 200);
    let v2 = [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..],
        &[192, 0, 2, 2, 10, 0, 0, 1, 0, 80, 1, 187],
    ];
    assert_eq!(call_after(&gate, &v2.concat()).status, 200);
    assert_eq!(call_after(&gate, b"PROXY UNKNOWN\r\n").status, 200);
    let expected = [json!("192.0.2.1"), json!("192.0.2.2"), Value::Null];
    assert_eq!(addresses(&gate, "call.begin"), expected);
}

#[test]
fn a_trusted_proxy_without_a_proxy_header_is_closed_and_reported() {
    let gate = setup("proxy-protocol", "[limits]\nheader_seconds = 1\n").start();
    for first in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"PROXY TCP4 192",
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(first).unwrap();
        let mut answer = Vec::new();
        // The gateway closes it, at once or when its time is over. It may reset the connection.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"");
    }
    until("it is reported", SOON, || {
        let said = gate.said();
        let text = "a connection of the trusted proxy 127.0.0.1 was closed: it has no PROXY header";
        said.iter().any(|line| line.contains(text)).then_some(())
    });
}

#[test]
fn connections_are_counted_for_each_client_of_the_proxy_protocol() {
    let gate = setup("proxy-protocol", "[limits]\nconnections_per_address = 1\n").start();
    let open = |client: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let header = format!("PROXY TCP4 {client} 10.0.0.1 1 1\r\n");
        let request = format!(
            "GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n",
            gate.port
        );
        stream.write_all(header.as_bytes()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut first = [0; 8];
        let answered = stream.read(&mut first).is_ok_and(|read| read > 0);
        (stream, answered)
    };
    let (_one, answered) = open("192.0.2.1");
    assert!(answered);
    assert!(!open("192.0.2.1").1, "one too many of this client");
    assert!(open("192.0.2.2").1, "another client of the same proxy");
}

#[test]
fn a_reload_changes_the_trusted_proxies() {
    let gate = setup("x-forwarded-for", "").start();
    let text = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    let origin = format!("Origin: https://127.0.0.1:{}", gate.port);
    let line = "X-Forwarded-Proto: https";
    assert_eq!(call(&gate, &[line, &origin]).status, 200);
    gate.configure(&text.replace("trusted = [\"127.0.0.1\"]", "trusted = []"));
    gate.cli(&["reload"]);
    assert_eq!(call(&gate, &[line, &origin]).status, 403);
}
