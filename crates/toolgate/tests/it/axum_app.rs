//! The example `axum_app` as a process: an MCP endpoint that is nested in an axum router.
#![cfg(unix)]

use crate::examples::program;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use toolgate::Client;

/// Bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(30);

const KEY: &str = "authorization: Bearer key-of-anna\r\n";

struct App {
    child: Child,
    /// The address of the MCP endpoint.
    url: String,
}

impl App {
    async fn start() -> App {
        #[allow(clippy::disallowed_methods, reason = "the examples are programs")]
        let mut child = Command::new(program("axum_app"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(HANG, lines.next_line()).await;
        let line = line.expect("it starts").unwrap().unwrap();
        let url = line.strip_prefix("serves at ").unwrap().to_owned();
        App { child, url }
    }

    async fn connect(&self, key: &str) -> Result<Client, toolgate::Error> {
        let builder = Client::builder().header("authorization", &format!("Bearer {key}"));
        builder.connect(&self.url).await
    }

    /// Sends a raw request, and returns its connection.
    async fn send(&self, head: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let address = self.url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: {address}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// Asserts that it ends by itself and without an error after SIGTERM.
    async fn stops(mut self) {
        let status = tokio::time::timeout(HANG, self.child.wait());
        let status = status.await.expect("it stops").unwrap();
        assert!(status.success(), "{status}");
    }

    fn terminate(&self) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    }
}

/// Reads lines until one begins with `start`, and returns the rest of that line.
async fn line(stream: &mut BufReader<TcpStream>, start: &str) -> String {
    let found = async {
        loop {
            let mut line = String::new();
            let read = stream.read_line(&mut line).await.unwrap();
            assert!(read > 0, "the stream ended before {start:?}");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim_end().to_owned();
            }
        }
    };
    tokio::time::timeout(HANG, found).await.expect(start)
}

#[tokio::test]
async fn the_middleware_decides_who_calls_a_nested_endpoint() {
    let app = App::start().await;
    let (anna, ben) = (
        app.connect("key-of-anna").await,
        app.connect("key-of-ben").await,
    );
    let note = json!({"text": "rain"});
    let noted = anna.unwrap().call("add", note.clone()).await.unwrap();
    assert_eq!(noted.text(), "anna: rain");
    let noted = ben.unwrap().call("add", note).await.unwrap();
    assert_eq!(noted.text(), "ben: rain");
    assert!(app.connect("a wrong key").await.is_err());
    let mut refused = app
        .send("GET /mcp/sse", "accept: text/event-stream\r\n", "")
        .await;
    assert_eq!(line(&mut refused, "HTTP/1.1 ").await, "401 Unauthorized");
    assert_eq!(line(&mut refused, "www-authenticate: ").await, "Bearer");
    let text = line(&mut refused, "send a valid API key").await;
    assert_eq!(text, " as bearer token");
    // A route of the application shares the state.
    let mut count = app.send("GET /count", "connection: close\r\n", "").await;
    let mut page = String::new();
    count.read_to_string(&mut page).await.unwrap();
    assert!(page.ends_with("\r\n\r\n2"), "{page}");
}

/// A client of 2024-11-05 resolves the announced reference against the URL of the stream, which is nested.
#[tokio::test]
async fn the_oldest_transport_is_served_relative_to_where_it_is_nested() {
    let app = App::start().await;
    let headers = format!("{KEY}accept: text/event-stream\r\n");
    let mut stream = app.send("GET /mcp/sse", &headers, "").await;
    assert_eq!(line(&mut stream, "HTTP/1.1 ").await, "200 OK");
    assert_eq!(line(&mut stream, "event: ").await, "endpoint");
    let reference = line(&mut stream, "data: ").await;
    assert!(reference.starts_with("messages?sessionId="), "{reference}");
    let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let post = format!("POST /mcp/{reference}");
    let mut posted = app.send(&post, KEY, open).await;
    assert_eq!(line(&mut posted, "HTTP/1.1 ").await, "202 Accepted");
    let opened = line(&mut stream, "data: ").await;
    assert!(
        opened.contains(r#""protocolVersion":"2024-11-05""#),
        "{opened}"
    );
    // Our client finds the transport itself.
    let builder = Client::builder()
        .header("authorization", "Bearer key-of-anna")
        .revision("2024-11-05");
    let old = builder.connect(&format!("{}/sse", app.url)).await.unwrap();
    assert_eq!(old.revision(), "2024-11-05");
    let noted = old.call("add", json!({"text": "sun"})).await.unwrap();
    assert_eq!(noted.text(), "anna: sun");
}

/// After SIGTERM a call in flight completes, and a notification stream ends instead of keeping the process.
#[tokio::test]
async fn a_graceful_shutdown_answers_calls_and_ends_streams() {
    let app = App::start().await;
    let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let both = format!("{KEY}accept: application/json, text/event-stream\r\n");
    let mut opened = app.send("POST /mcp", &both, open).await;
    let session = line(&mut opened, "mcp-session-id: ").await;
    let headers = format!("{both}mcp-session-id: {session}\r\n");
    let mut notifications = app.send("GET /mcp", &headers, "").await;
    assert_eq!(line(&mut notifications, "HTTP/1.1 ").await, "200 OK");
    let collect = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"collect","arguments":{},"_meta":{"progressToken":"p"}}}"#;
    let mut call = app.send("POST /mcp", &headers, collect).await;
    let progress = line(&mut call, "data: {").await;
    assert!(progress.contains("collecting"), "{progress}");
    app.terminate();
    let answer = line(&mut call, "data: {").await;
    assert!(
        answer.contains(r#""id":1"#) && answer.contains(r#""text":"0""#),
        "{answer}"
    );
    app.stops().await;
}
