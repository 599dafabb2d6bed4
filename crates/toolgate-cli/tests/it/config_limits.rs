//! Limits of the config, each exceeded by one through the whole program: each key has the effect of its reference.

use crate::help::{
    Gate, LONG, Modern, SOON, Session, Setup, TempDir, answer_of, raw, request, send, until,
};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The demo server within these limits.
fn within(limits: &str) -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let rate = match limits.contains("rate") {
        true => "",
        false => "rate = \"1000000/s\"\n",
    };
    Setup::config(format!(
        "[limits]\n{rate}{limits}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
    .start()
}

/// The result of a call, or its error.
fn call(gate: &Gate, tool: &str, arguments: Value) -> Value {
    let id = json!(format!("call-{tool}"));
    let answer = answer_of(&Modern::call(gate.port, &id, tool, arguments), &id);
    match answer["result"].is_object() {
        true => answer["result"].clone(),
        false => answer["error"].clone(),
    }
}

fn text(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str();
    text.or(result["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

fn count(port: u16, to: u32, delay_ms: u32) -> thread::JoinHandle<Value> {
    thread::spawn(move || {
        let id = json!("count");
        let arguments = json!({"to": to, "delay_ms": delay_ms});
        answer_of(&Modern::call(port, &id, "demo_slow_count", arguments), &id)["result"].clone()
    })
}

fn runs(gate: &Gate) {
    until("a call runs", SOON, || {
        gate.cli(&["calls"]).contains("running").then_some(())
    });
}

#[test]
fn the_json_of_a_message() {
    let gate = within("depth = 8\nkeys = 16\nelements = 256\nname_bytes = 128");
    let post = |arguments: Value, name: &str| {
        let body = Modern::body(
            &json!(1),
            "tools/call",
            json!({"name": name, "arguments": arguments}),
        );
        let headers = Modern::headers("tools/call", Some(name));
        send(
            gate.port,
            "POST",
            "/mcp",
            &headers,
            body.to_string().as_bytes(),
        )
    };
    let keys = |n: usize| {
        (0..n)
            .map(|n| (format!("k{n}"), json!(1)))
            .collect::<serde_json::Map<_, _>>()
    };
    assert_eq!(post(json!({"a": 1, "b": 1}), "demo_add").status, 200);
    let deep = json!([[[[[[[[1]]]]]]]]);
    for (arguments, word) in [
        (json!({ "a": deep }), "deep"),
        (json!(keys(17)), "keys"),
        (json!({"a": vec![1; 256]}), "values"),
    ] {
        let answer = post(arguments, "demo_add");
        assert_eq!(answer.status, 400, "{word}: {answer:?}");
    }
    let over = "the name or URI is longer than 128 bytes";
    for (length, too_long) in [(128, false), (129, true)] {
        let answer = post(json!({}), &"x".repeat(length));
        assert_eq!(answer.body.contains(over), too_long, "{answer:?}");
    }
    gate.stop();
}

#[test]
fn calls_of_each_kind_at_the_same_time() {
    for (key, words) in [
        (
            "calls_per_caller = 1\nwaiting_per_caller = 0",
            "1 call from this caller is already running or waiting",
        ),
        (
            "calls_per_caller = 1\ncalls = 1\nwaiting_per_caller = 0\nwaiting = 0",
            "1 call",
        ),
        (
            "calls_per_tool = 1\nwaiting_per_caller = 0",
            "1 call to demo.slow_count is already running",
        ),
        (
            "calls_per_server = 1\nwaiting_per_caller = 0",
            "1 call to the server demo is already running",
        ),
    ] {
        let gate = within(key);
        let first = count(gate.port, 20, 100);
        runs(&gate);
        let refused = count(gate.port, 1, 1).join().unwrap();
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused).contains(words), "{key}: {refused}");
        assert!(
            text(&refused).ends_with("try again when one has completed"),
            "{refused}"
        );
        assert!(first.join().unwrap()["isError"] != true);
        gate.stop();
    }
}

#[test]
fn how_often_and_how_long() {
    let gate = within("rate = \"2/h\"\ncall_seconds = 1\ncall_max_seconds = 2");
    let long = count(gate.port, 10_000, 100).join().unwrap();
    assert_eq!(
        long["isError"], true,
        "progress does not buy more than the hard limit: {long}"
    );
    let add = || call(&gate, "demo_add", json!({"a": 1, "b": 1}));
    assert_eq!(add()["structuredContent"]["sum"], 2);
    assert_eq!(add()["structuredContent"]["sum"], 2);
    let refused = text(&add());
    assert!(
        refused.contains("the rate limit of demo.add is reached: 2 per hour; retry in 30 min"),
        "{refused}"
    );
    gate.stop();
}

#[test]
fn a_page_of_a_list() {
    let gate = within("page_items = 3");
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let ask = || {
        send(
            gate.port,
            "POST",
            "/mcp",
            &Modern::headers("tools/list", None),
            list.as_bytes(),
        )
    };
    let page = until("the tools are there", SOON, || {
        let answer = answer_of(&ask(), &json!(1))["result"].clone();
        (!answer["tools"].as_array()?.is_empty()).then_some(answer)
    });
    assert_eq!(page["tools"].as_array().unwrap().len(), 3);
    assert!(page["nextCursor"].is_string(), "{page}");
    gate.stop();
}

fn open_stream(gate: &Gate, session: &Session) -> TcpStream {
    let mut lines = session.headers();
    lines.retain(|line| !line.starts_with("Accept"));
    lines.push("Accept: text/event-stream".to_owned());
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
        .write_all(&request(gate.port, "GET", "/mcp", &lines, b""))
        .unwrap();
    stream
}

fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[test]
fn streams_of_one_caller_and_of_all() {
    for limits in [
        "listen_streams_per_caller = 2",
        "listen_streams_per_caller = 2\nlisten_streams = 2",
    ] {
        let gate = within(limits);
        let sessions: Vec<Session> = (0..3).map(|_| Session::open(gate.port)).collect();
        let mut held: Vec<TcpStream> = sessions[..2]
            .iter()
            .map(|s| open_stream(&gate, s))
            .collect();
        assert!(held.iter_mut().all(|stream| status(stream) == "200"));
        assert_eq!(
            status(&mut open_stream(&gate, &sessions[2])),
            "429",
            "one over"
        );
        gate.stop();
    }
}

#[test]
fn resources_of_which_one_stream_hears() {
    let gate = within("stream_resources = 1");
    let uris = json!(["a:1", "a:2"]);
    let listen = json!({"notifications": {"resourceSubscriptions": uris}});
    let body = Modern::body(&json!(1), "subscriptions/listen", listen).to_string();
    let headers = Modern::headers("subscriptions/listen", None);
    let answer = send(gate.port, "POST", "/mcp", &headers, body.as_bytes());
    assert!(answer.body.contains("at most 1 strings"), "{answer:?}");
    gate.stop();
}

#[test]
fn questions_that_wait_for_a_person() {
    for limits in [
        "approvals_per_caller = 1",
        "approvals_per_caller = 1\napprovals = 1",
    ] {
        let gate = within(limits);
        let port = gate.port;
        let note = |name: &'static str| {
            thread::spawn(move || {
                let id = json!(name);
                let arguments = json!({"name": name, "text": "x"});
                answer_of(&Modern::call(port, &id, "demo_note", arguments), &id)["result"].clone()
            })
        };
        let first = note("one");
        let id = gate.pending();
        let refused = note("two").join().unwrap();
        assert_eq!(refused["isError"], true, "{refused}");
        gate.cli(&["deny", &id, "-m", "no"]);
        let denied = first.join().unwrap();
        assert_eq!(denied["isError"], true, "{denied}");
        gate.stop();
    }
    // Nobody decides in time.
    let gate = within("approval_seconds = 1");
    let arguments = json!({"name": "late", "text": "x"});
    let late = Modern::call(gate.port, &json!(1), "demo_note", arguments);
    let late = answer_of(&late, &json!(1))["result"].clone();
    assert_eq!(late["isError"], true, "{late}");
    gate.stop();
}

/// A call that asks its client, in rounds.
fn asking(gate: &Gate, state: Option<&str>) -> Value {
    let mut params = json!({"name": "demo_ask_name", "arguments": {}});
    if let Some(state) = state {
        params["requestState"] = state.into();
        // Not what was asked for, so it asks again.
        params["inputResponses"] = json!({"other": {"action": "decline"}});
    }
    let mut body = Modern::body(&json!(1), "tools/call", params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}});
    Modern::ask(gate.port, Some("demo_ask_name"), &body)
}

#[test]
fn rounds_and_the_life_of_what_is_sealed() {
    let gate = within("seal_seconds = 1");
    let first = until("it asks", LONG, || {
        asking(&gate, None)["result"]["requestState"]
            .as_str()
            .map(str::to_owned)
    });
    thread::sleep(Duration::from_millis(2100));
    let late = asking(&gate, Some(&first));
    assert!(
        late["result"]["requestState"].is_null()
            && late["result"]["resultType"] != "input_required",
        "too late: {late}"
    );
    gate.stop();
    let gate = within("rounds = 1");
    let state = |answer: &Value| answer["result"]["requestState"].as_str().map(str::to_owned);
    let first = until("it asks", LONG, || state(&asking(&gate, None)));
    let over = asking(&gate, Some(&first));
    assert!(
        over.to_string()
            .contains("requested input in more than 1 rounds"),
        "{over}"
    );
    gate.stop();
}

#[test]
fn the_head_of_a_request_that_crawls() {
    let gate = within("header_seconds = 1");
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
        .write_all(b"POST /mcp HTTP/1.1\r\nHost: 127")
        .unwrap();
    let began = Instant::now();
    let mut all = String::new();
    let _ = stream.read_to_string(&mut all);
    assert!(!all.contains(" 200 "), "it is given up: {all}");
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(9),
        "10 s are the default: {took:?}"
    );
    gate.stop();
}

/// Nothing more is accepted until one ends.
#[test]
fn one_connection_too_many_waits() {
    let gate = within("connections = 1");
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let headers = Modern::headers("tools/list", None);
    let bytes = request(gate.port, "POST", "/mcp", &headers, list.as_bytes());
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
        stream
    };
    let first = ask();
    let mut second = ask();
    second.write_all(&bytes[bytes.len() - 1..]).unwrap();
    second
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let waits = second.read(&mut [0; 1]).unwrap_err();
    assert!(
        matches!(waits.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{waits}"
    );
    drop(first);
    second.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(status(&mut second), "200");
    gate.stop();
}

#[test]
fn a_server_that_takes_too_long_to_start() {
    let config = "[limits]\nstart_seconds = 1\n[server.slow]\ncommand = [\"sleep\", \"600\"]\n";
    let gate = Setup::config(config).start();
    until("it is given up", LONG, || {
        let server = gate.state()["servers"][0].to_string();
        server.contains("within 1s").then_some(())
    });
    gate.stop();
}

#[test]
fn what_still_runs_when_the_gateway_stops() {
    let gate = within("drain_seconds = 1");
    let _running = count(gate.port, 10_000, 100);
    runs(&gate);
    // It ends within the bound of the helper, long before the call would.
    gate.stop();
}

/// A server with three tools, of which one has a long description and one a long schema, and whose result is long.
const LARGE: &str = r#"while IFS= read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
long=$(head -c 70000 /dev/zero | tr '\0' x)
case "$line" in
*'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"Use it well."}';;
*'"tools/list"'*) say '{"tools":[{"name":"large","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"wordy","description":"'"$long"'","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"bulky","inputSchema":{"type":"object","title":"'"$long"'"},"annotations":{"readOnlyHint":true}}]}';;
*'"tools/call"'*) say '{"content":[{"type":"text","text":"'"$long"'"}]}';;
*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
esac; done"#;

fn large(limits: &str) -> Gate {
    let folder = TempDir::new("large");
    let script = folder.write("large.sh", LARGE);
    let config = format!(
        "[limits]\nrate = \"1000000/s\"\n{limits}\n[server.large]\ncommand = [\"sh\", {script:?}]\ntrust_annotations = true\n"
    );
    let gate = Setup::config(config).start();
    until("the server is there", LONG, || {
        // Whoever asks for a tool waits for its list.
        call(&gate, "large_large", json!({}));
        (gate.state()["servers"][0]["state"] == "running").then_some(())
    });
    gate
}

#[test]
fn what_a_server_lists_and_answers() {
    let withheld = |gate: &Gate, tool: &str| {
        let tools = gate.cli(&["tools"]);
        let line = tools.lines().find(|line| line.contains(tool));
        line.unwrap_or_else(|| panic!("{tool} in {tools}"))
            .contains("withheld")
    };
    for (definition, description, result) in [(65_536, 1024, 65_536), (131_072, 65_536, 131_072)] {
        let gate = large(&format!(
            "result_bytes = {result}\ndefinition_bytes = {definition}\ndescription_bytes = {description}"
        ));
        let over = definition == 65_536;
        let result = call(&gate, "large_large", json!({}));
        assert_eq!(
            result["isError"] == true,
            over,
            "{:.200}",
            result.to_string()
        );
        assert!(withheld(&gate, "large.wordy"));
        assert_eq!(withheld(&gate, "large.bulky"), over);
        gate.stop();
    }
    let gate = large("definition_bytes = 131072\ndescription_bytes = 131072");
    assert!(!withheld(&gate, "large.wordy"));
    gate.stop();
    let gate = large("tools_per_server = 1");
    let tools = gate.cli(&["tools"]);
    assert!(!tools.contains("large.wordy"), "{tools}");
    let out = &gate.state()["servers"][0]["notes"];
    assert!(out.to_string().contains("lists more than 1 tools"), "{out}");
    assert!(
        tools.contains("tool list: dropped: the server lists more"),
        "{tools}"
    );
    gate.stop();
    let gate = large("list_bytes = 131072");
    assert!(
        !gate.cli(&["tools"]).contains("large.large"),
        "more bytes than are taken"
    );
    gate.stop();
    let gate = large("list_bytes = 262144");
    assert!(gate.cli(&["tools"]).contains("large.large"));
    gate.stop();
}

#[test]
fn a_stateless_request_is_fine_within_all_of_them() {
    let gate = within("");
    let answer = raw(
        gate.port,
        &Modern::request(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 1})),
    );
    assert_eq!(
        answer_of(&answer, &json!(1))["result"]["structuredContent"]["sum"],
        2
    );
    gate.stop();
}
