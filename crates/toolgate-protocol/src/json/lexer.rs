//! Lexer for validated JSON text, without a stack.

use super::{
    JsonKind,
    scan::{is_space, nested_end, scalar_end, string_end},
};
use std::{borrow::Cow, ops::Range};

/// Token of validated text. Strings and keys are raw: between their quotes, with escapes.
#[derive(Clone, Copy)]
pub(super) enum JsonToken<'a> {
    /// `{` or `[`
    Open(JsonKind),
    /// `}` or `]`
    Close,
    Key(&'a str),
    String(&'a str),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str),
}

/// Iterator over the tokens of a text and their ranges, quotes included. It skips commas, colons and white space.
pub(super) struct JsonLexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonLexer<'a> {
    pub(super) fn new(text: &'a str) -> JsonLexer<'a> {
        JsonLexer { text, at: 0 }
    }

    /// Skips the object or array that starts at `start`, and returns its text.
    pub(super) fn skip_nested(&mut self, start: usize) -> &'a str {
        self.at = nested_end(self.text.as_bytes(), start);
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn string(&mut self, start: usize) -> JsonToken<'a> {
        let bytes = self.text.as_bytes();
        self.at = string_end(bytes, start);
        let inner = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        let mut rest = bytes.get(self.at..).unwrap_or_default().iter();
        if rest.find(|b| !is_space(**b)) == Some(&b':') {
            JsonToken::Key(inner)
        } else {
            JsonToken::String(inner)
        }
    }

    fn scalar(&mut self, start: usize) -> JsonToken<'a> {
        self.at = scalar_end(self.text.as_bytes(), start);
        JsonToken::Scalar(self.text.get(start..self.at).unwrap_or_default())
    }
}

impl<'a> Iterator for JsonLexer<'a> {
    type Item = (JsonToken<'a>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.at += separator_bytes(self.text, self.at);
        let start = self.at;
        self.at += 1;
        let token = match self.text.as_bytes().get(start)? {
            b'{' => JsonToken::Open(JsonKind::Object),
            b'[' => JsonToken::Open(JsonKind::Array),
            b'}' | b']' => JsonToken::Close,
            b'"' => self.string(start),
            _ => self.scalar(start),
        };
        Some((token, start..self.at))
    }
}

/// Number of separator bytes at `at`: white space, commas and colons.
fn separator_bytes(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let parts = |b: &u8| is_space(*b) || matches!(b, b',' | b':');
    rest.iter().position(|b| !parts(b)).unwrap_or(rest.len())
}

/// Member of an object.
pub(super) struct RawMember<'a> {
    /// Raw key, between its quotes.
    pub(super) key: &'a str,
    /// Position of the key's opening quote.
    pub(super) start: usize,
    /// Range of the value.
    pub(super) value: Range<usize>,
    /// True if the key is known to have no escapes.
    pub(super) is_plain_key: bool,
}

impl<'a> RawMember<'a> {
    /// Returns the key without its escapes.
    pub(super) fn unescaped_key(&self) -> Cow<'a, str> {
        match self.is_plain_key {
            true => Cow::Borrowed(self.key),
            false => super::text::unescape(self.key),
        }
    }
}

/// Iterator over the members or items of one object or array, without descending.
pub(super) struct ContainerParts<'a>(JsonLexer<'a>);

impl<'a> ContainerParts<'a> {
    /// Returns `None` if the text is not of this kind.
    pub(super) fn of(text: &'a str, kind: JsonKind) -> Option<ContainerParts<'a>> {
        let open = if kind == JsonKind::Object { '{' } else { '[' };
        text.starts_with(open)
            .then_some(ContainerParts(JsonLexer { text, at: 1 }))
    }

    pub(super) fn member(&mut self) -> Option<RawMember<'a>> {
        match self.0.next()? {
            (JsonToken::Key(key), Range { start, .. }) => Some(RawMember {
                key,
                start,
                value: self.item()?,
                is_plain_key: false,
            }),
            _ => None,
        }
    }

    pub(super) fn item(&mut self) -> Option<Range<usize>> {
        match self.0.next()? {
            (JsonToken::Open(_), Range { start, .. }) => {
                self.0.skip_nested(start);
                Some(start..self.0.at)
            }
            (JsonToken::Close, _) => None,
            (_, range) => Some(range),
        }
    }
}

/// Returns the members of an object; none for other values.
pub(super) fn members(text: &str) -> impl Iterator<Item = RawMember<'_>> {
    let mut parts = ContainerParts::of(text, JsonKind::Object);
    std::iter::from_fn(move || parts.as_mut()?.member())
}

/// Returns the ranges of the items of an array; none for other values.
pub(super) fn items(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut parts = ContainerParts::of(text, JsonKind::Array);
    std::iter::from_fn(move || parts.as_mut()?.item())
}

/// Returns true if a raw key equals `key` after removing its escapes.
pub(super) fn key_equals(inner: &str, key: &str) -> bool {
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => inner == key,
        // Before its first escape, a raw key equals its text, so a difference there is final.
        Some(at) if inner.as_bytes().get(..at) == key.as_bytes().get(..at) => {
            super::text::unescape(inner) == key
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::key_equals;

    #[test]
    fn compares_keys_without_their_escapes() {
        for (inner, key, same) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("ab", "a", false),
            ("", "a", false),
            (r"\u0061b", "ab", true),
            (r"a\u0062", "ab", true),
            (r"a\u0062", "ac", false),
            (r"a\u0062", "a", false),
            // Here the letter of the escape must not match literally.
            (r"\n", "\\n", false),
            (r"\n", "\n", true),
            (r"\\n", "\\n", true),
            (r"a\\", "a\\", true),
        ] {
            assert_eq!(key_equals(inner, key), same, "{inner} {key}");
        }
    }
}
