//! A client by hand in each revision, over stdio and HTTP. Every message that it reads is validated.

use crate::help::{Gate, LONG, Modern, Session, Side, Talk, answer_of, send};
use crate::stdio::Pipe;
use serde_json::{Value, json};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;

/// Opens a client, on the thread that uses it.
pub(super) type Open = Box<dyn FnOnce() -> RawClient + Send>;

/// What a client was listed.
pub(super) struct Listed {
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
    pub(super) prompts: Vec<Value>,
}

enum Wire {
    Stdio(Box<Pipe>),
    Http(Session),
    HttpOfNewest(u16),
    HttpWithSse(EventStream),
}

/// A client of one revision over one transport.
pub(super) struct RawClient {
    revision: &'static str,
    wire: Wire,
    last_id: u64,
}

/// One client for each revision and transport.
pub(super) fn every(gate: &Gate, config_file: &Path) -> Vec<Open> {
    let port = gate.port;
    let text = std::fs::read_to_string(config_file).unwrap();
    let mut all: Vec<Open> = Vec::new();
    for revision in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ] {
        all.push(Box::new(move || RawClient::over_http(revision, port)));
        let text = text.clone();
        all.push(Box::new(move || RawClient::over_stdio(revision, &text)));
    }
    all
}

impl RawClient {
    fn of(revision: &'static str, wire: Wire) -> RawClient {
        RawClient {
            revision,
            wire,
            last_id: 0,
        }
    }

    pub(super) fn over_http(revision: &'static str, port: u16) -> RawClient {
        let wire = match revision {
            "2026-07-28" => Wire::HttpOfNewest(port),
            "2024-11-05" => Wire::HttpWithSse(EventStream::open(port)),
            _ => Wire::Http(Session::of(port, revision)),
        };
        let mut client = RawClient::of(revision, wire);
        if revision == "2024-11-05" {
            client.shake_hands();
        }
        client
    }

    pub(super) fn over_stdio(revision: &'static str, config: &str) -> RawClient {
        let pipe = Wire::Stdio(Box::new(Pipe::with(Some(config))));
        let mut client = RawClient::of(revision, pipe);
        if revision != "2026-07-28" {
            client.shake_hands();
        }
        client
    }

    fn shake_hands(&mut self) {
        let hello = json!({"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
        let opened = self.request("initialize", hello);
        assert_eq!(
            opened["result"]["protocolVersion"], self.revision,
            "{opened}"
        );
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        match &mut self.wire {
            Wire::Stdio(pipe) => pipe.write(&done),
            Wire::HttpWithSse(stream) => stream.post(&done),
            Wire::Http(_) | Wire::HttpOfNewest(_) => {}
        }
    }

    /// Sends a request and returns the message that answers it.
    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .map(str::to_owned);
        let body = match self.revision {
            "2026-07-28" => Modern::body(&id, method, params),
            _ => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        };
        match &mut self.wire {
            Wire::Stdio(pipe) => pipe.answer(body),
            Wire::Http(session) => answer_of(&session.post(&body), &id),
            Wire::HttpOfNewest(port) => Modern::ask(*port, name.as_deref(), &body),
            Wire::HttpWithSse(stream) => stream.answer(&body),
        }
    }

    pub(super) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    pub(super) fn read(&mut self, uri: &str) -> Value {
        self.request("resources/read", json!({"uri": uri}))
    }

    /// Lists everything, page by page.
    pub(super) fn lists(&mut self) -> Listed {
        Listed {
            tools: self.list("tools/list", "tools"),
            resources: self.list("resources/list", "resources"),
            templates: self.list("resources/templates/list", "resourceTemplates"),
            prompts: self.list("prompts/list", "prompts"),
        }
    }

    #[track_caller]
    fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let answer = self.request(method, params);
            let page = answer["result"][member].as_array();
            items.extend(
                page.unwrap_or_else(|| panic!("{self}: {method}: {answer}"))
                    .clone(),
            );
            let Some(cursor) = answer["result"].get("nextCursor") else {
                return items;
            };
            params = json!({"cursor": cursor});
        }
    }

    /// Whether results of its revision have structured content.
    pub(super) fn knows_structured(&self) -> bool {
        self.revision >= "2025-06-18"
    }
}

impl fmt::Display for RawClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wire = match self.wire {
            Wire::Stdio(_) => "stdio",
            _ => "HTTP",
        };
        write!(f, "{} over {wire}", self.revision)
    }
}

/// HTTP with SSE of 2024-11-05: one stream for what the server says, a POST for each message of the client.
struct EventStream {
    port: u16,
    path: String,
    events: BufReader<TcpStream>,
    talk: Talk,
}

impl EventStream {
    fn open(port: u16) -> EventStream {
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

    fn post(&mut self, message: &str) {
        self.talk.heard(message);
        let json = ["Content-Type: application/json".to_owned()];
        let taken = send(self.port, "POST", &self.path, &json, message.as_bytes());
        assert_eq!(taken.status, 202, "{taken:?}");
    }

    fn answer(&mut self, body: &Value) -> Value {
        self.post(&body.to_string());
        loop {
            let line = self.next_data();
            self.talk.said(&line);
            let message: Value = serde_json::from_str(&line).expect(&line);
            if message["id"] == body["id"] && message.get("method").is_none() {
                return message;
            }
        }
    }
}
