//! A server over HTTP that a test plays, in the test's own process.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// What it answers to a request.
pub(crate) enum Reply {
    /// Messages in a stream of events, the answer last.
    Events(Vec<Value>),
    /// Another status, with a body of that type.
    Status(u16, &'static str, String),
}

impl Reply {
    /// The result of a request, alone.
    pub(crate) fn result(request: &Value, result: Value) -> Reply {
        Reply::Events(vec![
            json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
        ])
    }
}

/// Serves until the test ends; the address of its endpoint.
pub(crate) fn upstream(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || connection(stream, answer.as_ref()));
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

/// Requests one after the other, until the other side has enough.
fn connection(stream: TcpStream, answer: &dyn Fn(&Value) -> Reply) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut to = stream;
    loop {
        let message = next_request(&mut reader)?;
        let (status, kind, body) = match message.get("id") {
            None => (202, "text/plain", String::new()),
            Some(_) => match answer(&message) {
                Reply::Status(status, kind, body) => (status, kind, body),
                Reply::Events(all) => {
                    let events = all.iter().map(|one| format!("data: {one}\n\n"));
                    (200, "text/event-stream", events.collect())
                }
            },
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        to.write_all([head, body].concat().as_bytes()).ok()?;
    }
}

/// The message of the next request; a GET or DELETE has none.
pub(crate) fn next_request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap_or_default())
}
