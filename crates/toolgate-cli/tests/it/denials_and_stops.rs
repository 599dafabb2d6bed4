//! Denials, stops and hidden tools hold in odd situations: beside a second gateway, for a request sent twice, with a
//! server that is down, and at the limit of connections.

use crate::help::{
    Gate, Modern, SOON, Setup, TempDir, answer_of, raw, toolgate, traced_config, until,
};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;

#[test]
fn a_denial_at_one_gateway_is_not_asked_again_at_another() {
    let data = Arc::new(TempDir::new("two"));
    let one = Setup::demo().start_in(data.clone());
    let two = Setup::demo().start_in(data.clone());
    let mut call = toolgate();
    call.args(["call", "demo.note", r#"{"name":"x","text":"y"}"#, "--data"])
        .arg(data.path().join("state"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut call = call.spawn().unwrap();
    let id = one.pending();
    one.cli(&["deny", &id, "-m", "no way"]);
    let status = until("the call ends", SOON, || call.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    // The other one learns of the answer a moment later. A second question would stay.
    until("nobody is asked a second time", SOON, || {
        two.inbox().is_empty().then_some(())
    });
    // The other way round: an id that only one of them knows is found, whichever is asked first.
    let missing = one.run(&["approve", "a-nobody"]);
    assert!(!missing.status.success());
}

#[test]
fn stop_reaches_a_call_whose_round_was_sent_twice() {
    let folder = TempDir::new("trace");
    let trace = folder.file("trace");
    let rule = "\n[[rule]]\ntools = [\"demo.slow_count\"]\naction = \"ask\"\n";
    let gate = Setup::config(traced_config(&trace) + rule).start();
    let arguments = json!({"to": 5000, "delay_ms": 20});
    let ask = |state: Option<&str>| {
        let mut params = json!({"name": "demo_slow_count", "arguments": arguments});
        if let Some(state) = state {
            params["requestState"] = state.into();
            params["inputResponses"] =
                json!({"approval": {"action": "accept", "content": {"approve": true}}});
        }
        let mut body = Modern::body(&json!(1), "tools/call", params);
        let able = json!({"elicitation": {}});
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able;
        let mut head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gate.port);
        for line in Modern::headers("tools/call", Some("demo_slow_count")) {
            head += &format!("{line}\r\n");
        }
        let body = body.to_string();
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let first = raw(gate.port, ask(None).as_bytes());
    let state = answer_of(&first, &json!(1))["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned();
    let send = |text: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let running = send(&ask(Some(&state)));
    let ticks = || std::fs::read_to_string(&trace).map_or(0, |text| text.lines().count());
    until("it counts", SOON, || (ticks() > 0).then_some(()));
    // The same round again opens a second question; it must not hide the call that runs.
    let again = raw(gate.port, ask(Some(&state)).as_bytes());
    assert!(
        answer_of(&again, &json!(1))
            .to_string()
            .contains("input_required")
    );
    let id = begun(&gate);
    gate.cli(&["stop", &id]);
    let out = until("its end is recorded", SOON, || {
        let records = gate.audit();
        let end = records.iter().find(|r| r["ev"] == "call.end")?;
        Some(end["out"].as_str()?.to_owned())
    });
    assert_eq!(out, "cancelled_unknown");
    drop(running);
}

fn begun(gate: &Gate) -> String {
    until("the begin is recorded", SOON, || {
        let records = gate.audit();
        let begin = records.iter().find(|r| r["ev"] == "call.begin")?;
        Some(begin["call"].as_str()?.to_owned())
    })
}

#[test]
fn a_hidden_tool_of_a_server_that_is_down_is_as_unknown_as_any() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n[server.secret]\ncommand = [\"/nonexistent/program\"]\n\
         [[rule]]\ntools = [\"secret.*\"]\naction = \"deny\"\n"
    );
    let gate = Setup::config(config).start();
    let said = |tool: &str| {
        let answer = answer_of(
            &Modern::call(gate.port, &json!(1), tool, json!({})),
            &json!(1),
        );
        answer.to_string().replace(tool, "TOOL")
    };
    until("the demo server runs", SOON, || {
        said("nosuch_x").contains("-32602").then_some(())
    });
    assert_eq!(said("secret_x"), said("nosuch_x"));
    assert!(said("secret_x").contains("-32602"));
}

#[test]
fn a_signal_ends_the_gateway_at_the_limit_of_connections() {
    let config = traced_config(&TempDir::new("t").file("t"))
        .replace("[limits]", "[limits]\nconnections = 1");
    let gate = Setup::config(config).start();
    let params = json!({"notifications": {"toolsListChanged": true}});
    let body = Modern::body(&json!(1), "subscriptions/listen", params).to_string();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gate.port);
    for line in Modern::headers("subscriptions/listen", None) {
        head += &format!("{line}\r\n");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut stream, &mut first).unwrap();
    // Ends by SIGTERM, and fails the test when that does not end it.
    gate.stop();
}
