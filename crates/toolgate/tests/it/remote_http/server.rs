//! The other end of the wire. Each request comes on a connection of its own.

use super::super::remote::peer::{Opening, options, welcome};
use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use toolgate::{
    Caller, Service,
    client::{HttpOptions, RemoteOptions, RemoteServer},
    core::{CallReporter, ChangeFilter, ChangeStream, EventSink, ReporterEvent},
};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(20);

/// Waits a short time for a future, or fails.
pub(super) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, work).await.expect("it ends")
}

/// The events of one call.
#[derive(Default)]
pub(super) struct Heard(std::sync::Mutex<Vec<ReporterEvent>>);

impl Heard {
    pub(super) fn reporter() -> (CallReporter, std::sync::Arc<Heard>) {
        let heard = std::sync::Arc::<Heard>::default();
        (CallReporter::new(heard.clone()), heard)
    }

    /// Returns the received progress values.
    pub(super) fn progress(&self) -> Vec<f64> {
        let far = |event: &ReporterEvent| match event {
            ReporterEvent::Progress(progress) => Some(progress.progress),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(far).collect()
    }
}

impl EventSink for Heard {
    fn report(&self, event: ReporterEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// The changes of a server.
pub(super) async fn changes_of(remote: &RemoteServer) -> ChangeStream {
    let interest = ChangeFilter::all_lists(Caller::new("test"));
    remote.changes(interest).await.unwrap()
}

/// A server that says what the test says.
pub(super) struct Server {
    listener: TcpListener,
    pub(super) url: String,
    /// Every message of the client is checked against the official schema.
    talk: Arc<Mutex<Talk>>,
}

/// One request, and the way to answer it.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Value,
    stream: TcpStream,
    talk: Arc<Mutex<Talk>>,
}

/// Starts to open a server.
pub(super) async fn start() -> (Opening, Server) {
    start_with(options(), HttpOptions::default()).await
}

#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
pub(super) async fn start_with(options: RemoteOptions, http: HttpOptions) -> (Opening, Server) {
    let server = Server::new().await;
    let url = server.url.clone();
    let opening = tokio::spawn(async move { RemoteServer::connect(&url, options, http).await });
    (opening, server)
}

/// A server of 2026-07-28, open.
pub(super) async fn modern(capabilities: Value) -> (RemoteServer, Server) {
    let (opening, server) = start().await;
    let probe = server.next().await;
    assert_eq!(probe.body["method"], "server/discover");
    probe.result(discovered(capabilities)).await;
    (soon(opening).await.unwrap().unwrap(), server)
}

/// The result of `server/discover`.
pub(super) fn discovered(capabilities: Value) -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities})
}

/// A server of that revision, open, with a session and without a stream of its own.
pub(super) async fn legacy(revision: &str) -> (RemoteServer, Server) {
    let (remote, server) = quiet_legacy(revision).await;
    let listen = server.next().await;
    assert_eq!(
        (listen.method.as_str(), listen.header("accept")),
        ("GET", Some("text/event-stream"))
    );
    listen.answer("405 Method Not Allowed", &[], "").await;
    (remote, server)
}

/// The same, before its stream is asked for.
pub(super) async fn quiet_legacy(revision: &str) -> (RemoteServer, Server) {
    let (opening, server) = start().await;
    server.next().await.answer("404 Not Found", &[], "").await;
    let hello = server.next().await;
    hello.welcome(revision, Some("s1")).await;
    server.next().await.answer("202 Accepted", &[], "").await;
    (soon(opening).await.unwrap().unwrap(), server)
}

impl Server {
    pub(super) async fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let talk = Arc::new(Mutex::new(Talk::of(Side::Client)));
        Server {
            listener,
            url,
            talk,
        }
    }

    /// The next request.
    pub(super) async fn next(&self) -> Asked {
        soon(self.read()).await
    }

    /// The next request, or none for that long.
    pub(super) async fn next_within(&self, limit: Duration) -> Option<Asked> {
        tokio::time::timeout(limit, self.read()).await.ok()
    }

    async fn read(&self) -> Asked {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                stream.read_buf(&mut bytes).await.unwrap() > 0,
                "a whole head"
            );
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let mut first = lines.next().unwrap().split(' ');
        let (method, path) = (first.next().unwrap(), first.next().unwrap());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().unwrap());
        while bytes.len() < end + length {
            assert!(
                stream.read_buf(&mut bytes).await.unwrap() > 0,
                "a whole body"
            );
        }
        let body = serde_json::from_slice(&bytes[end..]).unwrap_or_default();
        self.check(&headers, &bytes[end..]);
        Asked {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            stream,
            talk: self.talk.clone(),
        }
    }

    fn check(&self, headers: &[(String, String)], body: &[u8]) {
        let mut talk = self.talk.lock().unwrap();
        let mut headers = headers.iter();
        if let Some((_, revision)) = headers.find(|(name, _)| name == "mcp-protocol-version") {
            talk.speaks(revision);
        }
        talk.said(std::str::from_utf8(body).unwrap());
    }
}

impl Asked {
    /// The value of a header that stands once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} stands once");
        value
    }

    /// The names of all headers.
    pub(super) fn names(&self) -> Vec<&str> {
        self.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(super) async fn answer(mut self, status: &str, headers: &[(&str, &str)], body: &str) {
        // What HTTP refuses never was a request of the session, and may come again as it is.
        if !status.starts_with('2') {
            self.talk.lock().unwrap().refused(&self.body["id"]);
        }
        let mut head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let text = format!("{head}\r\n{body}");
        // The client may be gone already, on purpose.
        let _ = self.stream.write_all(text.as_bytes()).await;
    }

    /// JSON with that status.
    pub(super) async fn json(self, status: &str, body: Value) {
        let json = [("content-type", "application/json")];
        self.answer(status, &json, &body.to_string()).await;
    }

    /// The result of the request, as one JSON object.
    pub(super) async fn result(self, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result});
        self.json("200 OK", body).await;
    }

    /// The error of the request, with that status.
    pub(super) async fn error(self, status: &str, code: i64, message: &str, data: Value) {
        let error = json!({"code": code, "message": message, "data": data});
        let body = json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error});
        self.json(status, body).await;
    }

    /// The result of `initialize`.
    pub(super) async fn welcome(self, revision: &str, session: Option<&str>) {
        let abilities = json!({"tools": {"listChanged": true}});
        self.welcomed(revision, session, abilities).await;
    }

    /// The same, with other abilities.
    pub(super) async fn welcome_with(self, revision: &str, session: &str, abilities: Value) {
        self.welcomed(revision, Some(session), abilities).await;
    }

    async fn welcomed(self, revision: &str, session: Option<&str>, abilities: Value) {
        assert_eq!(self.body["method"], "initialize");
        assert_eq!(self.header("mcp-session-id"), None);
        let result = welcome(revision, abilities);
        let body = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result});
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        self.answer("200 OK", &headers, &body.to_string()).await;
    }

    /// Waits until the client closes the connection.
    pub(super) async fn closed(self) {
        closed(self.stream).await;
    }

    /// The answer is a stream of events.
    pub(super) async fn stream(self) -> Told {
        self.stream_with("").await
    }

    /// The same, with more headers.
    pub(super) async fn stream_with(mut self, headers: &str) -> Told {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n{headers}\r\n"
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        Told {
            id: self.body["id"].clone(),
            token: self.body["params"]["_meta"]["progressToken"].clone(),
            stream: self.stream,
            talk: self.talk,
        }
    }
}

/// A stream of events. Dropping it breaks the connection.
pub(super) struct Told {
    pub(super) id: Value,
    /// Progress token of the request.
    pub(super) token: Value,
    stream: TcpStream,
    talk: Arc<Mutex<Talk>>,
}

impl Told {
    /// Sends text as it is.
    pub(super) async fn raw(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        let _ = self.stream.write_all(chunk.as_bytes()).await;
    }

    pub(super) async fn message(&mut self, message: &Value) {
        self.talk.lock().unwrap().heard(&message.to_string());
        self.raw(&format!("event: message\ndata: {message}\n\n"))
            .await;
    }

    /// The reply to the request.
    pub(super) async fn result(&mut self, result: Value) {
        let id = self.id.clone();
        self.message(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    /// Ends the stream as it should end.
    pub(super) async fn end(mut self) {
        self.stream.write_all(b"0\r\n\r\n").await.unwrap();
        let _ = self.stream.shutdown().await;
    }

    /// Waits until the client closes the connection.
    pub(super) async fn closed(self) {
        closed(self.stream).await;
    }
}

async fn closed(mut stream: TcpStream) {
    let mut rest = [0; 64];
    soon(async { while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {} }).await;
}
