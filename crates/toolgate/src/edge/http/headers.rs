//! The headers that repeat what the body says, and must say the same.

use crate::client::http::{SAFE_RANGE, is_safe};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue};
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
/// How all of these begin.
const OURS: &str = "mcp-";
/// How the headers begin that repeat an argument.
pub(crate) const PARAM: &str = "mcp-param-";
/// The longest value of one of these headers that is read, in bytes.
const LIMIT: usize = 8 * 1024;

/// The headers of the protocol that a request has, found in one pass.
#[derive(Default)]
pub(crate) struct Said<'a> {
    version: Found<'a>,
    session: Found<'a>,
    method: Found<'a>,
    name: Found<'a>,
    long: Option<&'a str>,
}

/// A header that may stand once only.
#[derive(Clone, Copy, Default)]
enum Found<'a> {
    #[default]
    Never,
    Once(&'a HeaderValue),
    Often,
}

impl<'a> Said<'a> {
    /// Those among all headers. A value of more than `most` bytes is too long.
    pub(crate) fn of(headers: &'a HeaderMap, most: usize) -> Said<'a> {
        let mut said = Said::default();
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with(OURS) {
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

    /// The first one whose value is too long.
    pub(crate) fn too_long(&self) -> Option<&'a str> {
        self.long
    }

    /// The revision that it names.
    pub(crate) fn version(&self) -> Result<Option<&'a str>, RpcError> {
        self.version.value(VERSION)
    }

    /// The session id, where there is exactly one.
    pub(crate) fn session(&self) -> Option<&'a str> {
        self.session.value(SESSION).ok().flatten()
    }
}

impl<'a> Found<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = match self {
            Found::Never => Found::Once(value),
            _ => Found::Often,
        };
    }

    fn is_there(self) -> bool {
        !matches!(self, Found::Never)
    }

    fn value(self, name: &str) -> Result<Option<&'a str>, RpcError> {
        match self {
            Found::Never => Ok(None),
            Found::Once(value) if value.len() <= LIMIT => value.to_str().map(Some).map_err(|_| {
                mismatch(format!(
                    "the header {name} has signs that are not plain ASCII"
                ))
            }),
            Found::Once(_) => Err(mismatch(format!(
                "the header {name} is longer than {LIMIT} bytes"
            ))),
            Found::Often => Err(mismatch(format!("the header {name} stands more than once"))),
        }
    }

    /// Checks that it says what the body says.
    fn says(self, name: &str, body: &str) -> Result<(), RpcError> {
        let Some(value) = self.value(name)? else {
            return Err(mismatch(format!("the header {name} is missing")));
        };
        match decoded(value, name)? == body {
            true => Ok(()),
            false => Err(differs(name)),
        }
    }
}

/// The session id of a request, where there is exactly one.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    single(headers, SESSION).ok().flatten()
}

/// The value of a header that may stand once only.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut found = Found::Never;
    for value in headers.get_all(name) {
        found.add(value);
    }
    found.value(name)
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

/// Checks the headers of a request of 2026-07-28 against its body: its method, and what it asks for by name, where it does.
pub(crate) fn agree(
    said: &Said<'_>,
    method: &str,
    named: Option<&str>,
    meta: &Meta,
) -> Result<(), RpcError> {
    let version = meta.version.as_ref().and_then(Json::str_cow);
    let version = version.as_deref().unwrap_or_default();
    said.version.says(VERSION, version)?;
    said.method.says(METHOD, method)?;
    match named_by(method) {
        Some(_) => said.name.says(NAME, named.unwrap_or_default()),
        None => Ok(()),
    }
}

/// Checks the same headers in the revisions that do not ask for them: one that is there must say what the body says,
/// since whoever stands before us may have judged by it.
pub(crate) fn agree_if_there(said: &Said<'_>, message: &Message) -> Result<(), RpcError> {
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (method.as_str(), params.as_ref())
        }
        Message::Reply { .. } if said.method.is_there() || said.name.is_there() => {
            return Err(differs(METHOD));
        }
        Message::Reply { .. } => return Ok(()),
    };
    if said.method.is_there() {
        said.method.says(METHOD, method)?;
    }
    match named_by(method) {
        Some(key) if said.name.is_there() => {
            let name = params.and_then(|p| p.get(key));
            let name = name.as_ref().and_then(Json::str_cow);
            said.name.says(NAME, name.as_deref().unwrap_or_default())
        }
        _ => Ok(()),
    }
}

/// What a request asks for by name, as the body says it.
pub(crate) fn named(method: &str, params: Option<&Json>) -> Option<Json> {
    params?.get(named_by(method)?)
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
            if value.as_ref().is_some_and(|value| !is_safe(value)) {
                let text = format!("invalid arguments: at {key}: expected {SAFE_RANGE}");
                return Err(RpcError::new(code::INVALID_PARAMS, text));
            }
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
