//! JSON-RPC envelope: requests, notifications and replies.

use crate::json::{Json, JsonKind, JsonView, ObjectWriter};

/// JSON-RPC request id: a string or an integer, repeated byte for byte in the reply.
#[derive(Clone, Debug)]
pub struct Id(Json);

/// Comparison key of a JSON-RPC id: `1` and `1.0` are the same id, `1` and `"1"` are not.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum IdKey {
    /// An integer id.
    Number(i64),
    /// A string id.
    Text(String),
}

impl Id {
    /// Maximum length of a JSON-RPC id, in bytes of JSON text.
    pub const MAX_ID_BYTES: usize = 512;

    /// Reads a JSON-RPC id. Returns `None` for a value other than a string or an integer, and beyond
    /// [`Id::MAX_ID_BYTES`].
    pub fn read(json: &Json) -> Option<Id> {
        Id::from_json(json.clone())
    }

    fn from_json(json: Json) -> Option<Id> {
        let fits = json.as_str().len() <= Id::MAX_ID_BYTES;
        let known = json.kind() == JsonKind::String || json.i64().is_some();
        (fits && known).then_some(Id(json))
    }

    /// Creates a numeric JSON-RPC id, for a request that this program sends.
    pub fn number(n: u64) -> Id {
        Id(Json::from_trusted_text(n.to_string()))
    }

    /// Returns the JSON-RPC id as JSON text.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// Returns the key by which the id is compared with other ids.
    pub fn key(&self) -> IdKey {
        match self.0.i64() {
            Some(n) => IdKey::Number(n),
            None => IdKey::Text(self.0.string().unwrap_or_default()),
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.key() == other.key()
    }
}

/// JSON-RPC error: a code, one short sentence, and data for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC error code; see [`code`].
    pub code: i64,
    /// Message of the JSON-RPC error: one short sentence.
    pub message: String,
    /// Member `data` of the JSON-RPC error: details for programs.
    pub data: Option<Json>,
    /// True if an upstream server returned the error. Its code then does not determine the HTTP status of this
    /// connection. Never written.
    pub relayed: bool,
}

impl RpcError {
    /// Creates a JSON-RPC error without `data`.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError {
            code,
            message: message.into(),
            data: None,
            relayed: false,
        }
    }

    /// Returns the same JSON-RPC error with this `data`.
    pub fn with_data(mut self, data: Json) -> RpcError {
        self.data = Some(data);
        self
    }

    /// Returns the same JSON-RPC error, marked as relayed from an upstream server.
    pub fn into_relayed(mut self) -> RpcError {
        self.relayed = true;
        self
    }

    /// Reads a JSON-RPC error object; `None` if it is invalid.
    pub fn read(json: &Json) -> Option<RpcError> {
        let code = json.get("code")?.i64()?;
        let message = json.get("message")?.string()?;
        Some(RpcError {
            code,
            message,
            data: json.get("data"),
            relayed: false,
        })
    }

    /// Writes the JSON-RPC error object.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.int("code", self.code);
        o.str("message", &self.message);
        if let Some(data) = &self.data {
            o.raw("data", data);
        }
        o.finish()
    }
}

/// JSON-RPC error codes of the base specification and of MCP.
pub mod code {
    /// JSON-RPC error code for text that is not JSON (parse error).
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON-RPC error code for JSON that is not a request (invalid request).
    pub const INVALID_REQUEST: i64 = -32600;
    /// JSON-RPC error code for an unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// JSON-RPC error code for invalid parameters, which include the name of an unknown tool.
    pub const INVALID_PARAMS: i64 = -32602;
    /// JSON-RPC error code for an internal error of the server.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// MCP error code for a resource that does not exist (revisions up to 2025-11-25).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// MCP error code for HTTP headers that disagree with the body (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// MCP error code for a required capability that the client did not declare (2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// MCP error code for an unsupported protocol revision (2026-07-28).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// MCP error code if the client must open the URLs in `data.elicitations` first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// Error code of Toolgate for a caller whose access token lacks scopes. Over HTTP the status is 403 too.
    pub const INSUFFICIENT_SCOPE: i64 = 403;
}

/// JSON-RPC message: a request, a notification or a reply.
#[derive(Clone, Debug)]
pub enum JsonRpcMessage {
    /// JSON-RPC request, which expects a reply.
    Request {
        /// Id of the request, repeated in the reply.
        id: Id,
        /// Method name of the request.
        method: String,
        /// Parameters of the request.
        params: Option<Json>,
    },
    /// JSON-RPC notification, which has no reply.
    Notification {
        /// Method name of the notification.
        method: String,
        /// Parameters of the notification.
        params: Option<Json>,
    },
    /// JSON-RPC reply to a request that this program sent.
    Reply {
        /// Id of the request; absent if the peer could not read it.
        id: Option<Id>,
        /// Result or error of the request.
        answer: Result<Json, RpcError>,
    },
}

/// Error of a JSON value that is not a valid JSON-RPC message.
#[derive(Clone, Debug)]
pub struct MalformedMessage {
    /// Id of the malformed request, if it is valid, so that the error can be returned.
    pub id: Option<Id>,
    /// Reason why the message is malformed, lower case.
    pub reason: &'static str,
    /// True if the value was meant as a reply; replies are never answered.
    pub reply: bool,
    /// True if the value was meant as a notification; notifications are never answered either.
    pub notification: bool,
}

impl MalformedMessage {
    /// Returns true if the peer gets an error response to the malformed message.
    pub fn is_answered(&self) -> bool {
        !self.reply && !self.notification
    }
}

impl JsonRpcMessage {
    /// Reads the JSON-RPC envelope of a message. The values of `params` and `result` stay raw.
    ///
    /// # Errors
    /// Returns [`MalformedMessage`] with the reason, for example a batch, an invalid id, a missing method, or a reply with
    /// both result and error.
    pub fn read(json: &Json) -> Result<JsonRpcMessage, MalformedMessage> {
        if json.kind() != JsonKind::Object {
            return Err(MalformedMessage {
                id: None,
                reason: "a message must be a JSON object; batches are not supported",
                reply: false,
                notification: false,
            });
        }
        let parts = EnvelopeParts::of(json).without_nulls();
        let id = parts.id.as_ref();
        let id = id.and_then(|id| Id::from_json(json.part(id)));
        let reply = parts.method.is_none() && (parts.result.is_some() || parts.error.is_some());
        let wrong = |reason| {
            Err(MalformedMessage {
                id: id.clone(),
                reason,
                reply,
                notification: false,
            })
        };
        let version = parts.version.as_ref().and_then(JsonView::str_cow);
        if version.as_deref() != Some("2.0") {
            return wrong("\"jsonrpc\" must be \"2.0\"");
        }
        if parts.id.is_some() && id.is_none() && parts.error.is_none() {
            return wrong("\"id\" must be a string or an integer of at most 512 bytes");
        }
        match (&parts.method, &parts.result, &parts.error) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                wrong("a message with a \"method\" must not have a \"result\" or an \"error\"")
            }
            (None, Some(_), Some(_)) => {
                wrong("a response must not have both a \"result\" and an \"error\"")
            }
            (None, None, None) => wrong("\"method\" is missing"),
            (Some(method), None, None) => parts.read_request(json, method, id),
            (None, Some(result), None) => match id {
                Some(id) => Ok(JsonRpcMessage::Reply {
                    id: Some(id),
                    answer: Ok(json.part(result)),
                }),
                None => wrong("a response must have the \"id\" of its request"),
            },
            (None, None, Some(error)) => match RpcError::read(&json.part(error)) {
                Some(error) => Ok(JsonRpcMessage::Reply {
                    id,
                    answer: Err(error),
                }),
                None => wrong("\"error\" must have an integer \"code\" and a string \"message\""),
            },
        }
    }
}

#[derive(Default)]
struct EnvelopeParts<'a> {
    version: Option<JsonView<'a>>,
    id: Option<JsonView<'a>>,
    method: Option<JsonView<'a>>,
    params: Option<JsonView<'a>>,
    result: Option<JsonView<'a>>,
    error: Option<JsonView<'a>>,
}

impl<'a> EnvelopeParts<'a> {
    /// Reads the members in one pass; the strict reader has already rejected duplicate keys.
    fn of(json: &'a Json) -> EnvelopeParts<'a> {
        let mut parts = EnvelopeParts::default();
        for (key, value) in json.view().members() {
            let place = match key.as_ref() {
                "jsonrpc" => &mut parts.version,
                "id" => &mut parts.id,
                "method" => &mut parts.method,
                "params" => &mut parts.params,
                "result" => &mut parts.result,
                "error" => &mut parts.error,
                _ => continue,
            };
            *place = Some(value);
        }
        parts
    }

    /// Removes a `null` beside the other of `result` and `error` in a reply: it means absence.
    fn without_nulls(mut self) -> EnvelopeParts<'a> {
        let is_null = |part: &Option<JsonView<'_>>| part.as_ref().is_some_and(JsonView::is_null);
        if self.method.is_none() && self.result.is_some() && self.error.is_some() {
            if is_null(&self.error) {
                self.error = None;
            } else if is_null(&self.result) {
                self.result = None;
            }
        }
        self
    }

    fn read_request(
        &self,
        json: &Json,
        method: &JsonView<'_>,
        id: Option<Id>,
    ) -> Result<JsonRpcMessage, MalformedMessage> {
        let Some(method) = method.str_cow() else {
            return Err(MalformedMessage {
                id,
                reason: "\"method\" must be a string",
                reply: false,
                notification: false,
            });
        };
        // Many clients write omitted parameters as `null`.
        let params = self.params.as_ref().filter(|p| !p.is_null());
        if params.is_some_and(|p| p.kind() != JsonKind::Object) {
            return Err(MalformedMessage {
                notification: id.is_none(),
                id,
                reason: "\"params\" must be an object",
                reply: false,
            });
        }
        let method = method.into_owned();
        let params = params.map(|params| json.part(params));
        Ok(match id {
            Some(id) => JsonRpcMessage::Request { id, method, params },
            None => JsonRpcMessage::Notification { method, params },
        })
    }
}

/// Writes a JSON-RPC request as one line without a line feed.
pub fn request(id: &Id, method: &str, params: Option<&Json>) -> String {
    envelope(json_bytes(params), |o| {
        o.constant_key(r#""id":"#).push_str(id.json().as_str());
        o.str("method", method);
        if let Some(params) = params {
            o.constant_key(r#""params":"#).push_str(params.as_str());
        }
    })
}

/// Writes a JSON-RPC notification as one line without a line feed.
pub fn notification(method: &str, params: Option<&Json>) -> String {
    envelope(json_bytes(params), |o| {
        o.str("method", method);
        if let Some(params) = params {
            o.raw("params", params);
        }
    })
}

/// Writes a JSON-RPC response, a result or an error, as one line without a line feed. Without a readable id the reply
/// has none, as in the schemas since 2025-11-25.
pub fn reply(id: Option<&Id>, answer: &Result<Json, RpcError>) -> String {
    envelope(json_bytes(answer.as_ref().ok()), |o| {
        if let Some(id) = id {
            o.raw("id", id.json());
        }
        match answer {
            Ok(result) => o.raw("result", result),
            Err(error) => o.raw("error", &error.json()),
        }
    })
}

/// Writes a JSON-RPC response in which `fill` writes the members of the result directly into the buffer. `capacity` is
/// their approximate size in bytes.
pub fn reply_with(id: &Id, capacity: usize, fill: impl FnOnce(&mut ObjectWriter)) -> String {
    envelope(capacity, |o| {
        o.constant_key(r#""id":"#).push_str(id.json().as_str());
        o.constant_object(r#""result":"#, fill);
    })
}

fn json_bytes(part: Option<&Json>) -> usize {
    part.map_or(0, |part| part.as_str().len())
}

/// Writes the envelope. `inside` is the approximate size of what `fill` writes, in bytes.
fn envelope(inside: usize, fill: impl FnOnce(&mut ObjectWriter)) -> String {
    let mut o = ObjectWriter::with_capacity(inside + 128);
    o.constant_member(r#""jsonrpc":"2.0""#);
    fill(&mut o);
    one_line(o.text())
}

/// Replaces line feeds with spaces. Strict JSON has raw line ends only between tokens, so no value changes.
fn one_line(text: String) -> String {
    match memchr::memchr2(b'\n', b'\r', text.as_bytes()) {
        Some(_) => text.replace(['\n', '\r'], " "),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonLimits;

    fn read(text: &str) -> Result<JsonRpcMessage, MalformedMessage> {
        JsonRpcMessage::read(&Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap())
    }

    /// Holds: BASE-07
    /// Of the codes that the protocol reserves, the module has only those with a defined meaning.
    ///
    /// Codes of our own lie outside of all that JSON-RPC keeps.
    ///
    /// Holds: BASE-18, BASE-20, BASE-22
    #[test]
    fn no_code_is_made_up() {
        let source = include_str!("message.rs");
        let codes = source.lines().filter_map(|line| {
            let (_, value) = line
                .trim()
                .strip_prefix("pub const ")?
                .split_once(": i64 = ")?;
            value.strip_suffix(';')?.parse::<i64>().ok()
        });
        let (kept, own): (Vec<i64>, Vec<i64>) =
            codes.partition(|code| (-32768..=-32000).contains(code));
        let of_json_rpc = [-32700, -32600, -32601, -32602, -32603];
        let of_protocol = [-32002, -32020, -32021, -32022, -32042];
        assert_eq!(kept, [&of_json_rpc[..], &of_protocol].concat());
        assert_eq!(own, [403]);
    }

    #[test]
    fn an_id_comes_back_byte_for_byte() {
        for text in ["1", "1.0", "\"a\\u0062\"", "-7", "9007199254740993"] {
            let Ok(JsonRpcMessage::Request { id, .. }) =
                read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"x"}}"#))
            else {
                panic!("{text} is a good id")
            };
            assert_eq!(
                reply(Some(&id), &Ok(Json::from_value(&true.into()))),
                format!(r#"{{"jsonrpc":"2.0","id":{text},"result":true}}"#)
            );
        }
    }

    /// Holds: BASE-01, BASE-04, BASE-08, BASE-09, BASE-10
    #[test]
    fn bad_envelopes_say_what_is_wrong() {
        let check = |text: &str, reason: &str| {
            assert!(read(text).unwrap_err().reason.contains(reason), "{text}")
        };
        check("[]", "batches");
        check(r#"{"id":1,"method":"x"}"#, "jsonrpc");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, "id");
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, "id");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, "id");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "method");
        check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "method");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#,
            "params",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            "both",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            "must not have a \"result\"",
        );
        check(r#"{"jsonrpc":"2.0","result":{}}"#, "id");
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}"#, "code");
        let told = read(r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#).unwrap_err();
        assert!(!told.is_answered(), "{told:?}");
        let asked = read(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#).unwrap_err();
        assert!(asked.is_answered(), "{asked:?}");
    }

    #[test]
    fn one_and_one_point_nought_are_the_same_id_but_not_the_text() {
        let id = |t: &str| {
            Id::read(&Json::read(t.as_bytes().to_vec(), &JsonLimits::default()).unwrap()).unwrap()
        };
        assert_eq!(id("1"), id("1.0"));
        assert_ne!(id("1"), id("\"1\""));
    }
}
