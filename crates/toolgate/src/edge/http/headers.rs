//! Protocol headers that repeat parts of the body, and the checks that both agree.

use crate::param_headers::{SAFE_RANGE, is_safe};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, JsonKind, JsonLimits},
    message::{JsonRpcMessage, RpcError, code},
    method::{meta::RequestMeta, tasks, trace::TraceContext},
};

/// Header with the protocol version of a request.
pub(crate) const VERSION: &str = "mcp-protocol-version";
/// Header with the session id of a request.
pub(crate) const SESSION: &str = "mcp-session-id";
/// Header with the last event that a client received before it lost the stream.
pub(crate) const LAST_EVENT: &str = "last-event-id";
/// Header that repeats the method.
pub(crate) const METHOD: &str = "mcp-method";
/// Header that repeats the name, URI or task id of a request.
pub(crate) const NAME: &str = "mcp-name";
/// Header with the trace context of the HTTP request (W3C Trace Context).
const TRACE_PARENT: &str = "traceparent";
/// Prefix of all protocol headers.
const PROTOCOL_PREFIX: &str = "mcp-";
/// Prefix of headers that repeat an argument.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
/// Longest value of a protocol header, in bytes.
const MAX_HEADER_BYTES: usize = 8 * 1024;

/// The protocol headers of a request, collected in one pass.
#[derive(Default)]
pub(crate) struct ProtocolHeaders<'a> {
    version: HeaderOccurrence<'a>,
    session: HeaderOccurrence<'a>,
    method: HeaderOccurrence<'a>,
    name: HeaderOccurrence<'a>,
    trace_parent: HeaderOccurrence<'a>,
    long: Option<&'a str>,
}

/// Occurrence of a header that is allowed only once.
#[derive(Clone, Copy, Default)]
enum HeaderOccurrence<'a> {
    #[default]
    Absent,
    Once(&'a HeaderValue),
    Repeated,
}

impl<'a> ProtocolHeaders<'a> {
    /// Collects the protocol headers. A value of more than `most` bytes is too long.
    pub(crate) fn collect(headers: &'a HeaderMap, most: usize) -> ProtocolHeaders<'a> {
        let mut said = ProtocolHeaders::default();
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with(PROTOCOL_PREFIX) {
                if name == TRACE_PARENT {
                    said.trace_parent.add(value);
                }
                continue;
            }
            if value.len() > most {
                said.long.get_or_insert(name);
            }
            let found = match name {
                VERSION => &mut said.version,
                SESSION => &mut said.session,
                METHOD => &mut said.method,
                NAME => &mut said.name,
                _ => continue,
            };
            found.add(value);
        }
        said
    }

    /// Returns the name of the first header whose value is too long.
    pub(crate) fn too_long(&self) -> Option<&'a str> {
        self.long
    }

    /// Returns the protocol version header.
    pub(crate) fn version(&self) -> Result<Option<&'a str>, RpcError> {
        self.version.value(VERSION)
    }

    /// Returns the trace context of the HTTP request, if it has a valid one.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Option<TraceContext> {
        let parent = self.trace_parent.value(TRACE_PARENT).ok()??;
        let joined = |name: &str| {
            let values = headers.get_all(name).iter();
            let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
            (!values.is_empty()).then(|| values.join(","))
        };
        let (state, baggage) = (joined("tracestate"), joined("baggage"));
        let trace =
            TraceContext::from_headers([Some(parent), state.as_deref(), baggage.as_deref()]);
        trace.parent.is_some().then_some(trace)
    }

    /// Returns the session id if there is exactly one.
    pub(crate) fn session_id(&self) -> Option<&'a str> {
        self.session.value(SESSION).ok().flatten()
    }
}

impl<'a> HeaderOccurrence<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = match self {
            HeaderOccurrence::Absent => HeaderOccurrence::Once(value),
            _ => HeaderOccurrence::Repeated,
        };
    }

    fn is_present(self) -> bool {
        !matches!(self, HeaderOccurrence::Absent)
    }

    fn value(self, name: &str) -> Result<Option<&'a str>, RpcError> {
        match self {
            HeaderOccurrence::Absent => Ok(None),
            HeaderOccurrence::Once(value) if value.len() <= MAX_HEADER_BYTES => {
                value.to_str().map(Some).map_err(|_| {
                    header_mismatch(format!(
                        "the header {name} contains characters that are not visible ASCII"
                    ))
                })
            }
            HeaderOccurrence::Once(_) => Err(header_mismatch(format!(
                "the header {name} is longer than {MAX_HEADER_BYTES} bytes"
            ))),
            HeaderOccurrence::Repeated => Err(header_mismatch(format!(
                "the header {name} occurs more than once"
            ))),
        }
    }

    /// Checks that the header equals the value in the body.
    fn check(self, name: &str, body: &str) -> Result<(), RpcError> {
        let Some(value) = self.value(name)? else {
            return Err(header_mismatch(format!("the header {name} is missing")));
        };
        match decode_value(value, name)? == body {
            true => Ok(()),
            false => Err(body_mismatch(name)),
        }
    }
}

/// Returns the session id of a request if there is exactly one.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    single_value(headers, SESSION).ok().flatten()
}

/// Returns the value of a header that may occur only once.
pub(crate) fn single_value<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, RpcError> {
    let mut found = HeaderOccurrence::Absent;
    for value in headers.get_all(name) {
        found.add(value);
    }
    found.value(name)
}

/// Checks that the version header of a request matches its session.
pub(crate) fn check_session_version(
    version: Option<&str>,
    spoken: &Dialect,
) -> Result<(), RpcError> {
    match version {
        Some(version) if version != spoken.revision => Err(RpcError::new(
            code::INVALID_REQUEST,
            "the header mcp-protocol-version names a different revision than this session",
        )),
        _ => Ok(()),
    }
}

/// Checks that header and body do not name different versions. A missing one is checked elsewhere.
pub(crate) fn check_same_version(header: Option<&str>, meta: &RequestMeta) -> Result<(), RpcError> {
    let body = meta.version.as_ref().and_then(Json::str_cow);
    match (header, body) {
        (Some(header), Some(body)) if header != body => Err(body_mismatch(VERSION)),
        _ => Ok(()),
    }
}

/// Checks the headers of a 2026-07-28 request against its body: version, method, and name if the method has one.
pub(crate) fn check_required(
    said: &ProtocolHeaders<'_>,
    method: &str,
    named: Option<&str>,
    meta: &RequestMeta,
) -> Result<(), RpcError> {
    let version = meta.version.as_ref().and_then(Json::str_cow);
    let version = version.as_deref().unwrap_or_default();
    said.version.check(VERSION, version)?;
    said.method.check(METHOD, method)?;
    match name_parameter(method) {
        Some(_) => said.name.check(NAME, named.unwrap_or_default()),
        None => Ok(()),
    }
}

/// Checks the same headers in revisions that do not require them. A header that is present must match the body, since a
/// proxy may have decided by it.
pub(crate) fn check_optional(
    said: &ProtocolHeaders<'_>,
    message: &JsonRpcMessage,
) -> Result<(), RpcError> {
    let (method, params) = match message {
        JsonRpcMessage::Request { method, params, .. }
        | JsonRpcMessage::Notification { method, params } => (method.as_str(), params.as_ref()),
        JsonRpcMessage::Reply { .. } if said.method.is_present() || said.name.is_present() => {
            return Err(body_mismatch(METHOD));
        }
        JsonRpcMessage::Reply { .. } => return Ok(()),
    };
    if said.method.is_present() {
        said.method.check(METHOD, method)?;
    }
    match name_parameter(method) {
        Some(key) if said.name.is_present() => {
            let name = params.and_then(|p| p.get(key));
            let name = name.as_ref().and_then(Json::str_cow);
            said.name.check(NAME, name.as_deref().unwrap_or_default())
        }
        _ => Ok(()),
    }
}

/// Returns the value in the body that `Mcp-Name` repeats.
pub(crate) fn name_in_body(method: &str, params: Option<&Json>) -> Option<Json> {
    params?.get(name_parameter(method)?)
}

/// Checks that a batch has no headers that describe a single message.
pub(crate) fn check_batch(headers: &HeaderMap) -> Result<(), RpcError> {
    match [METHOD, NAME]
        .into_iter()
        .find(|name| headers.contains_key(*name))
    {
        Some(name) => Err(body_mismatch(name)),
        None => Ok(()),
    }
}

/// Returns the parameter that the header `Mcp-Name` repeats.
fn name_parameter(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        tasks::GET | tasks::UPDATE | tasks::CANCEL => Some("taskId"),
        _ => None,
    }
}

fn body_mismatch(name: &str) -> RpcError {
    header_mismatch(format!("the header {name} does not match the body"))
}

/// Decodes a header value: non-ASCII text is sent as `=?base64?…?=`.
fn decode_value<'a>(value: &'a str, name: &str) -> Result<Cow<'a, str>, RpcError> {
    let Some(inner) = value
        .strip_prefix("=?base64?")
        .and_then(|v| v.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let text = STANDARD
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned)
        .ok_or_else(|| header_mismatch(format!("the Base64 value of the header {name} is invalid")))
}

/// Input schema of a tool, kept only if it may contain `x-mcp-header`; most do not.
pub(crate) struct ParamHeaderSchema(Option<Json>);

impl ParamHeaderSchema {
    pub(crate) fn from_schema(schema: &Json) -> ParamHeaderSchema {
        let text = schema.as_str();
        let may = text.contains("mcp-header") || text.contains('\\');
        ParamHeaderSchema(may.then(|| schema.clone()))
    }

    /// Checks the `Mcp-Param-*` headers against the arguments, for properties with `x-mcp-header`.
    pub(crate) fn check(&self, headers: &HeaderMap, params: Option<&Json>) -> Result<(), RpcError> {
        let Some(schema) = &self.0 else {
            return Ok(());
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        match arguments.as_ref().map(Json::kind) {
            // Another check rejects arguments that are not an object.
            Some(kind) if kind != JsonKind::Object => Ok(()),
            _ => check_param_headers(headers, schema, arguments.as_ref()),
        }
    }
}

/// Checks the properties of a schema. It descends below absent arguments too, since a header may be present for them.
fn check_param_headers(
    headers: &HeaderMap,
    schema: &Json,
    arguments: Option<&Json>,
) -> Result<(), RpcError> {
    let Some(properties) = schema
        .get("properties")
        .filter(|p| p.kind() == JsonKind::Object)
    else {
        return Ok(());
    };
    for (key, property) in properties.members() {
        let value = arguments.and_then(|a| a.get(&key));
        if let Some(label) = property.get("x-mcp-header").and_then(|l| l.string()) {
            if value.as_ref().is_some_and(|value| !is_safe(value)) {
                let text = format!(
                    "invalid arguments: at /{key}: expected {SAFE_RANGE}, got a number outside this range"
                );
                return Err(RpcError::new(code::INVALID_PARAMS, text));
            }
            check_param_header(headers, &label, value.as_ref())?;
        }
        check_param_headers(headers, &property, value.as_ref())?;
    }
    Ok(())
}

fn check_param_header(
    headers: &HeaderMap,
    label: &str,
    value: Option<&Json>,
) -> Result<(), RpcError> {
    let name = format!("{PARAM_PREFIX}{}", label.to_ascii_lowercase());
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Ok(());
    }
    let header = single_value(headers, &name)?;
    match (header, value.filter(|v| !v.is_null())) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(header_mismatch(format!(
            "the header {name} is present, but the body does not have this argument"
        ))),
        (None, Some(_)) => Err(header_mismatch(format!("the header {name} is missing"))),
        (Some(header), Some(value)) if equals_argument(&decode_value(header, &name)?, value) => {
            Ok(())
        }
        _ => Err(header_mismatch(format!(
            "the header {name} does not match the body"
        ))),
    }
}

/// Compares a header with a JSON value: numbers by exact value, all else as text.
fn equals_argument(header: &str, value: &Json) -> bool {
    match value.kind() {
        JsonKind::String => value.str_cow().as_deref() == Some(header),
        JsonKind::Number => Json::read(header.as_bytes().to_vec(), &JsonLimits::default())
            .is_ok_and(|header| header.same_number(value)),
        _ => header == value.as_str(),
    }
}

pub(crate) fn header_mismatch(text: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: HTTPM-38
    #[test]
    fn a_header_says_the_same_number_in_any_spelling_and_no_other() {
        let check = |header: &str, value: &str, expected: bool| {
            let value = Json::read(value.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
            assert_eq!(
                equals_argument(header, &value),
                expected,
                "{header} {value:?}"
            );
        };
        for spelling in ["42", "42.0", "4.2e1"] {
            check(spelling, "42", true);
            check("42", spelling, true);
        }
        check("9007199254740993", "9007199254740992", false);
        check("9007199254740993", "9007199254740993.0", true);
        for none in ["", "0x2a", "042", "+42", "inf", "42 ,", "\"42\"", "NaN"] {
            check(none, "42", false);
        }
        check("42", "\"42\"", true);
        check("true", "true", true);
        check("1", "true", false);
    }
}
