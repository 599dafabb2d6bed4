//! A client by hand in each revision, over stdio and HTTP. Every message that it reads is validated.

use super::event_stream::EventStream;
use crate::help::{Modern, Session, answer_of, checked, request};
use crate::stdio::Pipe;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{collections::HashMap, fmt};

/// Opens a client, on the thread that uses it.
pub(super) type Open<'a> = Box<dyn FnOnce() -> RawClient + Send + 'a>;

const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    NEWEST,
];
const NEWEST: &str = "2026-07-28";

/// Items that a client was listed.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
    pub(super) prompts: Vec<Value>,
}

enum Wire {
    Stdio(Box<Pipe>),
    Http(u16, Session),
    HttpOfNewest(u16),
    HttpWithSse(EventStream),
}

/// A client of one revision over one transport.
pub(super) struct RawClient {
    revision: &'static str,
    wire: Wire,
    last_id: u64,
    /// By the name of a tool, its arguments that are repeated in headers, and the names of the headers.
    repeated: HashMap<String, Vec<(String, String)>>,
}

/// One client for each revision, over HTTP to the same gateway.
pub(super) fn over_http<'a>(port: u16) -> Vec<Open<'a>> {
    let open = |revision| -> Open<'a> { Box::new(move || RawClient::over_http(revision, port)) };
    REVISIONS.map(open).into()
}

/// One client for each revision, over stdio to a gateway of its own.
pub(super) fn over_stdio(config: &str) -> Vec<Open<'_>> {
    let open = |revision| -> Open<'_> { Box::new(move || RawClient::over_stdio(revision, config)) };
    REVISIONS.map(open).into()
}

impl RawClient {
    pub(super) fn over_http(revision: &'static str, port: u16) -> RawClient {
        RawClient::open(
            revision,
            match revision {
                NEWEST => Wire::HttpOfNewest(port),
                "2024-11-05" => Wire::HttpWithSse(EventStream::open(port)),
                _ => Wire::Http(port, Session::of(port, revision)),
            },
        )
    }

    fn over_stdio(revision: &'static str, config: &str) -> RawClient {
        RawClient::open(revision, Wire::Stdio(Box::new(Pipe::with(Some(config)))))
    }

    fn open(revision: &'static str, wire: Wire) -> RawClient {
        let mut client = RawClient {
            revision,
            wire,
            last_id: 0,
            repeated: HashMap::new(),
        };
        let has_session = matches!(client.wire, Wire::Http(..) | Wire::HttpOfNewest(_));
        if revision != NEWEST && !has_session {
            client.shake_hands();
        }
        client
    }

    fn shake_hands(&mut self) {
        let hello = json!({"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
        let opened = self.request("initialize", hello).unwrap();
        assert_eq!(
            opened["result"]["protocolVersion"], self.revision,
            "{opened}"
        );
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        match &mut self.wire {
            Wire::Stdio(pipe) => pipe.write(&done),
            Wire::HttpWithSse(stream) => stream.post(&done),
            Wire::Http(..) | Wire::HttpOfNewest(_) => {}
        }
    }

    /// Sends a request and returns the message that answers it.
    ///
    /// # Errors
    /// A message that came is not what the schema of the revision wants.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let (answer, wrong) = self.checked_answer(method, params);
        match wrong.is_empty() {
            true => Ok(answer),
            false => Err(wrong.join("; ")),
        }
    }

    /// The answer to a request, and what is wrong with it and with what came before it.
    fn checked_answer(&mut self, method: &str, params: Value) -> (Value, Vec<String>) {
        self.last_id += 1;
        let id = json!(self.last_id);
        let name = params["name"].as_str().or(params["uri"].as_str());
        let name = name.map(str::to_owned);
        let body = match self.revision {
            NEWEST => Modern::body(&id, method, params),
            _ => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        };
        let name = name.as_deref().map(header_value);
        let repeated = self.repeated_in(&body["params"]);
        let (port, headers) = match &mut self.wire {
            Wire::Stdio(pipe) => return pipe.checked_answer(&body),
            Wire::HttpWithSse(stream) => return stream.checked_answer(&body),
            Wire::Http(port, session) => (*port, session.headers()),
            Wire::HttpOfNewest(port) => {
                let mut headers = Modern::headers(method, name.as_deref());
                headers.extend(repeated);
                (*port, headers)
            }
        };
        let bytes = request(port, "POST", "/mcp", &headers, body.to_string().as_bytes());
        let (answer, wrong) = checked(port, &bytes);
        (answer_of(&answer, &id), Vec::from_iter(wrong))
    }

    /// The headers that repeat arguments of a call (2026-07-28).
    fn repeated_in(&self, params: &Value) -> Vec<String> {
        let tool = params["name"].as_str().unwrap_or_default();
        let repeated = self.repeated.get(tool).into_iter().flatten();
        let line = |(argument, header): &(String, String)| {
            let value = params["arguments"].get(argument)?;
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            Some(format!("Mcp-Param-{header}: {}", header_value(&text)))
        };
        repeated.filter_map(line).collect()
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// A message that came is not valid.
    pub(super) fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Lists everything, page by page, and says what is wrong with the lists.
    pub(super) fn lists(&mut self) -> (Listed, Vec<String>) {
        let mut wrong = Vec::new();
        let listed = Listed {
            tools: self.list("tools/list", "tools", &mut wrong),
            resources: self.list("resources/list", "resources", &mut wrong),
            templates: self.list("resources/templates/list", "resourceTemplates", &mut wrong),
            prompts: self.list("prompts/list", "prompts", &mut wrong),
        };
        for tool in &listed.tools {
            let properties = tool["inputSchema"]["properties"].as_object();
            let marked = properties
                .into_iter()
                .flatten()
                .filter_map(|(name, schema)| {
                    Some((
                        name.clone(),
                        schema.get("x-mcp-header")?.as_str()?.to_owned(),
                    ))
                });
            let name = tool["name"].as_str().unwrap_or_default();
            self.repeated.insert(name.to_owned(), marked.collect());
        }
        (listed, wrong)
    }

    fn list(&mut self, method: &str, member: &str, wrong: &mut Vec<String>) -> Vec<Value> {
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let (answer, found) = self.checked_answer(method, params);
            let found = found.into_iter();
            wrong.extend(found.map(|why| format!("{self}: {method}: {why}")));
            let page = answer["result"][member].as_array();
            items.extend(page.into_iter().flatten().cloned());
            let Some(cursor) = answer["result"].get("nextCursor") else {
                return items;
            };
            params = json!({"cursor": cursor});
        }
    }

    /// Returns whether results of its revision have structured content, and blocks of all kinds.
    pub(super) fn knows_structured(&self) -> bool {
        self.revision >= "2025-06-18"
    }
}

impl fmt::Display for RawClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wire = match self.wire {
            Wire::Stdio(_) => "stdio",
            _ => "HTTP",
        };
        write!(f, "{} over {wire}", self.revision)
    }
}

/// A text as the value of a header: encoded where a header cannot have it (2026-07-28, transports, "Value Encoding").
fn header_value(text: &str) -> String {
    match text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}
