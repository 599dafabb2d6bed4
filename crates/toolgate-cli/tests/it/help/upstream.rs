//! A server over HTTP that a test plays, in the test's own process.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Reply to a request.
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

/// The same for a server with one tool, `say`, which only reads; its calls are answered so.
pub(crate) fn sayer(said: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> String {
    upstream(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"}}),
            ),
            "tools/list" => answer(
                json!({"tools": [{"name": "say", "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true}}]}),
            ),
            "tools/call" => said(message),
            _ => answer(json!({})),
        }
    })
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
    let heard = Heard::read(reader)?;
    Some(serde_json::from_str(&heard.body).unwrap_or_default())
}

/// A request as a played server reads it.
pub(crate) struct Heard {
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    /// The next one; nothing at the end of the connection.
    pub(crate) fn read(from: &mut BufReader<TcpStream>) -> Option<Heard> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (from.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let target = head.split(' ').nth(1)?.to_owned();
        let mut heard = Heard {
            target,
            head,
            body: String::new(),
        };
        let length = heard
            .header("content-length")
            .map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        heard.body = String::from_utf8(body).unwrap();
        Some(heard)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}
