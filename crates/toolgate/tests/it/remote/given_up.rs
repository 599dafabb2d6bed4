//! A call that nobody waits for any more: what its server hears of the reason, and what the record has of it.

use super::peer::{Peer, legacy, tool};
use crate::serve::server;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use toolgate::{
    Caller,
    edge::{ProtocolServer, stdio},
};
use toolgate_policy::{AuditRecorder, PerServer, Policy};

const LONG: Duration = Duration::from_secs(60);

/// A caller of a gateway over stdio, before a server of 2025-11-25 that never answers a call.
struct Scene {
    caller: DuplexStream,
    front: Arc<ProtocolServer>,
    peer: Peer,
    /// The id of the call at the server.
    request: Value,
    folder: std::path::PathBuf,
    _output: DuplexStream,
}

/// The server has so long.
async fn scene(time: Duration) -> Scene {
    let folder = std::env::temp_dir().join(toolgate::ids::short_id("toolgate-test"));
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let mut standard = Policy::default();
    standard.recorder = Arc::new(AuditRecorder::in_folder(&folder).unwrap());
    standard.deadline.idle = PerServer::all(time);
    let front = server(Arc::new(standard.over(Arc::new(remote))));
    let (mut caller, input) = duplex(1 << 16);
    let (to, output) = duplex(1 << 16);
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    tokio::spawn(stdio::serve(front.clone(), Caller::new("test"), input, to));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
    say(&mut caller, &hello).await;
    say(&mut caller, &call).await;
    let list = peer.read().await;
    assert_eq!(list["method"], "tools/list");
    peer.reply(&list, json!({"tools": [tool("slow")]})).await;
    let request = peer.read().await;
    assert_eq!(request["method"], "tools/call");
    Scene {
        caller,
        front,
        peer,
        request: request["id"].clone(),
        folder,
        _output: output,
    }
}

async fn say(to: &mut (impl AsyncWriteExt + Unpin), message: &Value) {
    let line = format!("{message}\n");
    to.write_all(line.as_bytes()).await.unwrap();
}

impl Scene {
    /// The reason that the server hears, and who cancelled and why by the record.
    async fn ended(mut self) -> (String, Value, Value) {
        let cancel = self.peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled", "{cancel}");
        assert_eq!(cancel["params"]["requestId"], self.request);
        let reason = cancel["params"]["reason"].as_str().unwrap().to_owned();
        // What is recorded of a call that is dropped is written by another thread.
        let end = loop {
            match end_of(&self.folder) {
                Some(end) => break end,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        std::fs::remove_dir_all(&self.folder).unwrap();
        (reason, end["cancel"].clone(), end["cancel_reason"].clone())
    }
}

fn end_of(folder: &Path) -> Option<Value> {
    let mut files = vec![folder.to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        let found = whole.into_iter().find(|r: &Value| r["ev"] == "call.end");
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The server never reads what the caller wrote; the record has it, without controls and secrets.
///
/// Holds: CANC-11
#[tokio::test]
async fn a_cancel_of_the_caller_is_told_and_recorded_with_its_reason() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let long = "x".repeat(1025);
    for (given, kept) in [
        (json!("changed my mind"), json!("changed my mind")),
        (
            json!(format!("a\u{202e}b\u{1b}[31m {secret}")),
            json!("ab [redacted:github-token]"),
        ),
        (json!("x".repeat(1024)), json!("x".repeat(1024))),
        (json!(long), json!("[omitted: 1025 bytes]")),
        (json!(null), json!(null)),
        (json!({"no": "text"}), json!(null)),
    ] {
        let mut scene = scene(LONG).await;
        let mut params = json!({"requestId": 1});
        if !given.is_null() {
            params["reason"] = given;
        }
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        say(&mut scene.caller, &cancel).await;
        let (told, by, reason) = scene.ended().await;
        assert_eq!(told, "the caller cancelled the call");
        assert_eq!((by, reason), (json!("caller"), kept));
    }
}

/// Holds: CANC-11
#[tokio::test]
async fn a_call_that_ends_by_itself_says_why() {
    let mut gone = scene(LONG).await;
    gone.caller.shutdown().await.unwrap();
    let told = gone.ended().await;
    let expected = (
        "the caller disconnected".to_owned(),
        json!("link"),
        json!(null),
    );
    assert_eq!(told, expected);

    let mut stops = scene(LONG).await;
    stops.front.close();
    stops.caller.shutdown().await.unwrap();
    let told = stops.ended().await;
    let expected = (
        "the client is shutting down".to_owned(),
        json!("stop"),
        json!(null),
    );
    assert_eq!(told, expected);

    let late = scene(Duration::from_millis(100)).await;
    let (told, by, _) = late.ended().await;
    // Nobody cancelled it: its record says `timeout`.
    assert_eq!((told.as_str(), by), ("the call timed out", json!(null)));
}
