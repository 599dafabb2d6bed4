//! `--stdio` by hand, for both eras: bad lines never end the stream, the end of input ends everything.

use crate::help::{Family, LONG, SOON, Setup, Side, Talk, TempDir, toolgate, until};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::Receiver;

pub(crate) struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Every line of the gateway is checked against the official schema.
    talk: RefCell<Talk>,
    _data: TempDir,
}

impl Pipe {
    pub(crate) fn open() -> Pipe {
        Pipe::with(None)
    }

    pub(crate) fn with(config: Option<&str>) -> Pipe {
        let data = TempDir::new("pipe");
        let mut start = toolgate();
        start
            .args(["serve", "--stdio", "--data"])
            .arg(data.file("state"));
        if let Some(config) = config {
            let file = data.write("toolgate.toml", config);
            start.arg("--config").arg(file);
        }
        let mut child = start
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Pipe {
            child,
            stdin,
            lines: crate::help::lines(stdout),
            talk: RefCell::new(Talk::of(Side::Server)),
            _data: data,
        }
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.talk.borrow_mut().heard(line);
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// The next line; everything on standard output is a message.
    #[track_caller]
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(LONG).expect("a line");
        let message: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        self.talk.borrow_mut().said(&line);
        message
    }

    /// The next reply; what changed in the list may be told at any time.
    #[track_caller]
    fn reply(&self) -> Value {
        loop {
            let message = self.next();
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, request: Value) -> Value {
        self.write(&request.to_string());
        loop {
            let message = self.reply();
            if message["id"] == request["id"] {
                return message;
            }
        }
    }

    /// The answer to a request, and what is wrong with it and with what came before it.
    pub(crate) fn checked_answer(&mut self, request: &Value) -> (Value, Vec<String>) {
        self.write(&request.to_string());
        let mut wrong = Vec::new();
        loop {
            let line = self.lines.recv_timeout(LONG).expect("a line");
            wrong.extend(self.talk.borrow_mut().check(&line).err());
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == request["id"] && message.get("method").is_none() {
                return (message, wrong);
            }
        }
    }

    /// Ends the input; everything must end by itself.
    fn end(mut self) {
        let family = Family::of(self.child.id());
        drop(self.stdin.take());
        let status = until("the program ends with its input", SOON, || {
            self.child.try_wait().unwrap()
        });
        assert!(status.success(), "{status}");
        family.is_gone();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        crate::help::kill_hard(&mut self.child);
    }
}

fn bad_lines(pipe: &mut Pipe) {
    pipe.write("{\"jsonrpc\":");
    assert_eq!(pipe.reply()["error"]["code"], -32700);
    pipe.write("{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"tools/list\"}");
    assert_eq!(pipe.reply()["error"]["code"], -32600);
}

#[test]
fn a_2025_session_on_stdio() {
    let mut pipe = Pipe::open();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
    let opened =
        pipe.answer(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    assert_eq!(
        opened["result"]["protocolVersion"], "2025-11-25",
        "{opened}"
    );
    pipe.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    bad_lines(&mut pipe);
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    let added =
        pipe.answer(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": add}));
    assert_eq!(added["result"]["structuredContent"]["sum"], 3, "{added}");
    pipe.end();
}

/// Whoever has our standard input is the user whose program started us; over HTTP the same config lets nobody in.
///
/// Holds: AUTH-01, BASE-44, SEC-07
#[test]
fn over_stdio_nobody_is_asked_for_credentials() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = format!(
        "[auth]\nrequired = true\nresource = \"https://tools.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://login.test\"\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    );
    let mut pipe = Pipe::with(Some(&config));
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    let added = pipe.answer(crate::help::Modern::body(&json!("a"), "tools/call", add));
    assert_eq!(added["result"]["structuredContent"]["sum"], 3, "{added}");
    pipe.end();
    let gate = Setup::config(config).start();
    let refused = crate::help::Modern::call(gate.port, &json!(1), "demo_add", json!({}));
    assert_eq!(refused.status, 401, "{refused:?}");
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.starts_with("Bearer resource_metadata="),
        "{challenge}"
    );
}

#[test]
fn requests_of_2026_on_stdio() {
    let mut pipe = Pipe::open();
    let discovered = pipe.answer(crate::help::Modern::body(
        &json!("d"),
        "server/discover",
        json!({}),
    ));
    assert!(
        discovered["result"]["supportedVersions"]
            .to_string()
            .contains("2026-07-28"),
        "{discovered}"
    );
    bad_lines(&mut pipe);
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}});
    let added = pipe.answer(crate::help::Modern::body(&json!("a"), "tools/call", add));
    assert_eq!(added["result"]["structuredContent"]["sum"], 3, "{added}");
    pipe.end();
}

#[test]
fn a_call_that_runs_may_end_when_the_program_is_told_to_stop() {
    let mut pipe = Pipe::open();
    let family = Family::of(pipe.child.id());
    let count = json!({"name": "demo_slow_count", "arguments": {"to": 20, "delay_ms": 50}});
    let mut request = crate::help::Modern::body(&json!("c"), "tools/call", count);
    request["params"]["_meta"]["progressToken"] = json!("p");
    pipe.write(&request.to_string());
    assert_eq!(pipe.next()["method"], "notifications/progress");
    let status = crate::help::end_politely(&mut pipe.child);
    assert!(status.success(), "{status}");
    let counted = pipe.reply();
    assert_eq!(counted["id"], "c");
    assert!(counted.to_string().contains("counted to 20"), "{counted}");
    family.is_gone();
}

#[test]
fn the_terminal_reaches_a_gateway_on_stdio() {
    let mut pipe = Pipe::open();
    let note = json!({"name": "demo_note", "arguments": {"name": "a", "text": "b"}});
    let request = crate::help::Modern::body(&json!("n"), "tools/call", note);
    pipe.write(&request.to_string());
    let state = pipe._data.file("state");
    let cli = |args: &[&str]| crate::help::output(toolgate().args(args).arg("--data").arg(&state));
    let approval = until("the call waits", LONG, || {
        let out = cli(&["inbox"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.split_whitespace()
            .find(|word| word.starts_with("a-"))
            .map(str::to_owned)
    });
    assert!(cli(&["approve", &approval]).status.success());
    let answer = loop {
        let message = pipe.next();
        if message["id"] == "n" {
            break message;
        }
    };
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    pipe.end();
}
