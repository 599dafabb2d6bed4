//! Listener addresses, and the message for one that cannot be used.

use crate::help::{
    Modern, SOON, Setup, TempDir, all_of, kill_hard, output, request, send, toolgate, until,
};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

/// Holds: HTTPM-03, HTTPL-03
#[test]
fn t03_no_listener_beyond_loopback_without_a_token() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let data = TempDir::new("open");
        let out = output(
            toolgate()
                .args(["serve", "--listen", address, "--data"])
                .arg(data.file("state")),
        );
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{address}: {said}");
        assert_eq!(said.lines().count(), 1, "one clear line: {said}");
        assert!(said.contains("token"), "it says the way out: {said}");
        assert!(out.stdout.is_empty());
    }
}

/// Also of a handshake, and of each request on a connection on which another one had it.
///
/// Holds: HTTPM-04, HTTPL-03, BASE-23
#[test]
fn a_token_where_one_is_set_is_asked_of_every_request() {
    let token = "correct-horse-battery-staple";
    let gate = Setup::fast_demo("")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
        .env("TOOLGATE_TEST_TOKEN", token)
        .start();
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let with = |line: Option<String>| {
        let mut headers = Modern::headers("tools/list", None);
        headers.extend(line);
        send(gate.port, "POST", "/mcp", &headers, list.as_bytes()).status
    };
    assert_eq!(with(None), 401);
    assert_eq!(with(Some("Authorization: Bearer wrong".into())), 401);
    assert_eq!(with(Some(format!("Authorization: Basic {token}"))), 401);
    assert_eq!(with(Some(format!("Authorization: Bearer {token}"))), 200);
    let good = format!("Authorization: Bearer {token}");
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = json!({"name": "t", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let hello = hello.to_string();
        let mut headers = Modern::headers("initialize", None)[..2].to_vec();
        let open = |headers: &[String]| send(gate.port, "POST", "/mcp", headers, hello.as_bytes());
        let refused = open(&headers);
        assert_eq!(refused.status, 401, "{revision}");
        assert_eq!(refused.header("mcp-session-id"), None, "{revision}");
        headers.push(good.clone());
        let opened = open(&headers);
        assert_eq!(opened.status, 200, "{revision}");
        // The id of a session is no token.
        let session = opened.header("mcp-session-id").unwrap();
        headers.pop();
        headers.push(format!("Mcp-Session-Id: {session}"));
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let ping = |headers: &[String]| send(gate.port, "POST", "/mcp", headers, ping.as_bytes());
        assert_eq!(ping(&headers).status, 401, "{revision}");
        headers.push(good.clone());
        assert_eq!(ping(&headers).status, 200, "{revision}");
    }
    let tokens = [
        Some(&*good),
        None,
        Some("Authorization: Bearer wrong"),
        Some(&good),
    ];
    let mut all = Vec::new();
    for (at, line) in tokens.iter().enumerate() {
        let mut headers = Modern::headers("tools/list", None);
        headers.extend(line.map(str::to_owned));
        let one = request(gate.port, "POST", "/mcp", &headers, list.as_bytes());
        let one = String::from_utf8(one).unwrap();
        let last = at + 1 == tokens.len();
        let stays = if last {
            one
        } else {
            one.replace("Connection: close\r\n", "")
        };
        all.extend(stays.into_bytes());
    }
    let answers = all_of(gate.port, &all);
    let mut statuses = answers.split("HTTP/1.1 ").skip(1);
    let statuses: Vec<&str> = statuses.by_ref().map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "401", "401", "200"], "{answers}");
    assert!(
        !gate.said().join("\n").contains(token),
        "it is told to nobody"
    );
}

#[test]
fn a_busy_port_is_a_clear_message_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = TempDir::new("busy");
    let out = output(
        toolgate()
            .args(["serve", "--listen", &address, "--data"])
            .arg(data.file("state")),
    );
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&address) && said.contains("--listen"),
        "{said}"
    );
    assert!(
        !said.contains("panicked") && !said.contains("Os {"),
        "{said}"
    );
}

#[test]
fn the_demo_starts_in_an_empty_home_with_nothing_else() {
    let home = TempDir::new("home");
    let mut start = toolgate();
    start
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = start
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    for line in lines.by_ref().map_while(Result::ok).take(200) {
        said.push(line);
        if said.last().unwrap().starts_with("MCP endpoint") {
            break;
        }
    }
    let found = said
        .last()
        .is_some_and(|line| line.starts_with("MCP endpoint"));
    kill_hard(&mut child);
    assert!(found, "{said:#?}");
    assert!(
        home.path().read_dir().unwrap().next().is_some(),
        "the data is in the home folder"
    );
}

#[test]
fn the_announcement_has_all_that_a_newcomer_needs() {
    let mut gate = Setup::demo().start();
    let console = gate.announced("console");
    assert!(
        console.starts_with(&format!("http://127.0.0.1:{}/#token=", gate.port)),
        "{console}"
    );
    assert!(gate.announced("data").contains("state"));
    let said = until("the call line is printed", SOON, || {
        let said = gate.said().join("\n");
        said.contains("toolgate call").then_some(said)
    });
    assert!(
        said.contains(env!("CARGO_BIN_EXE_toolgate")),
        "the absolute path of the program: {said}"
    );
    assert!(
        said.contains("--stdio"),
        "the snippet for a host that starts programs: {said}"
    );
    let out = gate.cli(&["call", "demo.add", r#"{"a": 20, "b": 22}"#]);
    assert!(out.contains("42"), "{out}");
    assert!(gate.cli(&["tools"]).contains("demo.delete_note"));
}
