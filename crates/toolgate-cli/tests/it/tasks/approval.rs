//! A call that waits for a person is a task, in both revisions that know tasks: its result is that of the call.

use super::{
    begin,
    restart::{begin_2025, of_2025},
    until_is,
};
use crate::help::{Gate, SOON, Session, Setup, request, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

fn note(name: &str) -> Value {
    json!({"name": name, "text": "x"})
}

fn state(session: &Session, id: &str) -> Value {
    of_2025(session, "tasks/get", json!({"taskId": id}))["result"].take()
}

fn until_state(session: &Session, id: &str, status: &str) -> Value {
    until(status, SOON, || {
        Some(state(session, id)).filter(|task| task["status"] == status)
    })
}

/// Waits until the task says that it waits for a person; the approval.
fn held(gate: &Gate, session: &Session, id: &str) -> String {
    let approval = gate.pending();
    until("it says why it waits", SOON, || {
        let task = state(session, id);
        let said = task["statusMessage"].as_str().unwrap_or_default();
        (said.contains(&approval) && task["status"] == "working").then_some(())
    });
    approval
}

#[test]
fn in_2025_a_call_that_waits_for_a_person_is_a_task() {
    let gate = Setup::demo().start();
    let session = Session::open(gate.port);
    let mut told = Told::open(&gate, &session);
    let id = begin_2025(&session, "demo_note", note("first"));
    gate.cli(&["approve", &held(&gate, &session, &id)]);
    let result = of_2025(&session, "tasks/result", json!({"taskId": id}));
    let result = &result["result"];
    assert_ne!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "the note \"first\" is written");
    until_state(&session, &id, "completed");
    told.of(&id, "completed");
    let id = begin_2025(&session, "demo_note", note("second"));
    gate.cli(&["deny", &held(&gate, &session, &id), "-m", "not today"]);
    let task = until_state(&session, &id, "failed");
    assert!(task["statusMessage"].is_string(), "{task}");
    told.of(&id, "failed");
    let result = of_2025(&session, "tasks/result", json!({"taskId": id}));
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert!(result.to_string().contains("not today"), "{result}");
    gate.stop();
}

/// Nobody decides in time: the task ends, and says so.
#[test]
fn an_approval_that_expires_ends_its_task() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = format!(
        "[limits]\ntask_approval_seconds = 2\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n"
    );
    let gate = Setup::config(config).start();
    let session = Session::open(gate.port);
    let modern = begin(&gate, "demo_note", note("first"));
    let old = begin_2025(&session, "demo_note", note("second"));
    let task = until_is(&gate, &modern, "completed");
    assert_eq!(task["result"]["isError"], true, "{task}");
    let first = task["result"]["content"][0]["text"].clone();
    until_state(&session, &old, "failed");
    let result = of_2025(&session, "tasks/result", json!({"taskId": old}));
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(result["result"]["content"][0]["text"], first);
    assert_eq!(gate.inbox(), Vec::<String>::new());
    let begun = gate.audit().into_iter().filter(|r| r["ev"] == "call.begin");
    assert_eq!(begun.count(), 0, "nothing left");
    gate.stop();
}

/// The stream of a session.
struct Told {
    stream: TcpStream,
    heard: String,
}

impl Told {
    fn open(gate: &Gate, session: &Session) -> Told {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut lines = session.headers();
        lines.retain(|line| !line.starts_with("Accept"));
        lines.push("Accept: text/event-stream".to_owned());
        let get = request(gate.port, "GET", "/mcp", &lines, b"");
        stream.write_all(&get).unwrap();
        let heard = String::new();
        let mut told = Told { stream, heard };
        told.until("the stream is open", |heard| {
            heard.contains("\r\n\r\n").then_some(())
        });
        told
    }

    /// Waits until it is told that the task is in that state.
    fn of(&mut self, id: &str, status: &str) {
        self.until(status, |heard| {
            let events = heard.lines().filter_map(|line| line.strip_prefix("data:"));
            let mut events = events.filter_map(|text| serde_json::from_str(text.trim()).ok());
            events.find_map(|event: Value| {
                let of = event["method"] == "notifications/tasks/status";
                let params = &event["params"];
                (of && params["taskId"] == id && params["status"] == status).then_some(())
            })
        });
    }

    fn until(&mut self, what: &str, found: impl Fn(&str) -> Option<()>) {
        let mut buffer = [0; 4096];
        while found(&self.heard).is_none() {
            match self.stream.read(&mut buffer) {
                Ok(n @ 1..) => self.heard.push_str(&String::from_utf8_lossy(&buffer[..n])),
                end => panic!("no {what:?}: {end:?} after {:?}", self.heard),
            }
        }
    }
}
