//! Scripted MCP server.

use crate::line_stream::{LineObserver, LineStream};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::DuplexStream;

/// MCP server that a test controls message by message, to test clients.
///
/// ```
/// # use serde_json::json;
/// # use toolgate::{client::{RemoteServer, RemoteOptions}, core::Origin};
/// # use toolgate_testkit::ScriptedServer;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let (mut server, stream) = ScriptedServer::pair();
/// let (reader, writer) = tokio::io::split(stream);
/// let origin = Origin { server: "s".into(), trusted: false };
/// let opening = RemoteServer::open(reader, writer, RemoteOptions::new(origin));
/// let (opened, ()) = tokio::join!(opening, server.answers_discover(json!({})));
/// assert_eq!(opened.unwrap().status().revision, "2026-07-28");
/// # });
/// ```
pub struct ScriptedServer(LineStream);

impl ScriptedServer {
    /// Creates a server, and the stream for the client.
    pub fn pair() -> (ScriptedServer, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        (ScriptedServer::over(ours, None), theirs)
    }

    /// Creates a server on a stream, and passes every line to `watch`.
    pub fn over(stream: DuplexStream, watch: Option<LineObserver>) -> ScriptedServer {
        ScriptedServer(LineStream::new(stream, watch))
    }

    /// Receives the next line of the client; `None` if it closed the stream.
    pub async fn read_line(&mut self) -> Option<String> {
        self.0.next().await
    }

    /// Receives the next message of the client.
    pub async fn read(&mut self) -> Value {
        self.0.message().await
    }

    /// Receives the next message of the client, which must be a request of this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Returns whether the client sends nothing for this long.
    pub async fn receives_nothing(&mut self, time: Duration) -> bool {
        self.0.is_silent(time).await
    }

    /// Sends a line unchanged, even if invalid.
    pub async fn send(&mut self, line: &str) {
        self.0.send(line).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(&told.to_string()).await;
    }

    /// Sends the result of a request.
    pub async fn reply(&mut self, to: &Value, result: Value) {
        let reply = json!({"jsonrpc": "2.0", "id": to["id"], "result": result});
        self.send(&reply.to_string()).await;
    }

    /// Sends an error in response to a request.
    pub async fn reply_error(&mut self, to: &Value, code: i64, message: &str, data: Value) {
        let error = json!({"code": code, "message": message, "data": data});
        let reply = json!({"jsonrpc": "2.0", "id": to["id"], "error": error});
        self.send(&reply.to_string()).await;
    }

    /// Answers `server/discover` as a server of revision 2026-07-28 with these capabilities.
    pub async fn answers_discover(&mut self, capabilities: Value) {
        let probe = self.expect("server/discover").await;
        let about = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"});
        self.reply(&probe, about).await;
    }

    /// Answers `initialize` with a revision and capabilities, and receives `notifications/initialized`.
    pub async fn answers_initialize(&mut self, revision: &str, capabilities: Value) {
        let hello = self.expect("initialize").await;
        let welcome = json!({"protocolVersion": revision, "capabilities": capabilities,
            "serverInfo": {"name": "scripted", "version": "1"}});
        self.reply(&hello, welcome).await;
        self.expect("notifications/initialized").await;
    }
}
