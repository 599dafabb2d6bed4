//! T01: twelve forms of Host times fourteen of Origin on every route.

use crate::help::{Modern, Setup, raw};
use serde_json::json;

/// Every route, and one that is none.
const ROUTES: [(&str, &str); 17] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/sse"),
    ("GET", "/messages"),
    ("POST", "/messages?sessionId=none"),
    ("GET", "/"),
    ("GET", "/console/app.js"),
    ("GET", "/console/api/state"),
    ("GET", "/console/api/events"),
    ("POST", "/console/login"),
    ("POST", "/console/api/approve"),
    ("POST", "/console/api/deny"),
    ("POST", "/console/api/stop"),
    ("POST", "/console/api/try"),
    ("GET", "/nowhere"),
    ("OPTIONS", "/mcp"),
];

/// The header lines of a form, with `PORT` for the listener's own, and whether it may pass.
const HOSTS: [(&[&str], bool); 12] = [
    (&["127.0.0.1:PORT"], true),
    (&["localhost:PORT"], true),
    (&["LocalHost:PORT"], true),
    (&["[::1]:PORT"], true),
    (&["localhost:1"], false),
    (&["localhost.:PORT"], false),
    (&["evil.example:PORT"], false),
    (&["user@localhost:PORT"], false),
    (&["xn--lcalhost-9za:PORT"], false),
    (&["127.0.0.1.evil.example:PORT"], false),
    (&["127.0.0.1:PORT", "127.0.0.1:PORT"], false),
    (&[], false),
];

const ORIGINS: [(&[&str], bool); 14] = [
    (&[], true),
    (&["http://127.0.0.1:PORT"], true),
    (&["http://localhost:PORT"], true),
    (&["http://LOCALHOST:PORT"], true),
    (&["http://[::1]:PORT"], true),
    (&["null"], false),
    (&["http://evil.example"], false),
    (&["http://localhost:1"], false),
    (&["https://localhost:PORT"], false),
    (&["http://localhost.:PORT"], false),
    (&["http://user@localhost:PORT"], false),
    (&["http://localhost:PORT.evil.example"], false),
    (&["http://xn--lcalhost-9za:PORT"], false),
    (&["http://localhost:PORT", "http://localhost:PORT"], false),
];

/// A request that would do its work if nothing but Host and Origin were looked at.
fn request(port: u16, route: (&str, &str), hosts: &[&str], origins: &[&str]) -> Vec<u8> {
    let own = |form: &&str| form.replace("PORT", &port.to_string());
    let call = Modern::body(
        &json!(1),
        "tools/call",
        json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}}),
    )
    .to_string();
    let body = if route.0 == "POST" {
        call
    } else {
        String::new()
    };
    let mut head = format!(
        "{} {} HTTP/1.1\r\nConnection: close\r\nX-Toolgate-Console: 1\r\n",
        route.0, route.1
    );
    for line in Modern::headers("tools/call", Some("demo_add")) {
        head.push_str(&format!("{line}\r\n"));
    }
    hosts
        .iter()
        .map(own)
        .for_each(|host| head.push_str(&format!("Host: {host}\r\n")));
    origins
        .iter()
        .map(own)
        .for_each(|origin| head.push_str(&format!("Origin: {origin}\r\n")));
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Holds: SSE1-01.
#[test]
fn t01_host_and_origin_are_checked_on_every_route() {
    let gate = Setup::demo().start();
    let (mut wrong, mut cells, mut calls) = (Vec::new(), 0, 0);
    for route in ROUTES {
        for (hosts, host_fits) in HOSTS {
            for (origins, origin_fits) in ORIGINS {
                let response = raw(gate.port, &request(gate.port, route, hosts, origins));
                // Two Hosts may be refused by the HTTP reader itself.
                let refused = response.status == 400 && response.body.is_empty()
                    || response.status == 403
                        && ["Host", "Origin"]
                            .iter()
                            .any(|what| response.body.contains(&format!("this {what}")));
                let fits = host_fits && origin_fits;
                if refused == fits {
                    wrong.push(format!(
                        "{route:?} {hosts:?} {origins:?}: {} {}",
                        response.status, response.body
                    ));
                }
                cells += 1;
                calls += usize::from(fits && route == ("POST", "/mcp"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {cells} cells: {wrong:#?}",
        wrong.len()
    );
    let begun = gate
        .audit()
        .iter()
        .filter(|r| r["ev"] == "call.begin")
        .count();
    assert!(
        begun <= calls && begun > 0,
        "{begun} calls went through, {calls} cells may"
    );
}
