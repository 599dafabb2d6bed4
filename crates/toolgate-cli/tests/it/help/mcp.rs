//! MCP over HTTP by hand, in both eras.

use super::{Response, raw, request, send};
use serde_json::{Value, json};

const ACCEPT: &str = "Accept: application/json, text/event-stream";
const JSON: &str = "Content-Type: application/json";

/// The message with this id in an answer, be it JSON or a stream of events.
pub(crate) fn message_of(response: &Response, id: &Value) -> Option<Value> {
    let events = response
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data:"));
    let texts = events.chain([response.body.as_str()]);
    texts
        .filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok())
        .find(|message| message.get("id") == Some(id) && message.get("method").is_none())
}

/// The same, where it must be there.
#[track_caller]
pub(crate) fn answer_of(response: &Response, id: &Value) -> Value {
    message_of(response, id).unwrap_or_else(|| panic!("no answer to {id} in {response:?}"))
}

/// Requests of 2026-07-28.
pub(crate) struct Modern;

impl Modern {
    /// The body of a request.
    pub(crate) fn body(id: &Value, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "by-hand", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// The headers that go with it.
    pub(crate) fn headers(method: &str, name: Option<&str>) -> Vec<String> {
        let mut lines: Vec<String> = [ACCEPT, JSON, "MCP-Protocol-Version: 2026-07-28"]
            .map(str::to_owned)
            .into();
        lines.push(format!("Mcp-Method: {method}"));
        lines.extend(name.map(|name| format!("Mcp-Name: {name}")));
        lines
    }

    /// Sends such a body, which may say more than usual, and reads its answer to the end.
    #[track_caller]
    pub(crate) fn ask(port: u16, name: Option<&str>, body: &Value) -> Value {
        let method = body["method"].as_str().unwrap_or_default();
        let headers = Modern::headers(method, name);
        let answer = send(port, "POST", "/mcp", &headers, body.to_string().as_bytes());
        answer_of(&answer, &body["id"])
    }

    /// The bytes of a call.
    pub(crate) fn request(port: u16, id: &Value, tool: &str, arguments: Value) -> Vec<u8> {
        let body = Modern::body(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let headers = Modern::headers("tools/call", Some(tool));
        request(port, "POST", "/mcp", &headers, body.to_string().as_bytes())
    }

    /// Calls a tool and reads the answer to its end.
    #[track_caller]
    pub(crate) fn call(port: u16, id: &Value, tool: &str, arguments: Value) -> Response {
        raw(port, &Modern::request(port, id, tool, arguments))
    }
}

/// A session of 2025-11-25, or of another revision with sessions.
pub(crate) struct Session {
    port: u16,
    revision: &'static str,
    id: String,
}

impl Session {
    pub(crate) fn open(port: u16) -> Session {
        Session::of(port, "2025-11-25")
    }

    /// The same session at another gateway.
    pub(crate) fn at(&self, port: u16) -> Session {
        Session {
            port,
            revision: self.revision,
            id: self.id.clone(),
        }
    }

    /// Returns the result of `initialize`.
    pub(crate) fn greeting(port: u16) -> Value {
        let (_, answer) = Session::opened(port, "2025-11-25");
        answer_of(&answer, &json!(0))["result"].clone()
    }

    pub(crate) fn of(port: u16, revision: &'static str) -> Session {
        Session::opened(port, revision).0
    }

    fn opened(port: u16, revision: &'static str) -> (Session, Response) {
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let lines = [ACCEPT, JSON].map(str::to_owned);
        let response = send(port, "POST", "/mcp", &lines, body.to_string().as_bytes());
        assert_eq!(response.status, 200, "{response:?}");
        let id = response
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let session = Session { port, revision, id };
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (session, response)
    }

    /// The headers of its requests.
    pub(crate) fn headers(&self) -> Vec<String> {
        let mut lines: Vec<String> = [ACCEPT, JSON].map(str::to_owned).into();
        // The header is younger than 2025-03-26.
        if self.revision != "2025-03-26" {
            lines.push(format!("MCP-Protocol-Version: {}", self.revision));
        }
        lines.push(format!("Mcp-Session-Id: {}", self.id));
        lines
    }

    pub(crate) fn post(&self, body: &Value) -> Response {
        send(
            self.port,
            "POST",
            "/mcp",
            &self.headers(),
            body.to_string().as_bytes(),
        )
    }

    pub(crate) fn call(&self, id: &Value, tool: &str, arguments: Value) -> Response {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }
}
