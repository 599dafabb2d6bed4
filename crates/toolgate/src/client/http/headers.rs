//! HTTP headers of a message, which repeat parts of its body.

use super::super::transport::{MirroredHeaders, OutgoingRequest};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use toolgate_protocol::{
    json::{Json, JsonLimits, ObjectWriter},
    message::JsonRpcMessage,
    method::{meta, tasks},
};

/// Protocol revision.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Session id.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Id of the last event received.
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Prefix and suffix of a Base64 value.
const BASE64_MARKERS: (&str, &str) = ("=?base64?", "?=");

/// Adds the headers of every POST.
pub(super) fn add_post_headers(headers: &mut HeaderMap) {
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
}

/// Adds the headers of every GET for a stream.
pub(super) fn add_stream_headers(headers: &mut HeaderMap) {
    let events = HeaderValue::from_static("text/event-stream");
    headers.insert(header::ACCEPT, events);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Adds the headers of a stateless request. Returns false for a request of a legacy revision.
pub(super) fn add_stateless_headers(
    headers: &mut HeaderMap,
    request: &OutgoingRequest<'_>,
) -> bool {
    let named = name_parameter(request.method);
    if let Some((version, name)) = &request.mirrored.revision_and_name {
        headers.insert(VERSION, HeaderValue::from_static(version));
        headers.insert(METHOD, encode_value(request.method));
        if named.is_some() {
            headers.insert(NAME, encode_value(name));
        }
    } else {
        let version = meta::get(Some(&request.params), meta::VERSION).and_then(|v| v.string());
        let Some(version) = version else {
            return false;
        };
        headers.insert(VERSION, encode_value(&version));
        headers.insert(METHOD, encode_value(request.method));
        if let Some(name) = named.and_then(|key| request.params.get(key)?.string()) {
            headers.insert(NAME, encode_value(&name));
        }
    }
    headers.extend(request.mirrored.arguments.iter().cloned());
    true
}

/// Adds the same headers for a serialized request.
pub(super) fn add_headers_of_line(headers: &mut HeaderMap, line: &str) {
    let read = Json::read(line.as_bytes().to_vec(), &JsonLimits::default());
    let message = read.ok().and_then(|json| JsonRpcMessage::read(&json).ok());
    if let Some(JsonRpcMessage::Request { id, method, params }) = message {
        let request = OutgoingRequest {
            id: &id,
            method: &method,
            params: params.unwrap_or_else(|| ObjectWriter::new().finish()),
            mirrored: &MirroredHeaders::default(),
        };
        add_stateless_headers(headers, &request);
    }
}

/// Returns the method and the item name of a request.
pub(super) fn request_purpose(request: &OutgoingRequest<'_>) -> String {
    let name = name_parameter(request.method).and_then(|key| request.params.get(key)?.string());
    match name {
        Some(name) => format!("{} {name}", request.method),
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

/// Encodes a text as a header value: unchanged where that is safe, else as marked Base64.
pub(in super::super) fn encode_value(text: &str) -> HeaderValue {
    let plain = Some(text).filter(|text| is_plain(text));
    let plain = plain.and_then(|text| HeaderValue::from_str(text).ok());
    plain.unwrap_or_else(|| {
        let coded = format!(
            "{}{}{}",
            BASE64_MARKERS.0,
            STANDARD.encode(text),
            BASE64_MARKERS.1
        );
        HeaderValue::from_str(&coded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_plain(text: &str) -> bool {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    // A reader that ignores the case of the markers would decode a value that only resembles them.
    let marked = text
        .get(..BASE64_MARKERS.0.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(BASE64_MARKERS.0));
    printable && !marked && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: HTTPM-25, HTTPM-29.
    #[test]
    fn a_value_that_is_not_plain_is_base64() {
        let check = |text: &str, expected: &str| {
            assert_eq!(encode_value(text).to_str().unwrap(), expected, "{text:?}");
        };
        check("read_file", "read_file");
        check("a b, c: ~", "a b, c: ~");
        check("", "");
        check("=?base64", "=?base64");
        check(" a", "=?base64?IGE=?=");
        check("a ", "=?base64?YSA=?=");
        check("a\tb", "=?base64?YQli?=");
        check("a\r\nb", "=?base64?YQ0KYg==?=");
        check("é", "=?base64?w6k=?=");
        check("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
        check("=?BASE64?YQ==?=", "=?base64?PT9CQVNFNjQ/WVE9PT89?=");
    }
}
