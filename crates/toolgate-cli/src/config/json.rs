//! JSON with source positions: every value knows its offset in the text.

use super::error::{ConfigError, ConfigText};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// JSON object as keys and raw values in source order; the raw values keep their position.
pub(super) struct JsonEntries<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for JsonEntries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonEntriesVisitor)
    }
}

struct JsonEntriesVisitor;

impl<'de> Visitor<'de> for JsonEntriesVisitor {
    type Value = JsonEntries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(JsonEntries(entries))
    }
}

impl<'a> JsonEntries<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    }
}

/// JSON text with source positions.
#[derive(Clone, Copy)]
pub(super) struct JsonDocument<'a>(pub(super) ConfigText<'a>);

impl<'a> JsonDocument<'a> {
    /// Returns the byte offset of a value, which is a slice of the text.
    pub(super) fn offset(self, value: &RawValue) -> usize {
        (value.get().as_ptr() as usize).saturating_sub(self.0.text.as_ptr() as usize)
    }

    pub(super) fn error(self, value: &RawValue, text: impl fmt::Display) -> ConfigError {
        self.0.error(self.offset(value), text)
    }

    /// Deserializes a value whose syntax has been checked.
    pub(super) fn typed<T: Deserialize<'a>>(
        self,
        value: &'a RawValue,
        what: &str,
        write: &str,
    ) -> Result<T, ConfigError> {
        serde_json::from_str(value.get())
            .map_err(|_| self.error(value, format!("{what} must be {write}")))
    }

    pub(super) fn object(
        self,
        value: &'a RawValue,
        what: &str,
    ) -> Result<JsonEntries<'a>, ConfigError> {
        let entries: JsonEntries<'a> = self.typed(value, what, "an object")?;
        let twice = |(at, (key, _)): (usize, &(String, _))| {
            entries.0[..at].iter().any(|(other, _)| other == key)
        };
        match entries
            .0
            .iter()
            .enumerate()
            .find(|(at, entry)| twice((*at, entry)))
        {
            Some((_, (key, value))) => Err(self.error(
                value,
                format!("{key:?} is set twice in {what}; keep one of the two"),
            )),
            None => Ok(entries),
        }
    }
}

/// Replaces the comments and trailing commas of JSON, which hosts accept, with spaces: every position stays.
pub(super) fn blank_comments(text: &str) -> Cow<'_, str> {
    let mut bytes = text.as_bytes().to_vec();
    // The last byte outside comments, and the position of a comma that may be a trailing one.
    let (mut last, mut comma) = (0, None);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match byte {
            b'"' => string_length(rest),
            b'/' => comment_length(rest),
            _ => 1,
        };
        match byte {
            b'/' if length > 1 => {
                let comment = &mut bytes[at..at + length];
                let visible = comment
                    .iter_mut()
                    .filter(|byte| !matches!(byte, b'\n' | b'\r'));
                visible.for_each(|byte| *byte = b' ');
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                if matches!(byte, b'}' | b']')
                    && let Some(comma) = comma
                {
                    bytes[comma] = b' ';
                }
                let follows_value = !matches!(last, 0 | b'{' | b'[' | b',' | b':');
                comma = (byte == b',' && follows_value).then_some(at);
                last = byte;
            }
        }
        at += length;
    }
    match bytes == text.as_bytes() {
        true => Cow::Borrowed(text),
        false => String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Returns the length of the string at the start.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of the comment at the start; 1 if there is none.
fn comment_length(text: &[u8]) -> usize {
    let find = |end: &[u8]| {
        text.windows(end.len())
            .skip(2)
            .position(|found| found == end)
    };
    match text.get(1) {
        Some(b'/') => find(b"\n").map_or(text.len(), |at| at + 2),
        Some(b'*') => find(b"*/").map_or(1, |at| at + 4),
        _ => 1,
    }
}

/// Converts the parser's message to an error that begins with the position.
pub(super) fn json_syntax_error(doc: ConfigText<'_>, error: &serde_json::Error) -> ConfigError {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or(&text);
    let place = format!("{}:{}:{}", doc.name, error.line(), error.column());
    ConfigError::new(place, format!("the file is not valid JSON: {words}"))
}
