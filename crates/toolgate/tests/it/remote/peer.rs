//! The other end of the stream.

use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{future::Future, time::Duration};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
    },
    task::JoinHandle,
};
use toolgate::{
    Call, Caller, ItemKind, Json, List, Origin,
    client::{OpenError, Remote, RemoteOptions},
};
use toolgate_wire::json::Limits;

/// A server that says what the test says.
pub(crate) struct Peer {
    from: BufReader<ReadHalf<DuplexStream>>,
    to: WriteHalf<DuplexStream>,
    talk: Talk,
}

pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::new(Origin {
        server: "files".into(),
        trusted: false,
    })
}

pub(crate) type Opening = JoinHandle<Result<Remote, OpenError>>;

/// Starts to open a server.
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
pub(crate) fn start(options: RemoteOptions) -> (Opening, Peer) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let (from, to) = tokio::io::split(theirs);
    (
        tokio::spawn(Remote::open(reader, writer, options)),
        Peer {
            from: BufReader::new(from),
            to,
            talk: Talk::of(Side::Client),
        },
    )
}

/// A modern server, open.
pub(crate) async fn modern(capabilities: Value) -> (Remote, Peer) {
    let (opening, mut peer) = start(options());
    let probe = peer.read().await;
    peer.reply(&probe, json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities})).await;
    (opening.await.unwrap().unwrap(), peer)
}

/// A legacy server, open.
pub(crate) async fn legacy(capabilities: Value) -> (Remote, Peer) {
    legacy_with(capabilities, options()).await
}

pub(crate) async fn legacy_with(capabilities: Value, mut options: RemoteOptions) -> (Remote, Peer) {
    options.probe = false;
    let (opening, mut peer) = start(options);
    let hello = peer.read().await;
    peer.reply(&hello, welcome("2025-11-25", capabilities))
        .await;
    let remote = opening.await.unwrap().unwrap();
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    (remote, peer)
}

/// The result of `initialize`.
pub(crate) fn welcome(revision: &str, capabilities: Value) -> Value {
    json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}})
}

/// A definition.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// What ends within ten minutes, or fails; with the clock of the tests that costs no time.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(600);
    tokio::time::timeout(limit, work).await.expect("it ends")
}

pub(crate) fn all() -> List {
    List::all(Caller::new("test"), ItemKind::Tool)
}

pub(crate) fn call(name: &str, arguments: &str) -> Call {
    let arguments = Json::read(arguments.as_bytes().to_vec(), &Limits::default()).unwrap();
    Call::tool("c1", Caller::new("test"), name, arguments)
}

impl Peer {
    /// A peer on a stream.
    pub(crate) fn over(stream: DuplexStream) -> Peer {
        let (from, to) = tokio::io::split(stream);
        Peer {
            from: BufReader::new(from),
            to,
            talk: Talk::of(Side::Client),
        }
    }

    /// The next line of the client.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.from.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(600), read)
            .await
            .expect("the client says something")
            .unwrap();
        self.talk.said(&line);
        line
    }

    /// The next message of the client.
    pub(crate) async fn read(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// All that the client says until it closes the stream.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        let read = self.from.read_to_string(&mut rest);
        let read = tokio::time::timeout(Duration::from_secs(600), read).await;
        read.expect("the client closes").unwrap();
        rest
    }

    /// Whether the client says nothing for ten seconds.
    pub(crate) async fn is_left_alone(&mut self) -> bool {
        let mut line = String::new();
        tokio::time::timeout(Duration::from_secs(10), self.from.read_line(&mut line))
            .await
            .is_err()
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.talk.heard(line);
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
            .await;
    }

    pub(crate) async fn reply(&mut self, to: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result}).to_string())
            .await;
    }

    pub(crate) async fn refuse(&mut self, to: &Value, code: i64, message: &str, data: Value) {
        let error = json!({"code": code, "message": message, "data": data});
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "error": error}).to_string())
            .await;
    }
}
