//! Edits of validated JSON text that leave all other bytes unchanged.

use super::{
    Json,
    lexer::{JsonLexer, JsonToken, RawMember, key_equals, members},
    text::{unescape, write_short},
};
use std::fmt;

/// JSON string or object key that [`Json::map_strings`] passes to its callback.
#[derive(Clone, Copy)]
pub struct StringAt<'a> {
    /// Text of the JSON string, unescaped.
    pub text: &'a str,
    /// True if the string is the key of an object member.
    pub key: bool,
    /// Nesting depth of the string: number of enclosing objects and arrays.
    pub depth: usize,
}

impl fmt::Debug for StringAt<'_> {
    /// Writes the length, never the text, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.key { "key" } else { "value" };
        write!(f, "StringAt({what}, {} bytes)", self.text.len())
    }
}

pub(super) fn map_strings(
    text: &str,
    f: &mut dyn FnMut(StringAt<'_>) -> Option<String>,
) -> Option<String> {
    let mut out: Option<String> = None;
    let (mut copied, mut depth) = (0, 0_usize);
    for (token, range) in JsonLexer::new(text) {
        let (inner, key) = match token {
            JsonToken::Key(inner) => (unescape(inner), true),
            JsonToken::String(inner) => (unescape(inner), false),
            JsonToken::Open(_) => {
                depth += 1;
                continue;
            }
            JsonToken::Close => {
                depth = depth.saturating_sub(1);
                continue;
            }
            JsonToken::Scalar(_) => continue,
        };
        let text_at = StringAt {
            text: &inner,
            key,
            depth,
        };
        let Some(new) = f(text_at).filter(|new| *new != *inner) else {
            continue;
        };
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(text.get(copied..range.start).unwrap_or_default());
        write_short(out, &new);
        copied = range.end;
    }
    out.map(|mut out| {
        out.push_str(text.get(copied..).unwrap_or_default());
        out
    })
}

/// Returns the text with the value of `key` replaced, or the member appended.
pub(super) fn with(text: &str, key: &str, value: &Json) -> String {
    let mut end = None;
    for member in members(text) {
        if key_equals(member.key, key) {
            return replace_range(text, member.value.start, member.value.end, value.as_str());
        }
        end = Some(member.value.end);
    }
    let mut new = String::new();
    if end.is_some() {
        new.push(',');
    }
    write_short(&mut new, key);
    new.push(':');
    new.push_str(value.as_str());
    match end.or_else(|| text.starts_with('{').then_some(1)) {
        Some(at) => replace_range(text, at, at, &new),
        None => ["{", &new, "}"].concat(),
    }
}

fn replace_range(text: &str, from: usize, to: usize, new: &str) -> String {
    let before = text.get(..from).unwrap_or_default();
    let behind = text.get(to..).unwrap_or_default();
    [before, new, behind].concat()
}

/// Returns the text without a member; `None` if there is no member of that key.
pub(super) fn without(text: &str, key: &str) -> Option<String> {
    let all: Vec<RawMember<'_>> = members(text).collect();
    let (first, last) = (all.first()?, all.last()?);
    let kept: Vec<usize> = (0..all.len())
        .filter(|n| all.get(*n).is_some_and(|m| !key_equals(m.key, key)))
        .collect();
    if kept.len() == all.len() {
        return None;
    }
    let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    out.push_str(piece(0, first.start));
    for (nth, at) in kept.iter().enumerate() {
        let Some(member) = all.get(*at) else { continue };
        // The separator of two members stays with the first one.
        let end = match all.get(at + 1) {
            Some(next) if nth + 1 < kept.len() => next.start,
            _ => member.value.end,
        };
        out.push_str(piece(member.start, end));
    }
    out.push_str(piece(last.value.end, text.len()));
    Some(out)
}
