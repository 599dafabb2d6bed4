//! Escaping and unescaping of JSON strings.

use super::scan::{SpecialBytes, backslash_mask, is_plain, special_byte_mask};
use std::borrow::Cow;

/// Removes the escapes of a raw string without its quotes. The text is validated.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => Cow::Borrowed(inner),
        Some(first) => Cow::Owned(unescaped(inner, first)),
    }
}

/// Returns the text of a raw string with its quotes; `None` for other values.
pub(super) fn of_string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    // Short strings are not worth a call of the search routine.
    match inner.len() <= MAX_WORDWISE_TEXT_BYTES && is_plain(inner.as_bytes()) {
        true => Some(Cow::Borrowed(inner)),
        false => Some(unescape(inner)),
    }
}

/// Returns the beginning of a string's text: at most `max_bytes` bytes, in whole characters. The rest is not copied.
pub(super) fn string_up_to(text: &str, max_bytes: usize) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    // No escape is longer than six bytes for each byte that it stands for.
    let reach = max_bytes.saturating_mul(6).min(inner.len());
    let mut end = floor_boundary(inner, reach);
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', inner.as_bytes().get(at..end).unwrap_or_default())
    {
        at += next;
        let escape = inner.get(at..).unwrap_or_default();
        let used = match escape.as_bytes().get(1) {
            Some(b'u') => unicode(escape).1,
            _ => 2,
        };
        if at + used > end {
            end = at;
        }
        at += used;
    }
    let mut said = unescape(inner.get(..end).unwrap_or_default()).into_owned();
    said.truncate(floor_boundary(&said, max_bytes));
    said.shrink_to_fit();
    Some(said)
}

/// Returns the last character boundary at or before a position.
fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Maximum length of strings that are checked eight bytes at a time, in bytes; longer ones use a search routine.
const MAX_WORDWISE_TEXT_BYTES: usize = 64;

/// Removes the escapes of a raw string with a known first escape. It copies eight bytes at a time and overwrites the
/// excess, because most escaped text has an escape every few bytes.
fn unescaped(inner: &str, first: usize) -> String {
    let bytes = inner.as_bytes();
    // No escape is shorter than its character.
    let mut out = vec![0; bytes.len() + 8];
    if let (Some(to), Some(from)) = (out.get_mut(..first), bytes.get(..first)) {
        to.copy_from_slice(from);
    }
    let (mut at, mut to) = (first, first);
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let Some(place) = out.get_mut(to..).and_then(<[u8]>::first_chunk_mut::<8>) else {
            break;
        };
        *place = *eight;
        let plain = backslash_mask(u64::from_le_bytes(*eight)).trailing_zeros() as usize / 8;
        (at, to) = (at + plain, to + plain);
        if plain < 8 {
            at += unescape_one(inner, at, &mut out, &mut to);
        }
    }
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += unescape_one(inner, at, &mut out, &mut to),
            byte => {
                put(&mut out, &mut to, *byte);
                at += 1;
            }
        }
    }
    valid_utf8(out.get(..to).unwrap_or_default()).into_owned()
}

/// Decodes the escape at `at`. Returns its length.
#[inline]
fn unescape_one(inner: &str, at: usize, out: &mut [u8], to: &mut usize) -> usize {
    let letter = inner.as_bytes().get(at + 1).copied().unwrap_or(b'?');
    if letter == b'u' {
        return unescape_digits(inner, at, out, to);
    }
    put(out, to, ESCAPED_CHARS[usize::from(letter)]);
    2
}

#[inline(never)]
fn unescape_digits(inner: &str, at: usize, out: &mut [u8], to: &mut usize) -> usize {
    let (sign, used) = unicode(inner.get(at..).unwrap_or_default());
    for byte in sign.encode_utf8(&mut [0; 4]).bytes() {
        put(out, to, byte);
    }
    used
}

/// Character of each escape letter.
const ESCAPED_CHARS: [u8; 256] = {
    let mut meant = [0; 256];
    let mut letter = 0;
    while letter < meant.len() {
        meant[letter] = match letter as u8 {
            b'b' => 0x8,
            b'f' => 0xc,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        };
        letter += 1;
    }
    meant
};

fn put(out: &mut [u8], to: &mut usize, byte: u8) {
    if let Some(place) = out.get_mut(*to) {
        *place = byte;
        *to += 1;
    }
}

/// Converts bytes to text. They are always valid, because they were made of text.
fn valid_utf8(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Decodes `\uXXXX`, or a surrogate pair of two for a character beyond U+FFFF.
fn unicode(escape: &str) -> (char, usize) {
    let unit = |from: usize| {
        let hex = escape.get(from..from + 4)?;
        u16::from_str_radix(hex, 16).ok()
    };
    let follows = escape.as_bytes().get(6..8) == Some(b"\\u");
    let second = follows.then(|| unit(8)).flatten();
    let units = [unit(2), second].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(sign)) => (sign, 2 + 4 + if sign > '\u{ffff}' { 6 } else { 0 }),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Replaces each escape of a lone surrogate in validated text with `\ufffd`. Both have six characters.
pub(super) fn without_lone_surrogates(text: String) -> String {
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', text.as_bytes().get(at..).unwrap_or_default()) {
        at += next;
        let escape = text.get(at..).unwrap_or_default();
        at += match escape.as_bytes().get(1) {
            Some(b'u') => {
                let (sign, used) = unicode(escape);
                let written = escape.get(2..6).map(|hex| u16::from_str_radix(hex, 16));
                if sign == char::REPLACEMENT_CHARACTER && written != Some(Ok(0xfffd)) {
                    lone.push(at);
                }
                used
            }
            _ => 2,
        };
    }
    let mut bytes = text.into_bytes();
    for at in lone {
        if let Some(place) = bytes.get_mut(at..at + 6) {
            place.copy_from_slice(b"\\ufffd");
        }
    }
    // All written bytes are ASCII.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Appends a quoted JSON string with minimal escapes: `\"`, `\\`, and lower-case `\u00XX` for control characters.
/// Digests use this form; messages use a shorter one.
pub fn write_string(out: &mut String, text: &str) {
    write(out, text, &CANONICAL_ESCAPES);
}

/// Appends a quoted string for messages, like [`write_string`], but with two-character escapes for control characters
/// that have one.
pub(super) fn write_short(out: &mut String, text: &str) {
    write(out, text, &SHORT_ESCAPES);
}

/// Output of each byte in a string: its characters and their number.
type EscapeTable = [([u8; 8], u8); 256];

const CANONICAL_ESCAPES: EscapeTable = escape_table(&[(b'"', b'"'), (b'\\', b'\\')]);
const SHORT_ESCAPES: EscapeTable = escape_table(&[
    (b'"', b'"'),
    (b'\\', b'\\'),
    (0x8, b'b'),
    (0xc, b'f'),
    (b'\n', b'n'),
    (b'\r', b'r'),
    (b'\t', b't'),
]);

/// Builds the table, with these bytes written as a backslash and a letter.
const fn escape_table(short: &[(u8, u8)]) -> EscapeTable {
    let mut signs = [([0; 8], 1); 256];
    let mut byte = 0;
    while byte < signs.len() {
        signs[byte].0[0] = byte as u8;
        if byte < 0x20 {
            let digits = *b"0123456789abcdef";
            let (high, low) = (digits[byte / 16], digits[byte % 16]);
            signs[byte] = ([b'\\', b'u', b'0', b'0', high, low, 0, 0], 6);
        }
        byte += 1;
    }
    let mut nth = 0;
    while nth < short.len() {
        let (byte, letter) = short[nth];
        signs[byte as usize] = ([b'\\', letter, 0, 0, 0, 0, 0, 0], 2);
        nth += 1;
    }
    signs
}

/// Size of a piece of text that is escaped at once, in bytes.
const ESCAPE_CHUNK_BYTES: usize = 256;

fn write(out: &mut String, text: &str, signs: &EscapeTable) {
    out.reserve(text.len() + 2);
    out.push('"');
    if is_plain(text.as_bytes()) {
        out.push_str(text);
    } else {
        write_escaped(out, text, signs);
    }
    out.push('"');
}

/// Appends a text that needs escapes.
#[inline(never)]
fn write_escaped(out: &mut String, text: &str, signs: &EscapeTable) {
    let plain = SpecialBytes::new(text.as_bytes(), 0).next();
    let (plain, mut rest) = text.split_at(plain);
    out.push_str(plain);
    // Each step writes eight bytes, and the next step overwrites the excess.
    let mut escaped = [0; 6 * ESCAPE_CHUNK_BYTES + 8];
    while !rest.is_empty() {
        let mut cut = ESCAPE_CHUNK_BYTES.min(rest.len());
        while !rest.is_char_boundary(cut) {
            cut -= 1;
        }
        let (piece, more) = rest.split_at(cut);
        let end = escape(piece.as_bytes(), signs, &mut escaped);
        out.push_str(&valid_utf8(escaped.get(..end).unwrap_or_default()));
        rest = more;
    }
}

/// Escapes a piece of text into `out`. Returns the number of written bytes. It copies eight bytes at a time and
/// overwrites the excess.
fn escape(piece: &[u8], signs: &EscapeTable, out: &mut [u8]) -> usize {
    let (mut at, mut to) = (0, 0);
    while let Some(eight) = piece.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let Some(place) = out.get_mut(to..).and_then(<[u8]>::first_chunk_mut::<8>) else {
            break;
        };
        *place = *eight;
        let plain = special_byte_mask(u64::from_le_bytes(*eight)).trailing_zeros() as usize / 8;
        (at, to) = (at + plain, to + plain);
        if let Some(byte) = eight.get(plain) {
            to = escape_one(*byte, signs, out, to);
            at += 1;
        }
    }
    let rest = piece.get(at..).unwrap_or_default();
    rest.iter()
        .fold(to, |to, byte| escape_one(*byte, signs, out, to))
}

/// Writes the output of one byte. Returns the end position.
fn escape_one(byte: u8, signs: &EscapeTable, out: &mut [u8], to: usize) -> usize {
    let (sign, length) = &signs[usize::from(byte)];
    if let Some(place) = out.get_mut(to..to + 8) {
        place.copy_from_slice(sign);
    }
    to + usize::from(*length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_beginning_of_a_string_is_whole_characters() {
        for (text, max, expected) in [
            (r#""abcdef""#, 3, "abc"),
            (r#""abc""#, 9, "abc"),
            (r#""a\u00e9b""#, 2, "a"),
            (r#""a\u00e9b""#, 3, "aé"),
            (r#""\ud83d\ude00x""#, 3, ""),
            (r#""\ud83d\ude00x""#, 4, "😀"),
            (r#""\n\n\n""#, 2, "\n\n"),
            (r#""é""#, 1, ""),
            (r#""""#, 0, ""),
        ] {
            assert_eq!(
                string_up_to(text, max).as_deref(),
                Some(expected),
                "{text} {max}"
            );
        }
        assert_eq!(string_up_to("7", 9), None);
    }

    /// Removes escapes character by character.
    fn slowly_unescaped(inner: &str) -> String {
        let (mut out, mut rest) = (String::new(), inner);
        while let Some(sign) = rest.chars().next() {
            let used = if sign != '\\' {
                out.push(sign);
                sign.len_utf8()
            } else if rest.as_bytes()[1] == b'u' {
                let (sign, used) = unicode(rest);
                out.push(sign);
                used
            } else {
                let all = [
                    ('b', '\u{8}'),
                    ('f', '\u{c}'),
                    ('n', '\n'),
                    ('r', '\r'),
                    ('t', '\t'),
                ];
                let letter = char::from(rest.as_bytes()[1]);
                let short = all.into_iter().find(|(of, _)| *of == letter);
                out.push(short.map_or(letter, |(_, sign)| sign));
                2
            };
            rest = &rest[used..];
        }
        out
    }

    /// Adds escapes character by character.
    fn slowly_escaped(text: &str, short: bool) -> String {
        let mut out = String::from("\"");
        for sign in text.chars() {
            match sign {
                '"' | '\\' => out.extend(['\\', sign]),
                '\u{8}' if short => out.push_str("\\b"),
                '\u{c}' if short => out.push_str("\\f"),
                '\n' if short => out.push_str("\\n"),
                '\r' if short => out.push_str("\\r"),
                '\t' if short => out.push_str("\\t"),
                '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(sign))),
                sign => out.push(sign),
            }
        }
        out + "\""
    }

    proptest! {
        #[test]
        fn escapes_go_on_and_off_as_sign_by_sign(
            parts in prop::collection::vec(("[a-z é€𐍈]{0,12}", "[\"\\\\\u{0}-\u{1f}\u{7f}]{0,4}"), 0..200),
        ) {
            let text: String = parts.into_iter().flat_map(|(plain, special)| [plain, special]).collect();
            let (mut canonical, mut short) = ("x".to_owned(), "x".to_owned());
            write_string(&mut canonical, &text);
            write_short(&mut short, &text);
            prop_assert_eq!(&canonical[1..], &slowly_escaped(&text, false));
            prop_assert_eq!(&short[1..], &slowly_escaped(&text, true));
            for written in [canonical, short] {
                prop_assert_eq!(&*unescape(&written[2..written.len() - 1]), text.as_str());
            }
        }

        #[test]
        fn all_escapes_are_taken_off(
            parts in prop::collection::vec(("[a-z é€𐍈]{0,12}", 0_usize..12), 0..60),
        ) {
            const ESCAPES: [&str; 12] = [
                r"\b", r"\f", r"\n", r"\r", r"\t", r#"\""#, r"\\", r"\/", r"\u0041", r"\u20AC", r"\ud800\udf48", "",
            ];
            let inner: String = parts.iter().flat_map(|(plain, n)| [plain.as_str(), ESCAPES[*n]]).collect();
            prop_assert_eq!(&*unescape(&inner), slowly_unescaped(&inner));
        }
    }
}
