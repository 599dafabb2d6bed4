//! HTTP headers of a message, which repeat parts of its body.

use super::super::transport::{MirroredHeaders, OutgoingRequest};
use crate::header_value::encode_value;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::borrow::Cow;
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonLimits, ObjectWriter},
    message::JsonRpcMessage,
    method::{meta, tasks, tools_call},
};

/// Protocol revision.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Session id.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Id of the last event received.
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Number of headers that the protocol adds to a request.
const PROTOCOL_HEADERS: usize = 6;

/// Returns the configured headers and those of every POST, with room for the other headers of the protocol.
pub(super) fn of_post(configured: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(configured.len() + PROTOCOL_HEADERS);
    if !configured.is_empty() {
        headers.extend(configured.clone());
    }
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers
}

/// Adds the headers of every GET for a stream.
pub(super) fn add_stream_headers(headers: &mut HeaderMap) {
    let events = HeaderValue::from_static("text/event-stream");
    headers.insert(header::ACCEPT, events);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Returns the revision of a stateless request; `None` for a request of a session.
pub(super) fn stateless_revision(request: &OutgoingRequest<'_>) -> Option<&'static Dialect> {
    if let Some((dialect, _)) = &request.mirrored.revision_and_name {
        return Some(dialect);
    }
    let version = meta::get(Some(&request.params), meta::VERSION)?;
    dialect::find(&version.str_cow()?)
}

/// Adds the headers that repeat parts of a request.
pub(super) fn add_mirrored_headers(
    headers: &mut HeaderMap,
    request: &OutgoingRequest<'_>,
    dialect: &Dialect,
) {
    headers.insert(VERSION, HeaderValue::from_static(dialect.revision));
    headers.insert(METHOD, method_value(request.method));
    if let Some(key) = name_parameter(request.method) {
        let name = match &request.mirrored.revision_and_name {
            Some((_, name)) => Some(encode_value(name)),
            None => request
                .params
                .get(key)
                .and_then(|name| name.string())
                .map(|name| encode_value(&name)),
        };
        name.map(|name| headers.insert(NAME, name));
    }
    headers.extend(request.mirrored.arguments.iter().cloned());
}

/// Returns the value of `Mcp-Method`. That of a tool call is the most frequent one, and needs no copy.
fn method_value(method: &str) -> HeaderValue {
    match method {
        tools_call::NAME => HeaderValue::from_static(tools_call::NAME),
        _ => encode_value(method),
    }
}

/// Adds the same headers for a serialized request.
pub(super) fn add_headers_of_line(headers: &mut HeaderMap, line: &str, dialect: &Dialect) {
    let read = Json::read(line.as_bytes().to_vec(), &JsonLimits::default());
    let message = read.ok().and_then(|json| JsonRpcMessage::read(&json).ok());
    if let Some(JsonRpcMessage::Request { id, method, params }) = message {
        let request = OutgoingRequest {
            id: &id,
            method: &method,
            params: params.unwrap_or_else(|| ObjectWriter::new().finish()),
            mirrored: &MirroredHeaders::default(),
        };
        add_mirrored_headers(headers, &request, dialect);
    }
}

/// Returns the method and the item name of a request.
pub(super) fn request_purpose(request: &OutgoingRequest<'_>) -> String {
    let name = match (
        name_parameter(request.method),
        &request.mirrored.revision_and_name,
    ) {
        (None, _) => None,
        (Some(_), Some((_, name))) => Some(Cow::Borrowed(name.as_str())),
        (Some(key), None) => {
            let name = request.params.get(key).and_then(|name| name.string());
            name.map(Cow::Owned)
        }
    };
    match name {
        Some(name) => [request.method, " ", &name].concat(),
        None => request.method.to_owned(),
    }
}

/// Returns the parameter that the `Mcp-Name` header repeats.
fn name_parameter(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        tasks::GET | tasks::UPDATE | tasks::CANCEL => Some("taskId"),
        _ => None,
    }
}
