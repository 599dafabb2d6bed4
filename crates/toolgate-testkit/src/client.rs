//! MCP client of plain JSON, in any revision.

use crate::{
    NEWEST_REVISION,
    line_stream::{LineObserver, LineStream},
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{Caller, edge};

/// MCP client of plain JSON over an in-memory stream, in any revision.
pub struct TestClient {
    wire: LineStream,
    revision: &'static str,
    capabilities: Value,
    opened: Value,
    next: u64,
}

impl TestClient {
    /// Connects to a server with these client capabilities, with a handshake if the revision has one.
    pub async fn open(
        server: &Arc<edge::ProtocolServer>,
        revision: &'static str,
        abilities: Value,
    ) -> TestClient {
        TestClient::watched(server, revision, abilities, None).await
    }

    /// Connects like [`TestClient::open`], and passes every line to `watch`.
    pub async fn watched(
        server: &Arc<edge::ProtocolServer>,
        revision: &'static str,
        abilities: Value,
        watch: Option<LineObserver>,
    ) -> TestClient {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        let server = server.clone();
        #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
        tokio::spawn(async move {
            edge::stdio::serve(server, Caller::new("peer"), reader, writer).await
        });
        let mut peer = TestClient {
            wire: LineStream::new(ours, watch),
            revision,
            capabilities: abilities,
            opened: Value::Null,
            next: 0,
        };
        if revision != NEWEST_REVISION {
            peer.initialize().await;
        }
        peer
    }

    async fn initialize(&mut self) {
        let params = json!({"protocolVersion": self.revision, "capabilities": self.capabilities,
            "clientInfo": {"name": "testkit", "version": "1"}});
        let opened = self.request("initialize", params).await;
        let agreed = &opened["result"]["protocolVersion"];
        assert_eq!(agreed, self.revision, "{opened}");
        self.opened = opened["result"].clone();
        self.send_message(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    /// Returns the server's `initialize` result; `null` if the revision has no handshake.
    pub fn initialize_result(&self) -> &Value {
        &self.opened
    }

    /// Declares other client capabilities with the requests that follow (2026-07-28).
    pub fn declare(&mut self, abilities: Value) {
        self.capabilities = abilities;
    }

    /// Sends a message unchanged.
    pub async fn send_message(&mut self, message: Value) {
        self.wire.send(&message.to_string()).await;
    }

    /// Sends text unchanged, even if invalid, without a line ending.
    pub async fn send_raw(&mut self, text: &str) {
        self.wire.raw(text).await;
    }

    /// Receives the next message of the server.
    pub async fn receive(&mut self) -> Value {
        self.wire.message().await
    }

    /// Sends a request with the `_meta` members that the revision requires. Returns its id.
    pub async fn send_request(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        if self.revision == NEWEST_REVISION {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(NEWEST_REVISION);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        self.send_message(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request and waits for its response. Only notifications may come before it.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "{message}");
        }
    }

    /// Sends a request and returns its result; an error fails the test.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.request(method, params).await;
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    /// Sends a request and returns its error; a result fails the test.
    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.request(method, params).await;
        assert!(reply.get("result").is_none(), "{method}: {reply}");
        reply["error"].take()
    }

    /// Calls a tool and answers its input requests as the revision requires. `answer` returns the result for a method
    /// and its parameters. Returns the result of the call.
    pub async fn call(
        &mut self,
        name: &str,
        arguments: Value,
        answer: impl Fn(&str, &Value) -> Value,
    ) -> Value {
        let base = json!({"name": name, "arguments": arguments});
        let mut params = base.clone();
        loop {
            let id = self.send_request("tools/call", params).await;
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

    /// Returns the result of a request, and answers requests that the server sends meanwhile.
    async fn answered(&mut self, id: u64, answer: impl Fn(&str, &Value) -> Value) -> Value {
        loop {
            let mut message = self.receive().await;
            match message["method"].as_str() {
                None if message["id"] == id => {
                    assert!(message.get("error").is_none(), "{message}");
                    return message["result"].take();
                }
                Some(method) if message.get("id").is_some() => {
                    let result = answer(method, &message["params"]);
                    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    self.send_message(reply).await;
                }
                _ => {}
            }
        }
    }
}
