//! JSON writers that splice in raw values, without a tree.

use super::{Json, text::write_short};
use std::fmt::{self, Write};

/// Initial capacity of an object, in bytes: most objects need no more.
const DEFAULT_OBJECT_BYTES: usize = 128;

/// Shared state of both writers: the text so far, and the position of commas.
struct WriterState {
    text: String,
    empty: bool,
}

impl WriterState {
    fn open(mut text: String, sign: char) -> WriterState {
        text.push(sign);
        WriterState { text, empty: true }
    }

    fn next(&mut self) -> &mut String {
        if !self.empty {
            self.text.push(',');
        }
        self.empty = false;
        &mut self.text
    }

    fn close(mut self, sign: char) -> String {
        self.text.push(sign);
        self.text
    }
}

/// Writes an object at the end of the text, in the same buffer.
fn object_in(text: &mut String, fill: impl FnOnce(&mut ObjectWriter)) {
    let mut inner = ObjectWriter(WriterState::open(std::mem::take(text), '{'));
    fill(&mut inner);
    *text = inner.0.close('}');
}

/// Writes an array at the end of the text, in the same buffer.
fn array_in(text: &mut String, fill: impl FnOnce(&mut ArrayWriter)) {
    let mut inner = ArrayWriter(WriterState::open(std::mem::take(text), '['));
    fill(&mut inner);
    *text = inner.0.close(']');
}

fn bool_literal(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// Writer of the text of one JSON object, member by member. The caller ensures unique keys.
pub struct ObjectWriter(WriterState);

impl Default for ObjectWriter {
    fn default() -> ObjectWriter {
        ObjectWriter::new()
    }
}

impl ObjectWriter {
    /// Starts an empty JSON object.
    pub fn new() -> ObjectWriter {
        ObjectWriter::with_capacity(DEFAULT_OBJECT_BYTES)
    }

    /// Starts an empty object with this capacity, for callers that know the size.
    pub(crate) fn with_capacity(bytes: usize) -> ObjectWriter {
        ObjectWriter(WriterState::open(String::with_capacity(bytes), '{'))
    }

    fn key(&mut self, key: &str) -> &mut String {
        let out = self.0.next();
        write_short(out, key);
        out.push(':');
        out
    }

    /// Adds a member whose value is already JSON; its bytes stay.
    pub fn raw(&mut self, key: &str, value: &Json) {
        self.key(key).push_str(value.as_str());
    }

    /// Adds a member with a string value to the JSON object, escaped.
    pub fn str(&mut self, key: &str, value: &str) {
        write_short(self.key(key), value);
    }

    /// Adds a member with an integer value to the JSON object.
    pub fn int(&mut self, key: &str, value: i64) {
        // Writing to a string cannot fail.
        _ = write!(self.key(key), "{value}");
    }

    /// Adds a member with a boolean value to the JSON object.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.key(key).push_str(bool_literal(value));
    }

    /// Adds a member with the value `null` to the JSON object.
    pub fn null(&mut self, key: &str) {
        self.key(key).push_str("null");
    }

    /// Adds a member whose value is a nested JSON object, which `fill` writes.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut ObjectWriter)) {
        object_in(self.key(key), fill);
    }

    /// Adds a member whose value is a JSON array, which `fill` writes.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter)) {
        array_in(self.key(key), fill);
    }

    /// Adds all members of another JSON object; their bytes stay. Other values have no members.
    pub fn raw_members(&mut self, object: &Json) {
        let text = object.as_str();
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let inner = inner.unwrap_or_default().trim_ascii();
        if !inner.is_empty() {
            self.0.next().push_str(inner);
        }
    }

    /// Adds a member whose value is trusted text that is known to be JSON, for example a constant. Never pass untrusted
    /// text: only debug builds check it.
    pub fn raw_text(&mut self, key: &str, json: &str) {
        debug_assert!(Json::read(json.into(), &super::JsonLimits::default()).is_ok());
        self.key(key).push_str(json);
    }

    /// Adds a constant key, written as `"key":`. The value has to follow at once.
    pub(crate) fn constant_key(&mut self, key: &'static str) -> &mut String {
        debug_assert!(
            Json::read(format!("{{{key}0}}").into(), &super::JsonLimits::default()).is_ok()
        );
        let out = self.0.next();
        out.push_str(key);
        out
    }

    /// Adds a member with a constant key, written as `"key":`, whose value is a nested JSON object.
    pub(crate) fn constant_object(
        &mut self,
        key: &'static str,
        fill: impl FnOnce(&mut ObjectWriter),
    ) {
        object_in(self.constant_key(key), fill);
    }

    /// Adds a constant member, written as `"key":value`.
    pub(crate) fn constant_member(&mut self, member: &'static str) {
        debug_assert!(
            Json::read(
                format!("{{{member}}}").into(),
                &super::JsonLimits::default()
            )
            .is_ok()
        );
        self.0.next().push_str(member);
    }

    /// Completes the JSON object and returns it.
    pub fn finish(self) -> Json {
        Json::from_trusted_text(self.text())
    }

    /// Completes the object and returns its text.
    pub(crate) fn text(self) -> String {
        self.0.close('}')
    }
}

impl fmt::Debug for ObjectWriter {
    /// Writes the size, never the content, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectWriter({} bytes)", self.0.text.len())
    }
}

/// Writer of the text of one JSON array, item by item.
pub struct ArrayWriter(WriterState);

impl Default for ArrayWriter {
    fn default() -> ArrayWriter {
        ArrayWriter::new()
    }
}

impl ArrayWriter {
    /// Starts an empty JSON array.
    pub fn new() -> ArrayWriter {
        ArrayWriter(WriterState::open(String::new(), '['))
    }

    /// Adds an item that is already JSON to the array; its bytes stay.
    pub fn raw(&mut self, value: &Json) {
        self.0.next().push_str(value.as_str());
    }

    /// Adds a string to the JSON array, escaped.
    pub fn str(&mut self, value: &str) {
        write_short(self.0.next(), value);
    }

    /// Adds an integer to the JSON array.
    pub fn int(&mut self, value: i64) {
        // Writing to a string cannot fail.
        _ = write!(self.0.next(), "{value}");
    }

    /// Adds a boolean to the JSON array.
    pub fn bool(&mut self, value: bool) {
        self.0.next().push_str(bool_literal(value));
    }

    /// Adds `null` to the JSON array.
    pub fn null(&mut self) {
        self.0.next().push_str("null");
    }

    /// Adds an item that is a JSON object, which `fill` writes.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter)) {
        object_in(self.0.next(), fill);
    }

    /// Adds an item that is a nested JSON array, which `fill` writes.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayWriter)) {
        array_in(self.0.next(), fill);
    }

    /// Completes the JSON array and returns it.
    pub fn finish(self) -> Json {
        Json::from_trusted_text(self.0.close(']'))
    }
}

impl fmt::Debug for ArrayWriter {
    /// Writes the size, never the content, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrayWriter({} bytes)", self.0.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_members_are_those_of_the_object() {
        let read = |text: &str| Json::read(text.into(), &Default::default()).unwrap();
        let mut o = ObjectWriter::new();
        o.raw_members(&read("{ }"));
        o.raw_members(&read(r#"{ "a": {}, "b":[1] }"#));
        o.raw_members(&read("[2]"));
        o.raw_members(&read(r#"{"c":"}"}"#));
        o.null("d");
        assert_eq!(
            o.finish().as_str(),
            r#"{"a": {}, "b":[1],"c":"}","d":null}"#
        );
    }
}
