//! Writes JSON with raw parts spliced in, no tree in between.

use super::{Json, text::write_short};
use std::fmt::{self, Write};

/// Bytes that most objects need, so that the text does not grow in steps.
const ROOM: usize = 128;

/// What both writers share: the text so far, and where the commas go.
struct Out {
    text: String,
    empty: bool,
}

impl Out {
    fn open(mut text: String, sign: char) -> Out {
        text.push(sign);
        Out { text, empty: true }
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

/// Lets `fill` write an object at the end of the text, in the same buffer.
fn object_in(text: &mut String, fill: impl FnOnce(&mut ObjectWriter)) {
    let mut inner = ObjectWriter(Out::open(std::mem::take(text), '{'));
    fill(&mut inner);
    *text = inner.0.close('}');
}

/// The same with an array.
fn array_in(text: &mut String, fill: impl FnOnce(&mut ArrayWriter)) {
    let mut inner = ArrayWriter(Out::open(std::mem::take(text), '['));
    fill(&mut inner);
    *text = inner.0.close(']');
}

fn word(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// Writes one object. That no key comes twice is up to the caller.
pub struct ObjectWriter(Out);

impl Default for ObjectWriter {
    fn default() -> ObjectWriter {
        ObjectWriter::new()
    }
}

impl ObjectWriter {
    /// An empty object.
    pub fn new() -> ObjectWriter {
        ObjectWriter::of(ROOM)
    }

    /// An empty object with room for so many bytes: for who knows how many will come.
    pub(crate) fn of(bytes: usize) -> ObjectWriter {
        ObjectWriter(Out::open(String::with_capacity(bytes), '{'))
    }

    fn key(&mut self, key: &str) -> &mut String {
        let out = self.0.next();
        write_short(out, key);
        out.push(':');
        out
    }

    /// A member that is JSON already; its bytes stay.
    pub fn raw(&mut self, key: &str, value: &Json) {
        self.key(key).push_str(value.as_str());
    }

    /// A string.
    pub fn str(&mut self, key: &str, value: &str) {
        write_short(self.key(key), value);
    }

    /// An integer.
    pub fn int(&mut self, key: &str, value: i64) {
        // Writing to a string cannot fail.
        _ = write!(self.key(key), "{value}");
    }

    /// `true` or `false`.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.key(key).push_str(word(value));
    }

    /// `null`.
    pub fn null(&mut self, key: &str) {
        self.key(key).push_str("null");
    }

    /// An object.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut ObjectWriter)) {
        object_in(self.key(key), fill);
    }

    /// An array.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter)) {
        array_in(self.key(key), fill);
    }

    /// Text that this program made and knows to be JSON, such as a constant. Never foreign text: nothing checks it but
    /// debug builds.
    pub fn raw_text(&mut self, key: &str, json: &str) {
        debug_assert!(Json::read(json.into(), &super::Limits::default()).is_ok());
        self.key(key).push_str(json);
    }

    /// A member that stands in the code as it is written, key and value.
    pub(crate) fn fixed(&mut self, member: &'static str) {
        debug_assert!(
            Json::read(format!("{{{member}}}").into(), &super::Limits::default()).is_ok()
        );
        self.0.next().push_str(member);
    }

    /// The object.
    pub fn finish(self) -> Json {
        Json::own(self.text())
    }

    /// The text of the object.
    pub(crate) fn text(self) -> String {
        self.0.close('}')
    }
}

impl fmt::Debug for ObjectWriter {
    /// How much was written, never what: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectWriter({} bytes)", self.0.text.len())
    }
}

/// Writes one array.
pub struct ArrayWriter(Out);

impl Default for ArrayWriter {
    fn default() -> ArrayWriter {
        ArrayWriter::new()
    }
}

impl ArrayWriter {
    /// An empty array.
    pub fn new() -> ArrayWriter {
        ArrayWriter(Out::open(String::new(), '['))
    }

    /// An item that is JSON already; its bytes stay.
    pub fn raw(&mut self, value: &Json) {
        self.0.next().push_str(value.as_str());
    }

    /// A string.
    pub fn str(&mut self, value: &str) {
        write_short(self.0.next(), value);
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        // Writing to a string cannot fail.
        _ = write!(self.0.next(), "{value}");
    }

    /// `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.0.next().push_str(word(value));
    }

    /// `null`.
    pub fn null(&mut self) {
        self.0.next().push_str("null");
    }

    /// An object.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter)) {
        object_in(self.0.next(), fill);
    }

    /// An array.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayWriter)) {
        array_in(self.0.next(), fill);
    }

    /// The array.
    pub fn finish(self) -> Json {
        Json::own(self.0.close(']'))
    }
}

impl fmt::Debug for ArrayWriter {
    /// How much was written, never what: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrayWriter({} bytes)", self.0.text.len())
    }
}
