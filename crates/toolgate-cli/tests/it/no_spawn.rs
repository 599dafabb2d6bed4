//! T04: no HTTP route leads to the start of a process.

use crate::help::{Gate, Modern, Setup, TempDir, raw, tool};
use serde_json::json;
use std::path::Path;
use toolgate_testkit::SeededRng;

/// Requests to every route.
const BODIES: usize = 5000;
const ROUTES: [&str; 10] = [
    "/mcp",
    "/",
    "/console/login",
    "/console/api/approve",
    "/console/api/deny",
    "/console/api/stop",
    "/console/api/try",
    "/console/api/servers",
    "/console/api/anything",
    "/run",
];

/// Bodies that look like what an inspector would obey, broken in many ways.
fn body(dice: &mut SeededRng) -> Vec<u8> {
    let shapes = [
        json!({"command": "/bin/sh", "args": ["-c", "touch /tmp/owned"], "env": {"LD_PRELOAD": "/tmp/x.so"}}),
        json!({"transportType": "stdio", "command": ["sh", "-c", "id"]}),
        json!({"id": "a-1", "reason": "$(id)", "remember": true}),
        json!({"token": "../../../bin/sh"}),
        json!({"server": {"command": ["sh"]}, "name": "demo", "tool": "demo.add", "arguments": {"a": 1, "b": 2}}),
        json!({"mcpServers": {"x": {"command": "sh", "args": ["-c", "id"]}}}),
        Modern::body(
            &json!(1),
            "tools/call",
            json!({"name": "demo_add", "arguments": {"a": 1, "b": "`id`"}}),
        ),
        Modern::body(&json!(1), "servers/start", json!({"command": "sh"})),
        Modern::body(&json!(1), "tools/list", json!({})),
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"command": "sh", "capabilities": {}}}),
    ];
    let mut bytes = shapes[dice.below(shapes.len())].to_string().into_bytes();
    for _ in 0..dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(3) {
            0 => bytes[at] = dice.below(256) as u8,
            1 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, b"{}[]\",:\\"[dice.below(8)]),
        }
    }
    bytes
}

fn requests(gate: &Gate, route: &str, dice: &mut SeededRng) -> usize {
    let port = gate.port;
    let names = ["tools/call", "tools/list", "servers/start", "initialize"];
    let mut answered = 0;
    for _ in 0..BODIES / BATCH {
        let mut batch = Vec::new();
        for last in (0..BATCH).map(|number| number + 1 == BATCH) {
            let body = body(dice);
            let query = if dice.below(4) == 0 {
                "?command=sh&args=-c"
            } else {
                ""
            };
            let name = names[dice.below(names.len())];
            let close = if last { "Connection: close\r\n" } else { "" };
            batch.extend_from_slice(
                format!(
                    "POST {route}{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {name}\r\n\
                     Mcp-Name: demo_add\r\nX-Toolgate-Console: 1\r\n{close}Content-Length: {}\r\n\r\n",
                    body.len()
                )
                .as_bytes(),
            );
            batch.extend_from_slice(&body);
        }
        answered += crate::help::all_of(port, &batch)
            .matches("HTTP/1.1 ")
            .count();
    }
    answered
}

/// Requests on one connection.
const BATCH: usize = 50;

fn execs(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .filter(|line| line.contains("execve") && !line.contains("resumed"))
        .count()
}

#[test]
fn t04_no_request_starts_a_process() {
    let Some(strace) = tool("strace") else { return };
    let folder = TempDir::new("strace");
    let log = folder.file("execs");
    let strace = strace.to_string_lossy().into_owned();
    let to = log.to_string_lossy().into_owned();
    // -D: the tracer stands aside, so that the gateway stays our own child.
    let wrap = [
        &strace,
        "-D",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        "trace=execve,execveat",
        "-o",
        &to,
    ];
    let gate = Setup::demo().wrapped(&wrap).start();
    let first = Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    assert!(
        first.body.contains("structuredContent"),
        "the demo server runs: {first:?}"
    );
    let before = execs(&log);
    assert!(
        before >= 2,
        "strace sees the gateway and its children start: {before}"
    );
    let mut dice = SeededRng::new(8665);
    for route in ROUTES {
        let answered = requests(&gate, route, &mut dice);
        assert!(
            answered >= BODIES / 2,
            "{route}: {answered} of {BODIES} requests were answered"
        );
    }
    let last = raw(
        gate.port,
        format!(
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            gate.port
        )
        .as_bytes(),
    );
    assert_eq!(last.status, 200, "it still serves");
    assert_eq!(
        execs(&log),
        before,
        "a request started a process: {}",
        std::fs::read_to_string(&log).unwrap()
    );
}
