//! The headers that repeat what the body says, and must say the same.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderMap;
use std::borrow::Cow;
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, Kind, Limits},
    message::{Message, RpcError, code},
    method::{meta::Meta, tasks},
};

/// The revision of a request.
pub(crate) const VERSION: &str = "mcp-protocol-version";
/// The session that a request belongs to.
pub(crate) const SESSION: &str = "mcp-session-id";
/// Where a client that lost a stream left it.
pub(crate) const LAST_EVENT: &str = "last-event-id";
/// The method that the body names.
pub(crate) const METHOD: &str = "mcp-method";
/// What the body asks for by name.
pub(crate) const NAME: &str = "mcp-name";
/// How the headers begin that repeat an argument.
pub(crate) const PARAM: &str = "mcp-param-";
/// The longest value of one of these headers that is read, in bytes.
const LIMIT: usize = 8 * 1024;

/// The first header of the protocol whose value is longer than that.
pub(crate) fn too_long(headers: &HeaderMap, most: usize) -> Option<&str> {
    let long = |(name, value): &(&http::HeaderName, &http::HeaderValue)| {
        name.as_str().starts_with("mcp-") && value.len() > most
    };
    headers.iter().find(long).map(|(name, _)| name.as_str())
}

/// The session id of a request, where there is exactly one.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    single(headers, SESSION).ok().flatten()
}

/// The value of a header that may stand once only.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) if value.len() <= LIMIT => value.to_str().map(Some).map_err(|_| {
            mismatch(format!(
                "the header {name} has signs that are not plain ASCII"
            ))
        }),
        (Some(_), None) => Err(mismatch(format!(
            "the header {name} is longer than {LIMIT} bytes"
        ))),
        _ => Err(mismatch(format!("the header {name} stands more than once"))),
    }
}

/// Checks the revision that a request within a session names.
pub(crate) fn fits(version: Option<&str>, spoken: &Dialect) -> Result<(), RpcError> {
    match version {
        Some(version) if version != spoken.revision => Err(RpcError::new(
            code::INVALID_REQUEST,
            "the header mcp-protocol-version names another revision than this session speaks",
        )),
        _ => Ok(()),
    }
}

/// Checks that header and body do not name two revisions. Whether one of them is missing, others check.
pub(crate) fn one_revision(header: Option<&str>, meta: &Meta) -> Result<(), RpcError> {
    let body = meta.version.as_ref().and_then(Json::str_cow);
    match (header, body) {
        (Some(header), Some(body)) if header != body => Err(differs(VERSION)),
        _ => Ok(()),
    }
}

/// Checks the headers of a request of 2026-07-28 against its body.
pub(crate) fn agree(
    headers: &HeaderMap,
    method: &str,
    params: Option<&Json>,
    meta: &Meta,
) -> Result<(), RpcError> {
    let version = meta.version.as_ref().and_then(Json::str_cow);
    required(headers, VERSION, version.as_deref().unwrap_or_default())?;
    required(headers, METHOD, method)?;
    if let Some(key) = named_by(method) {
        let name = params.and_then(|p| p.get(key));
        let name = name.as_ref().and_then(Json::str_cow);
        required(headers, NAME, name.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// Checks the same headers in the revisions that do not ask for them: one that is there must say what the body says,
/// since whoever stands before us may have judged by it.
pub(crate) fn agree_if_there(headers: &HeaderMap, message: &Message) -> Result<(), RpcError> {
    let there = |name| headers.contains_key(name);
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (method.as_str(), params.as_ref())
        }
        Message::Reply { .. } if there(METHOD) || there(NAME) => return Err(differs(METHOD)),
        Message::Reply { .. } => return Ok(()),
    };
    if there(METHOD) {
        required(headers, METHOD, method)?;
    }
    match named_by(method) {
        Some(key) if there(NAME) => {
            let name = params.and_then(|p| p.get(key));
            let name = name.as_ref().and_then(Json::str_cow);
            required(headers, NAME, name.as_deref().unwrap_or_default())
        }
        _ => Ok(()),
    }
}

/// A batch is many messages: a header that repeats one of them says less than the body.
pub(crate) fn no_single(headers: &HeaderMap) -> Result<(), RpcError> {
    match [METHOD, NAME]
        .into_iter()
        .find(|name| headers.contains_key(*name))
    {
        Some(name) => Err(differs(name)),
        None => Ok(()),
    }
}

/// Which parameter the header `Mcp-Name` repeats.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        tasks::GET | tasks::UPDATE | tasks::CANCEL => Some("taskId"),
        _ => None,
    }
}

fn required(headers: &HeaderMap, name: &str, body: &str) -> Result<(), RpcError> {
    let Some(value) = single(headers, name)? else {
        return Err(mismatch(format!("the header {name} is missing")));
    };
    if decoded(value, name)? == body {
        Ok(())
    } else {
        Err(differs(name))
    }
}

fn differs(name: &str) -> RpcError {
    mismatch(format!("the header {name} does not say what the body says"))
}

/// A value that is not plain ASCII comes as `=?base64?…?=`.
fn decoded<'a>(value: &'a str, name: &str) -> Result<Cow<'a, str>, RpcError> {
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
        .ok_or_else(|| mismatch(format!("the Base64 of the header {name} cannot be read")))
}

/// The schema of a tool that may mark properties with `x-mcp-header`; most mark nothing.
pub(crate) struct Marked(Option<Json>);

impl Marked {
    pub(crate) fn of(schema: &Json) -> Marked {
        let text = schema.as_str();
        let may = text.contains("mcp-header") || text.contains('\\');
        Marked(may.then(|| schema.clone()))
    }

    /// Checks `Mcp-Param-*` against the arguments in the parameters of a call, for the properties that are marked.
    pub(crate) fn agree(&self, headers: &HeaderMap, params: Option<&Json>) -> Result<(), RpcError> {
        let Some(schema) = &self.0 else {
            return Ok(());
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        match arguments.as_ref().map(Json::kind) {
            // Others say that arguments are an object.
            Some(kind) if kind != Kind::Object => Ok(()),
            _ => marked_agree(headers, schema, arguments.as_ref()),
        }
    }
}

/// Goes on below an argument that is absent: a header may be there nevertheless.
fn marked_agree(
    headers: &HeaderMap,
    schema: &Json,
    arguments: Option<&Json>,
) -> Result<(), RpcError> {
    let Some(properties) = schema
        .get("properties")
        .filter(|p| p.kind() == Kind::Object)
    else {
        return Ok(());
    };
    for (key, property) in properties.members() {
        let value = arguments.and_then(|a| a.get(&key));
        if let Some(label) = property.get("x-mcp-header").and_then(|l| l.string()) {
            param_agrees(headers, &label, value.as_ref())?;
        }
        marked_agree(headers, &property, value.as_ref())?;
    }
    Ok(())
}

fn param_agrees(headers: &HeaderMap, label: &str, value: Option<&Json>) -> Result<(), RpcError> {
    let name = format!("{PARAM}{}", label.to_ascii_lowercase());
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Ok(());
    }
    let header = single(headers, &name)?;
    match (header, value.filter(|v| !v.is_null())) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(mismatch(format!(
            "the header {name} is there, but the body has no such argument"
        ))),
        (None, Some(_)) => Err(mismatch(format!("the header {name} is missing"))),
        (Some(header), Some(value)) if same(&decoded(header, &name)?, value) => Ok(()),
        _ => Err(mismatch(format!(
            "the header {name} does not say what the body says"
        ))),
    }
}

/// Numbers compare as numbers, to the last digit, all else as text.
fn same(header: &str, value: &Json) -> bool {
    match value.kind() {
        Kind::String => value.str_cow().as_deref() == Some(header),
        Kind::Number => Json::read(header.as_bytes().to_vec(), &Limits::default())
            .is_ok_and(|header| header.same_number(value)),
        _ => header == value.as_str(),
    }
}

pub(crate) fn mismatch(text: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: HTTPM-38
    #[test]
    fn a_header_says_the_same_number_in_any_spelling_and_no_other() {
        let check = |header: &str, value: &str, expected: bool| {
            let value = Json::read(value.as_bytes().to_vec(), &Limits::default()).unwrap();
            assert_eq!(same(header, &value), expected, "{header} {value:?}");
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
