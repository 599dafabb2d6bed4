//! Servers over HTTP that misbehave, each in one way.

use crate::help::next_request;
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Misdeed at a call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Deed {
    Closes,
    Hangs,
    NeverAnswers,
    Garbage,
    Slow,
    Half,
    HalfHead,
    Status500,
    WrongType,
    TooLong,
    WrongId,
    NoObject,
    EndlessEvents,
    Redirects,
}

pub(super) const ALL: &[(&str, Deed)] = &[
    ("closes", Deed::Closes),
    ("hangs", Deed::Hangs),
    ("never-answers", Deed::NeverAnswers),
    ("garbage", Deed::Garbage),
    ("slow", Deed::Slow),
    ("half", Deed::Half),
    ("half-head", Deed::HalfHead),
    ("status-500", Deed::Status500),
    ("wrong-type", Deed::WrongType),
    ("too-long", Deed::TooLong),
    ("wrong-id", Deed::WrongId),
    ("no-object", Deed::NoObject),
    ("endless-events", Deed::EndlessEvents),
    ("redirects", Deed::Redirects),
];

/// Serves until the test ends; the port.
pub(super) fn serve(deed: Deed) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || connection(stream, deed));
        }
    });
    port
}

/// Requests one after the other, until somebody has enough.
fn connection(stream: TcpStream, deed: Deed) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut to = stream;
    loop {
        let message = next_request(&mut reader)?;
        let id = message["id"].clone();
        if deed == Deed::NeverAnswers {
            return wait();
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
            }
            "tools/list" => {
                json!({"tools": [{"name": "do", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]})
            }
            "tools/call" => {
                misbehave(&mut to, deed, &id)?;
                continue;
            }
            _ if id.is_null() => {
                to.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
                    .ok()?;
                continue;
            }
            _ => {
                let error =
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
                answer(&mut to, &error.to_string())?;
                continue;
            }
        };
        answer(
            &mut to,
            &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
        )?;
    }
}

fn answer(to: &mut TcpStream, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    to.write_all(format!("{head}{body}").as_bytes()).ok()
}

fn wait() -> Option<()> {
    thread::sleep(Duration::from_secs(60));
    None
}

/// `None` where the connection is of no use any more.
fn misbehave(to: &mut TcpStream, deed: Deed, id: &Value) -> Option<()> {
    let good = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
    let head = |kind: &str, length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut send = |text: &str| to.write_all(text.as_bytes()).ok();
    match deed {
        Deed::Closes => None,
        Deed::Hangs | Deed::NeverAnswers => wait(),
        Deed::Garbage => {
            send("HTTP/9 \u{1b}[2J no\r\n\r\n")?;
            None
        }
        Deed::Slow => {
            send(&head("application/json", good.len()))?;
            for byte in good.bytes() {
                send(char::from(byte).to_string().as_str())?;
                thread::sleep(Duration::from_secs(1));
            }
            Some(())
        }
        Deed::Half => {
            send(&head("application/json", good.len()))?;
            send(&good[..good.len() / 2])?;
            None
        }
        Deed::HalfHead => {
            send("HTTP/1.1 200 OK\r\nContent-Ty")?;
            wait()
        }
        Deed::Status500 => send("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"),
        Deed::WrongType => send(&format!("{}<html>", head("text/html", 6))),
        Deed::TooLong => {
            send(&head("application/json", 100_000_000))?;
            let block = "x".repeat(65_536);
            while send(&block).is_some() {}
            None
        }
        Deed::WrongId => {
            let other = json!({"jsonrpc": "2.0", "id": 987_654, "result": {}}).to_string();
            send(&format!("{}{other}", head("application/json", other.len())))
        }
        Deed::NoObject => {
            let seven = json!({"jsonrpc": "2.0", "id": id, "result": 7}).to_string();
            send(&format!("{}{seven}", head("application/json", seven.len())))
        }
        Deed::EndlessEvents => {
            send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
            )?;
            let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n";
            while send(event).is_some() {}
            None
        }
        Deed::Redirects => send(
            "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
        ),
    }
}
