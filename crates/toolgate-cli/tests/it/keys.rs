//! Keys of callers, through the real program: whom they name, what they open, and how they end.

use crate::help::{
    Gate, Modern, Response, SOON, Setup, TempDir, answer_of, output, raw, request, toolgate,
    traced_config, until,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Of what cannot be read, where another key would not help either.
const MALFORMED: &str = "Bearer error=\"invalid_request\"";
const CLOSED: &str = "[auth]\nrequired = true\n";

fn demo(more: &str) -> Setup {
    Setup::fast_demo(&format!("{CLOSED}{more}"))
}

pub(crate) fn created(gate: &Gate, name: &str) -> String {
    key_of(&gate.cli(&["keys", "create", name]))
}

/// Returns the printed key, and checks that nothing else was printed.
#[track_caller]
fn key_of(stdout: &str) -> String {
    let key = stdout.strip_suffix('\n').unwrap();
    assert!(key.starts_with("tg_") && key.len() == 67, "{stdout:?}");
    key.to_owned()
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}")
}

/// A call of 2026-07-28 with these header lines.
fn call_with(port: u16, more: &[String], tool: &str, arguments: Value) -> Response {
    raw(port, &call_bytes(port, more, tool, arguments))
}

fn call_bytes(port: u16, more: &[String], tool: &str, arguments: Value) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = Modern::body(&json!(1), "tools/call", params).to_string();
    let mut lines = Modern::headers("tools/call", Some(tool));
    lines.extend_from_slice(more);
    request(port, "POST", "/mcp", &lines, body.as_bytes())
}

pub(crate) fn add(port: u16, key: &str) -> Response {
    call_with(port, &[bearer(key)], "demo_add", json!({"a": 1, "b": 2}))
}

#[track_caller]
fn refused(response: &Response, challenge: &str) {
    let malformed = challenge == MALFORMED;
    assert_eq!(
        response.status,
        if malformed { 400 } else { 401 },
        "{response:?}"
    );
    assert_eq!(response.header("www-authenticate"), Some(challenge));
    assert!(!response.body.contains("jsonrpc") && response.body.len() > 30);
}

#[test]
fn a_key_names_its_caller_in_rules_and_in_the_record() {
    let gate = demo(
        "[[rule]]\ntools = [\"demo.add\"]\ncallers = [\"key:ci\"]\naction = \"deny\"\n\
         [[rule]]\ntools = [\"demo.add\"]\ncallers = [\"key:ann\"]\naction = \"allow\"\n",
    )
    .start();
    let (ann, ci) = (created(&gate, "ann"), created(&gate, "ci"));
    let sum = answer_of(&add(gate.port, &ann), &json!(1));
    assert_eq!(sum["result"]["isError"], Value::Null, "{sum}");
    assert!(sum["result"]["content"].to_string().contains('3'), "{sum}");
    let hidden = answer_of(&add(gate.port, &ci), &json!(1));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let records = gate.audit();
    let made = |name: &str| {
        let caller = format!("key:{name}");
        records
            .iter()
            .any(|r| r["ev"] == "key" && r["state"] == "created" && r["caller"] == *caller)
    };
    assert!(made("ann") && made("ci"), "{records:#?}");
    let begin = records.iter().find(|r| r["ev"] == "call.begin").unwrap();
    assert_eq!(begin["caller"], "key:ann");
    assert!(gate.state()["calls"].to_string().contains("key:ci"));
    let list = gate.cli(&["keys", "list"]);
    assert!(list.contains("key:ann") && list.contains("key:ci") && !list.contains("tg_"));
}

/// Holds: SEC-01, SEC-07, AUTH-01, AUTH-34
#[test]
fn t30_what_is_no_key_is_refused_and_told_what_is_needed() {
    let gate = demo("").start();
    let key = created(&gate, "ci");
    let port = gate.port;
    let with = |lines: &[String]| call_with(port, lines, "demo_add", json!({"a": 1, "b": 2}));
    refused(&with(&[]), "Bearer");
    for other in [
        "Authorization: Basic dTpw".to_owned(),
        format!("Authorization: {key}"),
        format!("Authorization: Bearer{key}"),
        format!("X-Authorization: Bearer {key}"),
        format!("Cookie: Authorization=Bearer {key}"),
    ] {
        refused(&with(&[other]), "Bearer");
    }
    for other in [
        "Authorization:".to_owned(),
        "Authorization: Bearer".to_owned(),
        format!("Authorization: Bearer {key} {key}"),
        format!("{}\u{e9}", bearer(&key)),
    ] {
        refused(&with(&[other]), MALFORMED);
    }
    // Two of them are none, even the same ones.
    refused(&with(&[bearer(&key), bearer(&key)]), MALFORMED);
    let (mut wrong, tail) = (Vec::new(), &key[3..]);
    wrong.extend(["tg_", "tg_0", "x", "null"].map(str::to_owned));
    wrong.extend([
        format!("TG_{tail}"),
        format!("tg_{}", tail.to_uppercase()),
        format!("{key}0"),
        format!("{key},{key}"),
        key[..66].to_owned(),
        tail.to_owned(),
        format!("tg_{}", "0".repeat(64)),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJrZXk6Y2kifQ.".to_owned(),
    ]);
    for text in &wrong {
        let response = with(&[bearer(text)]);
        assert_eq!(response.status, 401, "{text:?}");
        assert!(text.len() < 7 || !response.body.contains(text.trim()));
    }
    // In the address a key is no key.
    let target = format!("/mcp?access_token={key}");
    let lines = Modern::headers("tools/list", None);
    refused(
        &raw(port, &request(port, "POST", &target, &lines, b"{}")),
        "Bearer",
    );
    for path in ["/sse", "/messages?sessionId=x"] {
        let method = if path == "/sse" { "GET" } else { "POST" };
        refused(&raw(port, &request(port, method, path, &[], b"")), "Bearer");
    }
    // Blanks around a key are not a part of it: between it and its scheme there may be many.
    for good in [
        format!("aUTHORIZATION: bEARER {key}"),
        format!("{} ", bearer(&key)),
        bearer(&format!("  {key}")),
    ] {
        assert_eq!(with(&[good]).status, 200);
    }
    let begun = gate
        .audit()
        .iter()
        .filter(|r| r["ev"] == "call.begin")
        .count();
    assert_eq!(begun, 3, "the calls with the key");
}

#[test]
fn without_auth_a_key_names_its_caller_and_a_wrong_one_is_refused() {
    let gate = Setup::fast_demo("").start();
    let key = created(&gate, "ci");
    let with = |lines: &[String]| call_with(gate.port, lines, "demo_add", json!({"a": 1, "b": 2}));
    assert_eq!(with(&[]).status, 200);
    assert_eq!(add(gate.port, &key).status, 200);
    // Whoever shows something means somebody: what is none does not make him nobody.
    for (other, challenge) in [
        ("Bearer wrong".to_owned(), "Bearer error=\"invalid_token\""),
        (format!("DPoP {key}"), "Bearer error=\"invalid_token\""),
        ("Basic dTpw".to_owned(), "Bearer"),
        (key.clone(), "Bearer"),
        (format!("Token {key}"), "Bearer"),
        ("Bearer".to_owned(), MALFORMED),
    ] {
        let out = with(&[format!("Authorization: {other}")]);
        refused(&out, challenge);
        let told = match challenge {
            "Bearer" => {
                "unsupported scheme in the Authorization header; send Authorization: Bearer KEY, or no Authorization"
            }
            _ => "",
        };
        assert!(out.body.contains(told), "{}", out.body);
        assert!(!out.body.contains("token from the config"), "{}", out.body);
    }
    refused(&with(&[bearer(&key), bearer(&key)]), MALFORMED);
    refused(
        &add(gate.port, &format!("tg_{}", "1".repeat(64))),
        "Bearer error=\"invalid_token\"",
    );
    gate.cli(&["keys", "revoke", "ci"]);
    refused(&add(gate.port, &key), "Bearer error=\"invalid_token\"");
    let callers: Vec<String> = gate
        .audit()
        .iter()
        .filter(|r| r["ev"] == "call.begin")
        .map(|r| r["caller"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(callers, ["anonymous@http", "key:ci"]);
}

/// Sends bytes and gives the connection, once something has come back.
fn opened(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// Comments that keep a stream alive do not keep the test alive.
#[track_caller]
fn ends(what: &str, mut stream: TcpStream) {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let (start, mut buffer) = (Instant::now(), [0; 4096]);
    while start.elapsed() < SOON {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("{what} goes on");
}

fn listen(port: u16, key: &str) -> Vec<u8> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let body = Modern::body(&json!(1), "subscriptions/listen", params).to_string();
    let mut lines = Modern::headers("subscriptions/listen", None);
    lines.push(bearer(key));
    request(port, "POST", "/mcp", &lines, body.as_bytes())
}

#[test]
fn t26_a_revoked_key_ends_what_it_opened_at_once() {
    let folder = TempDir::new("trace");
    let trace = folder.file("trace");
    let rule = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\n";
    let gate = Setup::config(traced_config(&trace) + rule + CLOSED).start();
    let (ci, ann) = (created(&gate, "ci"), created(&gate, "ann"));
    let port = gate.port;

    let heard = opened(port, &listen(port, &ci));
    let others = opened(port, &listen(port, &ann));
    let old = request(
        port,
        "GET",
        "/sse",
        &[bearer(&ci), "Accept: text/event-stream".to_owned()],
        b"",
    );
    let old = opened(port, &old);
    let slow = json!({"to": 5000, "delay_ms": 20});
    let running = opened(
        port,
        &call_bytes(port, &[bearer(&ci)], "demo_slow_count", slow),
    );
    let ticks = || std::fs::read_to_string(&trace).map_or(0, |text| text.lines().count());
    until("it counts", SOON, || (ticks() > 0).then_some(()));
    let held = json!({"name": "n", "text": "t"});
    let waiting = opened(port, &call_bytes(port, &[bearer(&ci)], "demo_note", held));
    let approval = gate.pending();
    let session = session(port, &ci);
    assert_eq!(in_session(port, &ci, &session).status, 200);
    // A session is its caller's alone.
    assert_eq!(in_session(port, &ann, &session).status, 404);

    let said = gate.cli(&["keys", "revoke", "ci"]);
    assert!(said.contains("cancelled: 1 call\n"), "{said}");
    assert!(
        said.contains("denied: 1 call that needed an approval"),
        "{said}"
    );
    ends("the stream of changes", heard);
    ends("the stream of 2024-11-05", old);
    ends("the call that runs", running);
    ends("the call that waits", waiting);
    refused(
        &in_session(port, &ci, &session),
        "Bearer error=\"invalid_token\"",
    );
    assert_eq!(in_session(port, &ann, &session).status, 404);
    // It waits for nobody any more, and whoever approves it now is told so.
    assert!(gate.inbox().is_empty());
    let out = gate.run(&["approve", &approval]);
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{words}");
    assert!(
        words.contains("the API key of the caller was revoked"),
        "{words}"
    );
    until("its end is in the record", SOON, || {
        let ended = |r: &Value| r["approval"] == *approval && r["state"] == "revoked";
        gate.audit().iter().any(ended).then_some(())
    });
    let approved = |r: &Value| r["approval"] == *approval && r["state"] == "approved";
    assert!(!gate.audit().iter().any(approved));
    let out = until("the call that ran is closed in the record", SOON, || {
        let records = gate.audit();
        let begun = records.iter().filter(|r| r["ev"] == "call.begin");
        let begun: Vec<_> = begun.filter(|r| r["caller"] == "key:ci").collect();
        // The one that waited never left.
        assert_eq!(begun.len(), 1, "{begun:#?}");
        let begin = begun.first()?;
        let end = |r: &&Value| r["ev"] == "call.end" && r["call"] == begin["call"];
        Some(records.iter().find(end)?["out"].clone())
    });
    assert_ne!(out, "ok");
    // The other caller hears on.
    assert_eq!(add(port, &ann).status, 200);
    others.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    let mut others = &others;
    let over = std::iter::from_fn(|| Some(others.read(&mut buffer)))
        .find(|read| !matches!(read, Ok(1..)))
        .unwrap();
    assert!(over.is_err(), "the other stream is open");
}

#[test]
fn what_a_key_that_was_rotated_began_waits_for_its_answer_until_it_is_revoked() {
    let rule = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\n";
    let gate = demo(rule).start();
    let (port, first) = (gate.port, created(&gate, "ci"));
    let note = |name: &str| json!({"name": name, "text": "t"});
    let bytes = call_bytes(port, &[bearer(&first)], "demo_note", note("a"));
    let call = std::thread::spawn(move || raw(port, &bytes));
    let approval = gate.pending();
    let second = key_of(&gate.cli(&["keys", "rotate", "ci"]));
    refused(&add(port, &first), "Bearer error=\"invalid_token\"");
    gate.cli(&["approve", &approval]);
    let answer = answer_of(&call.join().unwrap(), &json!(1));
    assert!(answer["result"]["isError"].is_null(), "{answer}");
    assert!(answer["error"].is_null(), "{answer}");

    let waits = call_bytes(port, &[bearer(&second)], "demo_note", note("b"));
    let waits = opened(port, &waits);
    gate.pending();
    gate.cli(&["keys", "rotate", "ci"]);
    let said = gate.cli(&["keys", "revoke", "ci"]);
    assert!(
        said.contains("denied: 1 call that needed an approval"),
        "{said}"
    );
    ends("the call that waits", waits);
}

fn session(port: u16, key: &str) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let lines = session_lines(key, &[]);
    let bytes = request(port, "POST", "/mcp", &lines, body.to_string().as_bytes());
    let response = raw(port, &bytes);
    response.header("mcp-session-id").unwrap().to_owned()
}

fn in_session(port: u16, key: &str, id: &str) -> Response {
    let more = [
        format!("Mcp-Session-Id: {id}"),
        "MCP-Protocol-Version: 2025-11-25".to_owned(),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let lines = session_lines(key, &more);
    raw(
        port,
        &request(port, "POST", "/mcp", &lines, body.to_string().as_bytes()),
    )
}

fn session_lines(key: &str, more: &[String]) -> Vec<String> {
    let usual = [
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
        bearer(key),
    ];
    [&usual[..], more].concat()
}

#[test]
fn keys_outlive_a_kill_and_all_gateways_of_a_data_directory_know_them() {
    let data = Arc::new(TempDir::new("keys"));
    let gate = demo("").start_in(data.clone());
    let (ci, ann) = (created(&gate, "ci"), created(&gate, "ann"));
    gate.cli(&["keys", "revoke", "ann"]);
    drop(gate.kill());
    let one = demo("").start_in(data.clone());
    let two = demo("").start_in(data.clone());
    for gate in [&one, &two] {
        assert_eq!(add(gate.port, &ci).status, 200);
        assert_eq!(add(gate.port, &ann).status, 401);
    }
    let heard = [&one, &two].map(|gate| opened(gate.port, &listen(gate.port, &ci)));
    one.cli(&["keys", "revoke", "ci"]);
    // The other process reads it from the disk a moment later.
    heard
        .into_iter()
        .for_each(|stream| ends("a stream", stream));
    until("both gateways refuse it", SOON, || {
        let refuse = [&one, &two].map(|gate| add(gate.port, &ci).status == 401);
        (refuse == [true, true]).then_some(())
    });
    // A new key of that name is another one.
    let new = created(&one, "ci");
    assert_ne!(new, ci);
    assert_eq!(add(one.port, &new).status, 200);
    assert_eq!(add(one.port, &ci).status, 401);
}

#[test]
fn wrong_keys_are_counted_and_one_address_is_told_to_wait() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let gate = Setup::config(format!(
        "{CLOSED}[limits]\nauth_failures = 3\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
    .start();
    let key = created(&gate, "ci");
    let wrong = format!("tg_{}", "7".repeat(64));
    for _ in 0..3 {
        assert_eq!(add(gate.port, &wrong).status, 401);
    }
    for _ in 0..10 {
        let over = add(gate.port, &wrong);
        assert_eq!(over.status, 429);
        assert_eq!(over.header("retry-after"), Some("60"));
    }
    // Whoever has a key is not kept out by those who have none.
    assert_eq!(add(gate.port, &key).status, 200);
    let records = gate.audit();
    let refusals: Vec<&str> = records
        .iter()
        .filter(|r| r["ev"] == "deny")
        .filter_map(|r| r["why"].as_str())
        .collect();
    assert_eq!(refusals.len(), 4, "{refusals:?}");
    assert!(refusals[3].contains("too many"), "{refusals:?}");
}

fn all_files(folder: &Path, found: &mut Vec<(String, Vec<u8>, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
            all_files(&path, found);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path.display().to_string(), bytes, mode));
        }
    }
}

/// Without a gateway, and with one: the key stands in what `create` prints, and nowhere else.
#[test]
fn t31_a_key_is_shown_once_and_kept_nowhere() {
    let data = Arc::new(TempDir::new("keys"));
    let state = data.path().join("state");
    let run = |args: &[&str]| {
        let mut run = toolgate();
        output(run.args(args).arg("--data").arg(&state))
    };
    let out = run(&["keys", "create", "first", "--expires", "90d"]);
    assert!(out.status.success(), "{out:?}");
    let first = key_of(&String::from_utf8(out.stdout).unwrap());
    let mut said = vec![("create".to_owned(), out.stderr)];
    let taken = run(&["keys", "create", "first"]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("revoke it first"));
    for bad in ["a b", "", "a*b"] {
        assert_eq!(run(&["keys", "create", bad]).status.code(), Some(1));
    }
    let gate = demo("").start_in(data.clone());
    assert_eq!(add(gate.port, &first).status, 200);
    let second = created(&gate, "second");
    // As an argument, where the caller's own model put it.
    let note = json!({"name": "n", "text": format!("my key is {second}")});
    raw(
        gate.port,
        &call_bytes(gate.port, &[bearer(&second)], "demo_add", note),
    );
    add(gate.port, &format!("{second}0"));
    gate.cli(&["keys", "revoke", "first"]);
    add(gate.port, &first);
    for args in [
        &["keys", "list"][..],
        &["keys", "revoke", "first"],
        &["calls"],
        &["status"],
        &["audit", "tail", "--json", "-n", "100000"],
        &["audit", "export", "--format", "otlp"],
        &["audit", "export", "--format", "cef"],
        &["reload"],
    ] {
        let out = gate.run(args);
        said.push((args.join(" "), [out.stdout, out.stderr].concat()));
    }
    said.push(("console".to_owned(), gate.state().to_string().into_bytes()));
    said.push(("stderr".to_owned(), gate.said().join("\n").into_bytes()));
    let data = gate.stop();
    let revoked = run(&["keys", "revoke", "second"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let list = run(&["keys", "list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert_eq!(list.matches("revoked").count(), 2, "{list}");
    assert!(run(&["audit", "verify"]).status.success());

    let mut files = Vec::new();
    all_files(&data.path().join("state"), &mut files);
    let table = files
        .iter()
        .find(|(path, ..)| path.ends_with("state.sqlite"));
    assert_eq!(table.unwrap().2, 0o600);
    said.extend(files.into_iter().map(|(path, bytes, _)| (path, bytes)));
    let mut looks = 0;
    for (place, bytes) in &said {
        let text = String::from_utf8_lossy(bytes);
        for key in [&first, &second] {
            looks += 1;
            assert!(!text.contains(&key[3..]), "{place} has a key");
        }
    }
    println!(
        "T31, keys: {looks} looks in {} outputs and files, 0 found",
        said.len()
    );
}
