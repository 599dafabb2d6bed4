//! The other end of the stream.

use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{
    future::Future,
    ops::{Deref, DerefMut},
    time::Duration,
};
use tokio::{io::DuplexStream, task::JoinHandle};
use toolgate::{
    Call, Caller, Json,
    client::{OpenError, RemoteOptions, RemoteServer},
    core::{ItemKind, ListRequest, Origin},
};
use toolgate_protocol::json::JsonLimits;
use toolgate_testkit::{self as kit, ScriptedServer};

/// The server of the testkit, with every line of the client checked against the official schemas.
pub(crate) struct Peer(ScriptedServer);

pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::new(Origin {
        server: "files".into(),
        trusted: false,
    })
}

pub(crate) type Opening = JoinHandle<Result<RemoteServer, OpenError>>;

/// Starts to open a server.
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
pub(crate) fn start(options: RemoteOptions) -> (Opening, Peer) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    (
        tokio::spawn(RemoteServer::open(reader, writer, options)),
        Peer::over(theirs),
    )
}

/// A modern server, open.
pub(crate) async fn modern(capabilities: Value) -> (RemoteServer, Peer) {
    let (opening, mut peer) = start(options());
    let probe = peer.read().await;
    peer.reply(&probe, json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities})).await;
    (opening.await.unwrap().unwrap(), peer)
}

/// A legacy server, open.
pub(crate) async fn legacy(capabilities: Value) -> (RemoteServer, Peer) {
    legacy_with(capabilities, options()).await
}

pub(crate) async fn legacy_with(
    capabilities: Value,
    options: RemoteOptions,
) -> (RemoteServer, Peer) {
    legacy_of("2025-11-25", capabilities, options).await
}

/// The same, of that revision.
pub(crate) async fn legacy_of(
    revision: &str,
    capabilities: Value,
    mut options: RemoteOptions,
) -> (RemoteServer, Peer) {
    options.probe = false;
    let (opening, mut peer) = start(options);
    let hello = peer.read().await;
    peer.reply(&hello, welcome(revision, capabilities)).await;
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

/// Waits at most ten minutes of the paused test clock, which takes no real time.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(600);
    tokio::time::timeout(limit, work).await.expect("it ends")
}

pub(crate) fn all() -> ListRequest {
    ListRequest::all(Caller::new("test"), ItemKind::Tool)
}

pub(crate) fn call(name: &str, arguments: &str) -> Call {
    let arguments = Json::read(arguments.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
    Call::tool("c1", Caller::new("test"), name, arguments)
}

impl Peer {
    /// A peer on a stream.
    pub(crate) fn over(stream: DuplexStream) -> Peer {
        let mut talk = Talk::of(Side::Client);
        let watch = move |side: kit::StreamSide, line: &str| match side {
            kit::StreamSide::Testing => talk.heard(line),
            kit::StreamSide::Tested => talk.said(line),
        };
        Peer(ScriptedServer::over(stream, Some(Box::new(watch))))
    }

    /// The next line of the client; empty when it closed its end.
    pub(crate) async fn line(&mut self) -> String {
        self.0.read_line().await.unwrap_or_default()
    }

    /// All that the client says until it closes the stream.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        while let Some(line) = self.0.read_line().await {
            rest.push_str(&line);
            rest.push('\n');
        }
        rest
    }

    /// Returns whether the client sends nothing for ten seconds.
    pub(crate) async fn is_left_alone(&mut self) -> bool {
        self.0.receives_nothing(Duration::from_secs(10)).await
    }
}

impl Deref for Peer {
    type Target = ScriptedServer;

    fn deref(&self) -> &ScriptedServer {
        &self.0
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut ScriptedServer {
        &mut self.0
    }
}
