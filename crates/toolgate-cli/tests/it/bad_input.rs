//! Rejection of bad input: the right error, an audit record if it was a call, and no request upstream.

use crate::help::{
    Gate, Modern, Response, SOON, Session, Setup, answer_of, message_of, raw, send, until,
};
use serde_json::{Value, json};

/// A gateway with a tool that a rule hides from everyone.
fn gate() -> Gate {
    Setup::fast_demo("[[rule]]\ntools = [\"demo.fail\"]\naction = \"deny\"\n").start()
}

/// Expected rejection, and its number of audit records.
struct Expected {
    status: u16,
    code: Option<i64>,
    records: usize,
}

fn refused(status: u16, code: i64) -> Expected {
    Expected {
        status,
        code: Some(code),
        records: 0,
    }
}

/// The same, of something that was meant as a call.
fn recorded(status: u16, code: i64) -> Expected {
    Expected {
        records: 1,
        ..refused(status, code)
    }
}

#[track_caller]
fn check(gate: &Gate, name: &str, expected: Expected, ask: impl FnOnce() -> Response) {
    // The gateway may still be recording the start of its server and the pins of its tools.
    let records = || -> Vec<Value> {
        let all = gate.audit().into_iter();
        all.filter(|r| r["ev"] != "server.started" && r["ev"] != "tool.pinned")
            .collect()
    };
    let before = records().len();
    let response = ask();
    assert_eq!(response.status, expected.status, "{name}: {response:?}");
    if let Some(code) = expected.code {
        let body: Value =
            serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{name}: {response:?}"));
        assert_eq!(body["error"]["code"], code, "{name}: {body}");
        assert!(
            body["error"]["message"]
                .as_str()
                .is_some_and(|text| text.len() > 5),
            "{name}: {body}"
        );
    }
    let records = &records()[before..];
    assert_eq!(records.len(), expected.records, "{name}: {records:#?}");
    assert!(
        records.iter().all(|r| r["ev"] == "deny"),
        "{name}: {records:#?}"
    );
}

/// A call of `demo.add` as it should be, for `spoil` to change.
fn spoilt(gate: &Gate, spoil: impl FnOnce(&mut Vec<String>, &mut String)) -> Response {
    let arguments = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    let mut body = Modern::body(&json!(7), "tools/call", arguments).to_string();
    let mut headers = Modern::headers("tools/call", Some("demo_add"));
    spoil(&mut headers, &mut body);
    send(gate.port, "POST", "/mcp", &headers, body.as_bytes())
}

fn in_body(gate: &Gate, from: &str, to: &str) -> Response {
    spoilt(gate, |_, body| {
        assert!(body.contains(from), "{from} in {body}");
        *body = body.replacen(from, to, 1);
    })
}

fn in_headers(gate: &Gate, from: &str, to: &str) -> Response {
    spoilt(gate, |headers, _| {
        let line = headers
            .iter_mut()
            .find(|line| line.starts_with(from))
            .expect(from);
        *line = to.to_owned();
    })
}

#[test]
fn an_envelope_that_cannot_be_read_is_refused_before_any_server_hears_of_it() {
    let gate = gate();
    check(&gate, "broken JSON", refused(400, -32700), || {
        in_body(&gate, "}}", "}")
    });
    check(&gate, "no JSON at all", refused(400, -32700), || {
        spoilt(&gate, |_, body| *body = "hello".into())
    });
    check(&gate, "a lone number", refused(400, -32600), || {
        spoilt(&gate, |_, body| *body = "1".into())
    });
    for id in ["null", "true", "1.5", "[]", "{}"] {
        check(&gate, &format!("the id {id}"), refused(400, -32600), || {
            in_body(&gate, "\"id\":7", &format!("\"id\":{id}"))
        });
    }
    check(&gate, "another protocol", refused(400, -32600), || {
        in_body(&gate, "\"2.0\"", "\"1.0\"")
    });
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    check(&gate, "too deep", refused(400, -32600), || {
        in_body(&gate, "\"a\":1", &format!("\"a\":{deep}"))
    });
    let twice = spoilt(&gate, |_, body| {
        *body = body.replacen("\"a\":1", "\"a\":1,\"a\":2", 1)
    });
    assert_eq!(twice.status, 400, "{twice:?}");
    assert!(
        !twice.body.contains("sum"),
        "a key that stands twice: {twice:?}"
    );
    let bytes = [
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"".as_slice(),
        &[0xff, 0xfe],
        b"\"}",
    ]
    .concat();
    let response = send(
        gate.port,
        "POST",
        "/mcp",
        &Modern::headers("x", None),
        &bytes,
    );
    assert_eq!(response.status, 400, "bad UTF-8: {response:?}");
    let begun = gate.audit().iter().any(|r| r["ev"] == "call.begin");
    assert!(!begun, "nothing went upstream");
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let gate = gate();
    let padding = "x".repeat(5 * 1024 * 1024);
    let large = Expected {
        status: 413,
        code: None,
        records: 0,
    };
    check(&gate, "too large", large, || {
        in_body(&gate, "\"a\":1", &format!("\"a\":\"{padding}\""))
    });
}

/// Holds: HTTPM-39, TOOL-25
#[test]
fn methods_and_tools_that_are_not_there_and_headers_that_disagree() {
    let gate = gate();
    let unknown = |method: &str| {
        let body = Modern::body(&json!(7), method, json!({}));
        send(
            gate.port,
            "POST",
            "/mcp",
            &Modern::headers(method, None),
            body.to_string().as_bytes(),
        )
    };
    check(&gate, "unknown method", refused(404, -32601), || {
        unknown("tools/destroy")
    });
    let tool = |name: &str| Modern::call(gate.port, &json!(7), name, json!({}));
    check(&gate, "unknown tool", recorded(200, -32602), || {
        tool("demo_nothing")
    });
    // Its arguments are missing, so it is known by the error.
    let known = tool("demo_add").body;
    assert!(known.contains("isError"), "{known}");
    check(
        &gate,
        "a known tool in other letters",
        recorded(200, -32602),
        || tool("demo_Add"),
    );
    check(&gate, "hidden tool", recorded(200, -32602), || {
        tool("demo_fail")
    });
    let (hidden, absent) = (tool("demo_fail").body, tool("demo_nope").body);
    assert_eq!(
        hidden,
        absent.replace("demo_nope", "demo_fail"),
        "a hidden tool is told from an unknown one"
    );
    let names = [
        ("Mcp-Name", "Mcp-Name: demo_fail"),
        ("Mcp-Name", "X-Nothing: 1"),
        ("Mcp-Method", "Mcp-Method: tools/list"),
        ("Mcp-Method", "X-Nothing: 1"),
    ];
    for (header, line) in names {
        check(&gate, line, recorded(400, -32020), || {
            in_headers(&gate, header, line)
        });
    }
    check(
        &gate,
        "another revision than the body names",
        recorded(400, -32020),
        || {
            in_headers(
                &gate,
                "MCP-Protocol-Version",
                "MCP-Protocol-Version: 1999-01-01",
            )
        },
    );
    let begun = gate.audit().iter().any(|r| r["ev"] == "call.begin");
    assert!(!begun, "nothing went upstream");
}

#[test]
fn a_foreign_host_or_origin_is_refused_and_recorded_once() {
    let gate = gate();
    let from = |host: &str, origin: &str| {
        let body = Modern::body(
            &json!(7),
            "tools/call",
            json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}}),
        )
        .to_string();
        let headers = Modern::headers("tools/call", Some("demo_add")).join("\r\n");
        let text = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}{headers}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        raw(gate.port, text.as_bytes())
    };
    let forbidden = || Expected {
        status: 403,
        code: None,
        records: 1,
    };
    check(&gate, "foreign Host", forbidden(), || {
        from("evil.example", "")
    });
    let host = format!("127.0.0.1:{}", gate.port);
    check(&gate, "foreign Origin", forbidden(), || {
        from(&host, "Origin: http://evil.example\r\n")
    });
    assert_eq!(
        from(&host, "").status,
        200,
        "the same without the foreign Origin"
    );
}

#[test]
fn bad_arguments_name_the_place_and_never_reach_the_server() {
    let gate = gate();
    let session = Session::open(gate.port);
    let cases = [
        (json!({"a": 1}), "b"),
        (json!({"a": "one", "b": 2}), "a"),
        (json!({"a": 1, "b": 2, "c": 3}), "c"),
        (json!({}), "a"),
    ];
    for (arguments, place) in cases {
        for answer in [
            answer_of(
                &Modern::call(gate.port, &json!(1), "demo_add", arguments.clone()),
                &json!(1),
            ),
            answer_of(
                &session.call(&json!(1), "demo_add", arguments.clone()),
                &json!(1),
            ),
        ] {
            assert_eq!(answer["result"]["isError"], true, "{arguments}: {answer}");
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(place), "{arguments}: {text}");
        }
    }
    let records = gate.audit();
    assert!(
        !records.iter().any(|r| r["ev"] == "call.begin"),
        "{records:#?}"
    );
    assert_eq!(
        records.iter().filter(|r| r["ev"] == "deny").count(),
        8,
        "one record each"
    );
}

/// Asks for a note and gives up at once; the approval's id.
fn give_up(gate: &Gate, text: &str) -> String {
    use std::io::Write;
    let params = json!({"name": "demo_note", "arguments": {"name": "n", "text": text}});
    let body = Modern::body(&json!(1), "tools/call", params).to_string();
    let headers = Modern::headers("tools/call", Some("demo_note")).join("\r\n");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}\r\nContent-Length: {}\r\n\r\n{body}",
        gate.port,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    gate.pending()
}

fn note(gate: &Gate, text: &str) -> std::thread::JoinHandle<Response> {
    let (port, arguments) = (gate.port, json!({"name": "n", "text": text}));
    std::thread::spawn(move || Modern::call(port, &json!(2), "demo_note", arguments))
}

/// Holds: MRTR-08
#[test]
fn an_approval_is_good_for_the_identical_call_once_and_for_no_other() {
    let gate = gate();
    let approval = give_up(&gate, "first");
    gate.cli(&["approve", &approval]);
    assert!(
        !gate.run(&["approve", &approval]).status.success(),
        "a second decision on the same approval"
    );

    let changed = note(&gate, "changed");
    let other = until("the changed call asks anew", SOON, || {
        gate.inbox().into_iter().find(|id| *id != approval)
    });
    assert!(
        !gate.audit().iter().any(|r| r["ev"] == "call.begin"),
        "the changed call did not go upstream"
    );
    gate.cli(&["deny", &other, "-m", "not this"]);
    assert!(changed.join().unwrap().body.contains("not this"));

    let same = note(&gate, "first").join().unwrap();
    let answer = message_of(&same, &json!(2)).expect("an answer without another question");
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let replayed = note(&gate, "first");
    let third = gate.pending();
    assert_ne!(third, approval, "the approval was spent");
    gate.cli(&["deny", &third, "-m", "spent"]);
    assert!(replayed.join().unwrap().body.contains("spent"));
    assert_eq!(
        gate.audit()
            .iter()
            .filter(|r| r["ev"] == "call.begin")
            .count(),
        1
    );
}

#[test]
fn a_2025_session_gets_the_errors_of_its_revision() {
    let gate = gate();
    let session = Session::open(gate.port);
    let answer = answer_of(
        &session.call(&json!(5), "demo_nothing", json!({})),
        &json!(5),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = answer_of(
        &session.post(&json!({"jsonrpc": "2.0", "id": 6, "method": "tools/destroy"})),
        &json!(6),
    );
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let mut headers = session.headers();
    headers.pop();
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    let response = send(gate.port, "POST", "/mcp", &headers, list.as_bytes());
    assert_eq!(response.status, 400, "without its session: {response:?}");
    headers.push("Mcp-Session-Id: of-nobody".to_owned());
    let response = send(gate.port, "POST", "/mcp", &headers, list.as_bytes());
    assert_eq!(
        response.status, 404,
        "with a session of nobody: {response:?}"
    );
}
