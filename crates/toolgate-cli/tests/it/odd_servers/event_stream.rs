//! HTTP with SSE of 2024-11-05: one stream for what the server says, a POST for each message of the client.

use crate::help::{LONG, Side, Talk, send};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// The client's side of such a connection.
pub(super) struct EventStream {
    port: u16,
    path: String,
    events: BufReader<TcpStream>,
    talk: Talk,
}

impl EventStream {
    pub(super) fn open(port: u16) -> EventStream {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
        )
        .unwrap();
        let mut opened = EventStream {
            port,
            path: String::new(),
            events: BufReader::new(stream),
            talk: Talk::of(Side::Server),
        };
        opened.path = opened.next_data();
        opened
    }

    /// The data of the next event. All of it is one line; the sizes of chunks are not data.
    fn next_data(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.events.read_line(&mut line).unwrap(),
                0,
                "the stream ended"
            );
            if let Some(data) = line.strip_prefix("data:") {
                return data.trim().to_owned();
            }
        }
    }

    /// Sends a message.
    pub(super) fn post(&mut self, message: &str) {
        self.talk.heard(message);
        let json = ["Content-Type: application/json".to_owned()];
        let taken = send(self.port, "POST", &self.path, &json, message.as_bytes());
        assert_eq!(taken.status, 202, "{taken:?}");
    }

    /// The answer to a request, and what is wrong with it and with what came before it.
    pub(super) fn checked_answer(&mut self, body: &Value) -> (Value, Vec<String>) {
        self.post(&body.to_string());
        let mut wrong = Vec::new();
        loop {
            let line = self.next_data();
            wrong.extend(self.talk.check(&line).err());
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == body["id"] && message.get("method").is_none() {
                return (message, wrong);
            }
        }
    }
}
