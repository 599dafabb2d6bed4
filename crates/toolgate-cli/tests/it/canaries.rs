//! T61: no secret of the config, of a header, of arguments or of results stands in what the gateway says, shows, records
//! or keeps.

use crate::help::{Gate, Modern, Reply, SOON, Setup, raw, request, send, until, upstream};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use toolgate_testkit::canary::spellings;

/// One that no rule knows, for each place where a secret may come in.
const TOKEN: &str = "canary-token-7Hq2Vw9Zk4Xn8Lm3";
const WRONG: &str = "canary-wrong-5Tb6Rj1Yc8Pd2Fg7";
const HEADER: &str = "canary-header-3Ks9Mn4Bv7Qw1Ez6";
const QUERY: &str = "canary-query-8Jd5Ua2Xi7Oc4Ry9";
const ENV: &str = "canary-env-6Gh1Pl8Wm3Tk5Nb2";
const PASSED: &str = "canary-passed-2Zf7Cv4Sd9Hj6Qx1";
const COOKIE: &str = "canary-cookie-9Xe3Ib6Ol2Vn8Ga5";
const FIELD: &str = "canary-field-4Wy8Dk1Mu6Ts3Jc7";
const BODY: &str = "canary-body-1Ra5Fz9Ep4Kb7Ho2";
const ALL: [&str; 9] = [
    TOKEN, WRONG, HEADER, QUERY, ENV, PASSED, COOKIE, FIELD, BODY,
];

/// Returns a secret that the rules know. It is built at run time, so that secret scanners do not find it here.
fn known(letter: &str) -> String {
    format!("ghp_{}", letter.repeat(9))
}

/// A server that repeats what it was sent, in results, errors and refusals.
fn repeats() -> String {
    let calls = AtomicU32::new(0);
    upstream(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        let fails = |text: String| {
            let error = json!({"code": -32001, "message": text, "data": text});
            Reply::Events(vec![
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            ])
        };
        let said = format!(
            "{HEADER} {} {}",
            known("r3S7"),
            message["params"]["arguments"]
        );
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": known("n4Me"), "version": "1"}, "instructions": known("w0Rd"),
            })),
            "tools/list" => answer(json!({"tools": [{
                "name": "say", "description": known("d3Sc"), "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true},
            }]})),
            "tools/call" => match calls.fetch_add(1, Relaxed) % 3 {
                0 => answer(
                    json!({"content": [{"type": "text", "text": known("r3S7")}], "isError": true}),
                ),
                1 => Reply::Status(403, "text/plain", said),
                _ => Reply::Status(
                    500,
                    "application/json",
                    json!({"error": {"message": said}}).to_string(),
                ),
            },
            _ => fails(said),
        }
    })
}

fn start() -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let said = "printf '%s\\n' \"$SAID\" >&2; exec sleep 99";
    let config = format!(
        "token = {{ env = \"GATE_TOKEN\" }}\n[limits]\nrate = \"1000000/s\"\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\noutbound_secrets = \"warn\"\n\
         unknown_arguments = \"allow\"\nenv = {{ X_SECRET = {{ danger_clear = {ENV:?} }} }}\nenv_pass = [\"X_PASSED\"]\n\
         [server.far]\nurl = {{ danger_clear = \"{}?key={QUERY}\" }}\nheaders = {{ X-Key = {{ danger_clear = {HEADER:?} }}, Authorization = {{ env = \"FAR\" }} }}\n\
         outbound_secrets = \"warn\"\ntrust_annotations = true\n\
         [server.loud]\ncommand = [\"sh\", \"-c\", {said:?}, {{ danger_clear = {:?} }}]\nenv = {{ SAID = {{ danger_clear = {:?} }} }}\n\
         [[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n",
        repeats(),
        known("a4Gs"),
        known("s7De"),
    );
    Setup::config(config)
        .env("GATE_TOKEN", TOKEN)
        .env("X_PASSED", PASSED)
        .env("FAR", "Bearer canary-header-3Ks9Mn4Bv7Qw1Ez6")
        .start()
}

/// Every way in which a secret may come.
fn used(gate: &Gate) -> usize {
    let port = gate.port;
    let secret = known("c4Ll");
    let mut sent = 0;
    let mut post = |tool: &str, arguments: Value, token: &str, more: &str| {
        let body = Modern::body(
            &json!(sent),
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let mut lines = Modern::headers("tools/call", Some(tool));
        lines.push(format!("Authorization: Bearer {token}"));
        lines.push(format!("Cookie: session={COOKIE}"));
        lines.extend((!more.is_empty()).then(|| more.to_owned()));
        let path = format!("/mcp?token={QUERY}");
        let answer = raw(
            port,
            &request(port, "POST", &path, &lines, body.to_string().as_bytes()),
        );
        sent += 1;
        answer
    };
    for arguments in [
        json!({"name": "n", "text": "t", "password": FIELD}),
        json!({"name": "n", "text": secret}),
        json!({"name": "n", "text": {"api_key": FIELD, "deep": [secret]}}),
        json!({"name": 7, "client_secret": FIELD, "token": secret}),
        json!({"authorization": format!("Bearer {secret}")}),
    ] {
        for tool in [
            "demo_note",
            "demo_add",
            "far_say",
            "far_say",
            "far_say",
            "nobody_x",
        ] {
            post(tool, arguments.clone(), TOKEN, "");
        }
    }
    post(&known("t0Ol"), json!({}), TOKEN, "");
    let refused = post("demo_add", json!({"a": 1, "b": 2}), WRONG, "");
    assert_eq!(refused.status, 401);
    assert!(!refused.body.contains(WRONG));
    post(
        "demo_add",
        json!({"a": 1, "b": 2}),
        TOKEN,
        &format!("Origin: https://{WRONG}.test"),
    );
    let mut lines = Modern::headers("tools/call", Some("demo_add"));
    lines.push(format!("Authorization: Bearer {TOKEN}"));
    for body in [
        format!("{{\"{BODY}\":"),
        format!("\"{BODY}\""),
        format!("[{{\"jsonrpc\":\"{BODY}\"}}]"),
    ] {
        let answer = send(port, "POST", "/mcp", &lines, body.as_bytes());
        assert!(!answer.body.contains(BODY), "{answer:?}");
        sent += 1;
    }
    sent
}

fn files(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            all.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn t61_no_canary_stands_anywhere() {
    let gate = start();
    until("the far server and the loud one were heard", SOON, || {
        let servers = gate.state()["servers"].clone();
        let far = servers
            .as_array()?
            .iter()
            .find(|s| s["id"] == "far")?
            .clone();
        let loud = servers
            .as_array()?
            .iter()
            .find(|s| s["id"] == "loud")?
            .clone();
        (far["state"] == "running" && !loud["stderr"].as_array()?.is_empty()).then_some(())
    });
    let sent = used(&gate);
    let mut all = vec![(
        "the state of the console".to_owned(),
        gate.state().to_string(),
    )];
    for args in [
        &["tools"][..],
        &["calls"],
        &["inbox"],
        &["pins", "list"],
        &["pins", "diff", "far.say"],
        &["explain", "demo.add"],
        &["call", "far.say", "{}"],
        &["call", "far.say", "{}"],
        &["call", "far.say", "{}"],
        &["audit", "tail", "--json", "-n", "100000"],
        &["audit", "export", "--format", "otlp"],
        &["audit", "export", "--format", "cef"],
        &["reload"],
    ] {
        let out = gate.run(args);
        let text = [out.stdout, out.stderr].concat();
        all.push((args.join(" "), String::from_utf8_lossy(&text).into_owned()));
    }
    let said = gate.said().join("\n");
    all.push(("stderr".to_owned(), said));
    let data = gate.stop();
    // Pins keep definitions as they came, to compare them: a file of the operator's own.
    files(&data.path().join("state/audit"), &mut all);
    let mut canaries: Vec<String> = ALL.map(str::to_owned).into();
    canaries.extend(
        [
            "r3S7", "n4Me", "w0Rd", "d3Sc", "a4Gs", "s7De", "c4Ll", "t0Ol",
        ]
        .map(known),
    );
    let (mut looked, mut found) = (0, Vec::new());
    for canary in canaries.iter().flat_map(|canary| spellings(canary)) {
        for (place, text) in &all {
            looked += 1;
            if let Some(at) = text.find(&canary) {
                let before: String = text[..at].chars().rev().take(100).collect();
                let before: String = before.chars().rev().collect();
                found.push(format!("{place}: {canary} after {before:?}"));
            }
        }
    }
    assert!(found.is_empty(), "{} found: {found:#?}", found.len());
    println!(
        "T61: {} canaries in {sent} requests, a config and a server: {looked} looks in {} outputs and files, 0 found",
        canaries.len(),
        all.len(),
    );
}
