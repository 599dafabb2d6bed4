//! A client of plain JSON over a stream in memory, in any revision.

use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use toolgate::{Caller, edge};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(10);
/// All revisions.
pub(crate) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];
pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) struct Peer {
    from: BufReader<ReadHalf<DuplexStream>>,
    to: WriteHalf<DuplexStream>,
    revision: &'static str,
    abilities: Value,
    next: u64,
    opened: Value,
    talk: Talk,
    heard: Vec<Value>,
}

impl Peer {
    /// Opens a session, or none where the revision has none.
    pub(crate) async fn open(
        server: &Arc<edge::Server>,
        revision: &'static str,
        abilities: Value,
    ) -> Peer {
        let (ours, theirs) = duplex(1 << 20);
        let (reader, writer) = split(theirs);
        let server = server.clone();
        #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
        tokio::spawn(
            async move { edge::stdio::serve(server, Caller::new("t"), reader, writer).await },
        );
        let (from, to) = split(ours);
        let mut peer = Peer {
            opened: Value::Null,
            talk: Talk::of(Side::Server),
            heard: Vec::new(),
            from: BufReader::new(from),
            to,
            revision,
            abilities,
            next: 0,
        };
        if revision != MODERN {
            let params = json!({"protocolVersion": revision, "capabilities": peer.abilities,
                "clientInfo": {"name": "t", "version": "1"}});
            let opened = peer.ask("initialize", params).await;
            peer.opened = opened["result"].clone();
            assert_eq!(opened["result"]["protocolVersion"], revision, "{opened}");
            peer.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .await;
        }
        peer
    }

    /// Declares something else from now on.
    pub(crate) fn declare(&mut self, abilities: Value) {
        self.abilities = abilities;
    }

    /// What the server said when the session was opened.
    pub(crate) async fn opened(server: &Arc<edge::Server>, revision: &'static str) -> Value {
        Peer::open(server, revision, json!({})).await.opened
    }

    /// All that the server said.
    pub(crate) fn heard(self) -> Vec<Value> {
        self.heard
    }

    /// Sends text as it is.
    pub(crate) async fn raw(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.talk.heard(&message.to_string());
        self.to
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(HANG, self.from.read_line(&mut line)).await;
        assert!(read.expect("nothing came").unwrap() > 0, "the stream ended");
        self.talk.said(&line);
        let message: Value = serde_json::from_str(&line).unwrap();
        self.heard.push(message.clone());
        message
    }

    /// Sends a request; its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.revision == MODERN {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.abilities.clone();
        }
        let id = self.next;
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request and waits for its reply; what comes before must be a notification.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "{message}");
        }
    }

    /// The result of a request.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.ask(method, params).await;
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    /// The error of a request.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.ask(method, params).await;
        assert!(reply.get("result").is_none(), "{method}: {reply}");
        reply["error"].take()
    }

    /// Calls a tool, and answers its questions as the revision wants it: `answer` makes a result for a method and its
    /// parameters.
    pub(crate) async fn call(
        &mut self,
        name: &str,
        arguments: Value,
        answer: impl Fn(&str, &Value) -> Value,
    ) -> Value {
        let base = json!({"name": name, "arguments": arguments});
        let mut params = base.clone();
        loop {
            let id = self.send("tools/call", params).await;
            let mut reply = loop {
                let message = self.hear().await;
                match message["method"].as_str() {
                    None if message["id"] == id => break message,
                    Some(method) if message.get("id").is_some() => {
                        let result = answer(method, &message["params"]);
                        let id = message["id"].clone();
                        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result}))
                            .await;
                    }
                    _ => {}
                }
            };
            assert!(reply.get("error").is_none(), "{reply}");
            let result = reply["result"].take();
            if result["resultType"] != "input_required" {
                return result;
            }
            params = base.clone();
            params["requestState"] = result["requestState"].clone();
            for (key, ask) in result["inputRequests"].as_object().unwrap() {
                params["inputResponses"][key] =
                    answer(ask["method"].as_str().unwrap(), &ask["params"]);
            }
        }
    }
}
