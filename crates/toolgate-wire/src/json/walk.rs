//! Walks over text that the reader has checked.

use super::{Json, Kind, write_string};
use std::{borrow::Cow, ops::Range};

/// A string on its way through [`Json::map_strings`].
#[derive(Clone, Copy, Debug)]
pub struct StringAt<'a> {
    /// What it says.
    pub text: &'a str,
    /// Whether it is the key of a member.
    pub key: bool,
}

/// The parts of one object or array.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn inside(text: &'a str, kind: Kind) -> Option<Tokens<'a>> {
        let open = if kind == Kind::Object { '{' } else { '[' };
        text.starts_with(open).then_some(Tokens { text, at: 1 })
    }

    /// The next member: its key as it stands between the quotes, and where its value is.
    pub(super) fn member(&mut self) -> Option<(&'a str, Range<usize>)> {
        self.skip();
        if self.peek() != Some(b'"') {
            return None;
        }
        let end = string_end(self.text.as_bytes(), self.at);
        let key = self.text.get(self.at + 1..end - 1)?;
        self.at = end;
        Some((key, self.item()?))
    }

    /// Where the next value is.
    pub(super) fn item(&mut self) -> Option<Range<usize>> {
        self.skip();
        let start = self.at;
        match self.peek()? {
            b']' | b'}' => return None,
            b'"' => self.at = string_end(self.text.as_bytes(), start),
            b'{' | b'[' => self.at = nested_end(self.text.as_bytes(), start),
            _ => {
                while self.peek().is_some_and(|b| {
                    !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                }) {
                    self.at += 1;
                }
            }
        }
        Some(start..self.at)
    }

    fn skip(&mut self) {
        while matches!(
            self.peek(),
            Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')
        ) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Where the string that begins at `at` ends, behind its quote.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    loop {
        match bytes.get(at) {
            None => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Where the object or array that begins at `at` ends.
fn nested_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at) {
            None => return at,
            Some(b'"') => {
                at = string_end(bytes, at);
                continue;
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') if depth == 1 => return at + 1,
            Some(b'}' | b']') => depth -= 1,
            Some(_) => {}
        }
        at += 1;
    }
}

/// What stands between the quotes, without its escapes.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        if !plain.is_empty() {
            flush(&mut out, &mut units);
            out.push_str(plain);
        }
        let (sign, used) = match escape.as_bytes().get(1) {
            Some(b'u') => {
                let unit = escape
                    .get(2..6)
                    .and_then(|hex| u16::from_str_radix(hex, 16).ok());
                units.push(unit.unwrap_or(0xfffd));
                (None, 6)
            }
            Some(b'b') => (Some('\u{8}'), 2),
            Some(b'f') => (Some('\u{c}'), 2),
            Some(b'n') => (Some('\n'), 2),
            Some(b'r') => (Some('\r'), 2),
            Some(b't') => (Some('\t'), 2),
            other => (other.map(|b| *b as char), 2),
        };
        if let Some(sign) = sign {
            flush(&mut out, &mut units);
            out.push(sign);
        }
        rest = escape.get(used..).unwrap_or_default();
    }
    flush(&mut out, &mut units);
    out.push_str(rest);
    Cow::Owned(out)
}

fn flush(out: &mut String, units: &mut Vec<u16>) {
    out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or('\u{fffd}')));
}

/// Largest exponent of a whole number that is written out.
const EXPONENT: usize = 20;

/// The digits of a number that is whole, however it is written; `None` for one that is not, or is far too large.
pub(super) fn whole(text: &str) -> Option<Cow<'_, str>> {
    if text.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        return Some(Cow::Borrowed(text));
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (int, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = usize::try_from(exponent)
        .ok()?
        .checked_sub(fraction.len())?;
    if zeros > EXPONENT {
        return None;
    }
    Some(Cow::Owned(format!("{int}{fraction}{}", "0".repeat(zeros))))
}

/// Whether some number does not survive the machine types.
pub(super) fn lossy(text: &str) -> bool {
    scalars(text).any(|token| {
        matches!(token.as_bytes().first(), Some(b'-' | b'0'..=b'9')) && number_is_lossy(token)
    })
}

fn number_is_lossy(token: &str) -> bool {
    if let Some(whole) = whole(token) {
        return whole.parse::<i64>().is_err() && whole.parse::<u64>().is_err();
    }
    let Ok(n) = token.parse::<f64>() else {
        return true;
    };
    !n.is_finite() || decimal(token) != decimal(&format!("{n:e}"))
}

/// Digits without noughts around them, and the place of the point: what two spellings of one number share.
fn decimal(token: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let negative = mantissa.starts_with('-');
    let (int, fraction) = mantissa
        .trim_start_matches('-')
        .split_once('.')
        .unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{int}{fraction}");
    let significant = digits.trim_start_matches('0');
    let lead = (digits.len() - significant.len()) as i64;
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return (false, String::new(), 0);
    }
    (
        negative,
        significant.to_owned(),
        exponent + int.len() as i64 - lead,
    )
}

/// The tokens of the text that are neither strings nor signs of structure.
fn scalars(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        loop {
            match bytes.get(at)? {
                b'"' => at = string_end(bytes, at),
                b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                _ => {
                    let start = at;
                    while bytes.get(at).is_some_and(|b| {
                        !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                    }) {
                        at += 1;
                    }
                    return text.get(start..at);
                }
            }
        }
    })
}

/// Recursion is bounded by the depth that the reader took.
pub(super) fn canonical(json: &Json) -> String {
    let mut out = String::with_capacity(json.as_str().len());
    canonical_into(json, &mut out);
    out
}

fn canonical_into(json: &Json, out: &mut String) {
    match json.kind() {
        Kind::Object => {
            let mut members: Vec<(Cow<'_, str>, Json)> = json.members().collect();
            members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push('{');
            for (n, (key, value)) in members.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                canonical_into(value, out);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (n, item) in json.items().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                canonical_into(&item, out);
            }
            out.push(']');
        }
        Kind::String => write_string(out, &json.str_cow().unwrap_or_default()),
        Kind::Number | Kind::Bool | Kind::Null => out.push_str(json.as_str()),
    }
}

/// A tree for text that holds numbers which no machine type holds.
pub(super) fn to_value(json: &Json) -> serde_json::Value {
    use serde_json::Value;
    match json.kind() {
        Kind::Object => Value::Object(
            json.members()
                .map(|(k, v)| (k.into_owned(), to_value(&v)))
                .collect(),
        ),
        Kind::Array => Value::Array(json.items().map(|v| to_value(&v)).collect()),
        _ => serde_json::from_str(json.as_str())
            .unwrap_or_else(|_| Value::String(json.as_str().to_owned())),
    }
}

/// Flat over the text: it needs no stack.
pub(super) fn map_strings(
    text: &str,
    f: &mut dyn FnMut(StringAt<'_>) -> Option<String>,
) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|b| *b == b'"'))
    {
        let start = at + found;
        let end = string_end(bytes, start);
        at = end;
        let inner = unescape(text.get(start + 1..end - 1).unwrap_or_default());
        let key = bytes
            .get(end..)
            .is_some_and(|rest| rest.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':'));
        if let Some(new) = f(StringAt { text: &inner, key }) {
            let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(text.get(copied..start).unwrap_or_default());
            write_string(out, &new);
            copied = end;
        }
    }
    out.map(|mut out| {
        out.push_str(text.get(copied..).unwrap_or_default());
        out
    })
}
