//! A client of plain JSON, in any revision.

use crate::{
    MODERN,
    wire::{Watch, Wire},
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{Caller, edge};

/// A client of plain JSON over a stream in memory, in any revision.
pub struct Peer {
    wire: Wire,
    revision: &'static str,
    abilities: Value,
    opened: Value,
    next: u64,
}

impl Peer {
    /// Opens a server with these abilities: with a handshake, or without one where the revision has none.
    pub async fn open(server: &Arc<edge::Front>, revision: &'static str, abilities: Value) -> Peer {
        Peer::watched(server, revision, abilities, None).await
    }

    /// The same, with somebody who sees every line.
    pub async fn watched(
        server: &Arc<edge::Front>,
        revision: &'static str,
        abilities: Value,
        watch: Option<Watch>,
    ) -> Peer {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        let server = server.clone();
        #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
        tokio::spawn(async move {
            edge::stdio::serve(server, Caller::new("peer"), reader, writer).await
        });
        let mut peer = Peer {
            wire: Wire::new(ours, watch),
            revision,
            abilities,
            opened: Value::Null,
            next: 0,
        };
        if revision != MODERN {
            peer.shake_hands().await;
        }
        peer
    }

    async fn shake_hands(&mut self) {
        let params = json!({"protocolVersion": self.revision, "capabilities": self.abilities,
            "clientInfo": {"name": "testkit", "version": "1"}});
        let opened = self.ask("initialize", params).await;
        let agreed = &opened["result"]["protocolVersion"];
        assert_eq!(agreed, self.revision, "{opened}");
        self.opened = opened["result"].clone();
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    /// What the server said when the session was opened; `null` where the revision has no session.
    pub fn opened(&self) -> &Value {
        &self.opened
    }

    /// Declares other abilities with the requests that follow (2026-07-28).
    pub fn declare(&mut self, abilities: Value) {
        self.abilities = abilities;
    }

    /// Sends a message as it is.
    pub async fn say(&mut self, message: Value) {
        self.wire.send(&message.to_string()).await;
    }

    /// Sends text as it is, whatever it is, without an end of line.
    pub async fn raw(&mut self, text: &str) {
        self.wire.raw(text).await;
    }

    /// The next message of the server.
    pub async fn hear(&mut self) -> Value {
        self.wire.message().await
    }

    /// Sends a request, with what the revision wants in it; its id.
    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        if self.revision == MODERN {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.abilities.clone();
        }
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request and waits for its reply. Only notifications may come before.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "{message}");
        }
    }

    /// The result of a request; an error fails the test.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.ask(method, params).await;
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    /// The error of a request; a result fails the test.
    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.ask(method, params).await;
        assert!(reply.get("result").is_none(), "{method}: {reply}");
        reply["error"].take()
    }

    /// Calls a tool and answers its questions in the way of the revision: `answer` makes a result for a method and its
    /// parameters. The result of the call.
    pub async fn call(
        &mut self,
        name: &str,
        arguments: Value,
        answer: impl Fn(&str, &Value) -> Value,
    ) -> Value {
        let base = json!({"name": name, "arguments": arguments});
        let mut params = base.clone();
        loop {
            let id = self.send("tools/call", params).await;
            let result = self.answered(id, &answer).await;
            if result["resultType"] != "input_required" {
                return result;
            }
            params = base.clone();
            params["requestState"] = result["requestState"].clone();
            let asked = result["inputRequests"].as_object().expect("questions");
            for (key, ask) in asked {
                let method = ask["method"].as_str().expect("a method");
                params["inputResponses"][key] = answer(method, &ask["params"]);
            }
        }
    }

    /// The result of a request, with what the server asks meanwhile answered.
    async fn answered(&mut self, id: u64, answer: impl Fn(&str, &Value) -> Value) -> Value {
        loop {
            let mut message = self.hear().await;
            match message["method"].as_str() {
                None if message["id"] == id => {
                    assert!(message.get("error").is_none(), "{message}");
                    return message["result"].take();
                }
                Some(method) if message.get("id").is_some() => {
                    let result = answer(method, &message["params"]);
                    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    self.say(reply).await;
                }
                _ => {}
            }
        }
    }
}
