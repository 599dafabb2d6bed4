//! Strings: escapes taken off and put on.

use super::scan::plain;
use std::borrow::Cow;

/// What stands between the quotes, without its escapes. The text is checked.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    if plain(inner.as_bytes()) == inner.len() {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (sign, used) = sign(escape);
        out.push(sign);
        rest = escape.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What an escape stands for, and how long it is.
fn sign(escape: &str) -> (char, usize) {
    match escape.as_bytes().get(1) {
        Some(b'u') => unicode(escape),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(other) => (char::from(*other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// `\uXXXX`, or two of them for one sign beyond U+FFFF.
fn unicode(escape: &str) -> (char, usize) {
    let unit = |from: usize| {
        let hex = escape.get(from..from + 4)?;
        u16::from_str_radix(hex, 16).ok()
    };
    let units = [unit(2), unit(8)].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(sign)) => (sign, 2 + 4 + if sign > '\u{ffff}' { 6 } else { 0 }),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Appends a string in quotes, escaped as little as possible: `\"`, `\\`, and `\u00XX` in lower case for controls.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let (before, special) = rest.split_at(plain(rest.as_bytes()));
        out.push_str(before);
        let mut signs = special.chars();
        match signs.next() {
            None => break,
            Some(sign @ ('"' | '\\')) => out.extend(['\\', sign]),
            Some(control) => {
                let digit = |n: u32| char::from_digit(n, 16).unwrap_or('0');
                let code = u32::from(control);
                out.push_str("\\u00");
                out.extend([digit(code / 16 % 16), digit(code % 16)]);
            }
        }
        rest = signs.as_str();
    }
    out.push('"');
}
