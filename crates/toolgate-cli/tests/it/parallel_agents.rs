//! Many agents at once, with the default limits.

use crate::help::{Gate, SOON, Session, Setup, answer_of, request, send};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;

const SESSIONS: usize = 2;
const CALLS_PER_SESSION: usize = 50;
const SSE_CLIENTS: usize = 50;

fn add(session: &Session, number: usize) -> Value {
    let id = json!(number + 1);
    let arguments = json!({"a": number, "b": 1});
    answer_of(&session.call(&id, "demo_add", arguments), &id)
}

/// The texts of the calls of one session, all made at the same time.
fn parallel_calls(session: &Session, count: usize) -> Vec<String> {
    thread::scope(|scope| {
        let calls: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || add(session, number)))
            .collect();
        let text = |answer: Value| answer["result"]["content"][0]["text"].to_string();
        calls
            .into_iter()
            .map(|call| text(call.join().unwrap()))
            .collect()
    })
}

#[test]
fn two_anonymous_agents_make_fifty_parallel_calls_each_with_the_defaults() {
    let gate = Setup::demo().start();
    let sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::open(gate.port)).collect();
    for text in thread::scope(|scope| {
        let all: Vec<_> = sessions
            .iter()
            .map(|session| scope.spawn(|| parallel_calls(session, CALLS_PER_SESSION)))
            .collect();
        let all: Vec<Vec<String>> = all.into_iter().map(|one| one.join().unwrap()).collect();
        all.concat()
    }) {
        assert!(
            !text.contains("rate limit") && !text.contains("too many concurrent calls"),
            "{text}"
        );
    }
    gate.stop();
}

#[test]
fn counts_the_rate_of_an_anonymous_caller_by_session() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let gate = Setup::config(format!(
        "[limits]\nrate = \"3/h\"\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
    .start();
    let [first, second] = [0, 1].map(|_| Session::open(gate.port));
    let refused = |session: &Session| {
        let texts = (0..4).map(|number| add(session, number).to_string());
        texts.filter(|text| text.contains("rate limit")).count()
    };
    assert_eq!(refused(&first), 1, "the fourth call of one session");
    assert_eq!(refused(&second), 1, "another session has a rate of its own");
    gate.stop();
}

/// A client of HTTP with SSE: its stream, and the path at which it posts.
fn sse_client(gate: &Gate) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let accept = ["Accept: text/event-stream".to_owned()];
    let head = request(gate.port, "GET", "/sse", &accept, b"");
    stream.write_all(&head).unwrap();
    let mut events = BufReader::new(stream);
    let path = next_data(&mut events);
    (events, path)
}

/// The data of the next event.
fn next_data(events: &mut impl BufRead) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        let read = events.read_line(&mut line).unwrap();
        assert_ne!(read, 0, "the stream is open");
        if let Some(data) = line.strip_prefix("data:") {
            return data.trim().to_owned();
        }
    }
}

#[test]
fn fifty_parallel_sse_clients_are_served_with_the_defaults() {
    let gate = Setup::demo().start();
    let mut clients: Vec<_> = (0..SSE_CLIENTS).map(|_| sse_client(&gate)).collect();
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
    let open =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
    let json = ["Content-Type: application/json".to_owned()];
    for (events, path) in &mut clients {
        let taken = send(gate.port, "POST", path, &json, open.as_bytes());
        assert_eq!(taken.status, 202, "{taken:?}");
        let answer: Value = serde_json::from_str(&next_data(events)).unwrap();
        assert_eq!(
            answer["result"]["protocolVersion"], "2024-11-05",
            "{answer}"
        );
    }
    drop(clients);
    gate.stop();
}
