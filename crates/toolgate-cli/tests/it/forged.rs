//! T45: whatever callers put into names, arguments and reasons, no event forges a line of the record, of an export, or of
//! what a person reads on a terminal.

use crate::help::{Gate, SOON, Session, Setup, send, until};
use serde_json::{Value, json};
use std::thread;

/// Line ends, terminal sequences, signs of direction, and pieces of the forms that a line may have.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "a\nb",
        "a\r\nb",
        "a\u{85}b",
        "a\u{2028}b\u{2029}c",
        "\u{1b}[2J\u{1b}[1;1Hcleared",
        "\u{1b}]0;title\u{7}x",
        "\u{1b}]8;;https://evil.test\u{7}link\u{1b}]8;;\u{7}",
        "\u{1b}P1$r\u{1b}\\x",
        "\u{9b}31mred",
        "\u{9d}0;t\u{9c}",
        "\u{202e}txt.exe\u{202c}",
        "\u{2066}x\u{2069}",
        "\u{200e}\u{200f}\u{61c}x",
        "a\u{200b}b\u{feff}c\u{ad}",
        "x\u{e0041}\u{e0042}",
        "\u{8}\u{8}\u{8}gone",
        "\u{0}nul",
        "x\"}\n{\"ev\":\"approval\",\"dec\":\"allow\"}",
        "\",\"dec\":\"allow",
        "x\nCEF:0|Toolgate|toolgate|1|call.end|x|1|",
        "a|b\\|c=d",
        "x\na-forged demo.note for you (9 s left) {}",
        "x\nc-forged ok demo.note for you",
        "x\ntoolgate: all is well",
        "%s%n${jndi:ldap://x}`id`$(id)",
        "' OR 1=1 --",
        "<script>alert(1)</script>",
        "../../../../etc/passwd\u{0}.png",
    ]
    .map(str::to_owned)
    .into();
    let controls = (0..0x20).chain(0x7F..0xA0).filter_map(char::from_u32);
    all.extend(controls.map(|c| format!("x{c}y")));
    all
}

/// Returns whether a character must not appear in line-based output.
fn steers(c: char) -> bool {
    matches!(u32::from(c), 0..=0x1F | 0x7F..=0x9F | 0xAD | 0x61C | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E
        | 0x2060..=0x206F | 0xFEFF | 0xE0000..=0xE007F)
}

fn assert_lines(what: &str, text: &str, begins: impl Fn(&str) -> bool) -> usize {
    for line in text.lines() {
        let bad = line.chars().find(|c| steers(*c));
        assert_eq!(bad, None, "{what}: {line:?}");
        assert!(begins(line), "{what}: {line:?}");
    }
    text.lines().count()
}

fn is_record(line: &str) -> bool {
    serde_json::from_str::<Value>(line)
        .is_ok_and(|record| record["ev"].is_string() && record["h"].is_string())
}

/// A line for a person: the time, what happened, and what stands in columns.
fn is_told(line: &str) -> bool {
    let (time, rest) = line.split_once(' ').unwrap_or_default();
    let is_time = time.len() == 24 && time.starts_with("20") && time.ends_with("Z");
    is_time
        && rest
            .trim_start()
            .starts_with(|c: char| c.is_ascii_lowercase())
}

/// Names of things and of clients that are recorded.
fn named(gate: &Gate, text: &str) {
    let session = Session::open(gate.port);
    for (method, params) in [
        (
            "tools/call",
            json!({"name": text, "arguments": {text: text}}),
        ),
        (
            "tools/call",
            json!({"name": "demo_add", "arguments": {"a": 1, "b": text}}),
        ),
        ("resources/read", json!({"uri": format!("x:{text}")})),
        ("prompts/get", json!({"name": text})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": text}, "argument": {"name": "a", "value": text}}),
        ),
    ] {
        session.post(&json!({"jsonrpc": "2.0", "id": text, "method": method, "params": params}));
    }
    let lines = [
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
    ]
    .map(str::to_owned);
    let client = json!({"name": text, "version": text, "title": text});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = send(
        gate.port,
        "POST",
        "/mcp",
        &lines,
        body.to_string().as_bytes(),
    );
    let Some(id) = opened.header("mcp-session-id") else {
        return;
    };
    let mut lines = lines.to_vec();
    lines.push(format!("Mcp-Session-Id: {id}"));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "demo_add", "arguments": {"a": 1, "b": 2}}});
    send(
        gate.port,
        "POST",
        "/mcp",
        &lines,
        body.to_string().as_bytes(),
    );
}

/// Calls that wait for a person, who reads them on a terminal and denies them for a reason.
fn asked(gate: &Gate, texts: &[String]) -> usize {
    let port = gate.port;
    let calls: Vec<_> = texts
        .iter()
        .map(|text| {
            let arguments = json!({"name": text, "text": text});
            thread::spawn(move || Session::open(port).call(&json!(1), "demo_note", arguments))
        })
        .collect();
    let ids = until("all wait", SOON, || {
        let ids = gate.inbox();
        (ids.len() == texts.len()).then_some(ids)
    });
    let shown = gate.cli(&["inbox"]);
    let lines = assert_lines("the inbox", &shown, |line| {
        ids.iter().any(|id| line.starts_with(id))
    });
    for (id, text) in ids.iter().zip(texts) {
        // No program is given a NUL by its command line.
        gate.cli(&["deny", id, "-m", &text.replace('\0', "")]);
    }
    for call in calls {
        call.join().unwrap();
    }
    lines
}

#[test]
fn t45_no_event_forges_a_line() {
    let rule = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\n";
    let gate = Setup::fast_demo(rule).start();
    let texts = hostile();
    texts.iter().for_each(|text| named(&gate, text));
    let mut lines = 0;
    for some in texts.chunks(10) {
        lines += asked(&gate, some);
    }
    let records = gate.audit_files().len();
    assert!(records > 6 * texts.len(), "{records}");
    for (args, begins) in [
        (
            &["audit", "tail", "--json", "-n", "100000"][..],
            is_record as fn(&str) -> bool,
        ),
        (&["audit", "tail", "-n", "100000"], is_told),
        (&["audit", "search", "--decision", "deny"], is_told),
        (
            &["audit", "search", "--json", "--decision", "deny"],
            is_record,
        ),
        (&["audit", "export", "--format", "jsonl"], is_record),
        (&["audit", "export", "--format", "otlp"], |line| {
            line.starts_with("{\"resourceLogs\":[")
        }),
        (&["audit", "export", "--format", "ocsf"], |line| {
            line.starts_with('{')
        }),
        (&["audit", "export", "--format", "cef"], |line| {
            line.starts_with("CEF:0|Toolgate|toolgate|")
        }),
        (&["calls"], |line| {
            line.starts_with("c-") && !line.starts_with("c-forged")
        }),
        (&["tools"], |line| line.starts_with("demo.")),
    ] {
        let out = gate.cli(args);
        let count = assert_lines(&args.join(" "), &out, begins);
        assert!(count > 1, "{args:?}");
        if args.contains(&"tail") || args.contains(&"otlp") || args.contains(&"jsonl") {
            assert!(
                count >= records,
                "{args:?}: {count} lines of {records} records"
            );
        }
        lines += count;
    }
    let said = gate.said().join("\n");
    assert!(!said.chars().any(|c| c != '\n' && steers(c)), "{said:?}");
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
    let data = gate.stop();
    let mut files = 0;
    for chain in std::fs::read_dir(data.path().join("state/audit")).unwrap() {
        for file in std::fs::read_dir(chain.unwrap().path())
            .into_iter()
            .flatten()
        {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|e| e == "jsonl") {
                let text = std::fs::read_to_string(&file).unwrap();
                files += assert_lines(&file.display().to_string(), &text, is_record);
            }
        }
    }
    println!(
        "T45: {} texts in names, clients, arguments and reasons: {files} records, {lines} lines shown, 0 forged",
        texts.len()
    );
}
