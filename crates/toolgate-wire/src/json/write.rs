//! Writes JSON with raw parts spliced in, no tree in between.

use super::Json;

/// Writes one object.
#[derive(Debug)]
pub struct ObjectWriter(String);

/// Writes one array.
#[derive(Debug)]
pub struct ArrayWriter(String);

impl Default for ObjectWriter {
    fn default() -> ObjectWriter {
        ObjectWriter::new()
    }
}

impl ObjectWriter {
    /// An empty object.
    pub fn new() -> ObjectWriter {
        ObjectWriter(String::from("{"))
    }

    fn key(&mut self, key: &str) -> &mut String {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_string(&mut self.0, key);
        self.0.push(':');
        &mut self.0
    }

    /// A member that is JSON already; its bytes stay.
    pub fn raw(&mut self, key: &str, value: &Json) {
        self.key(key).push_str(value.as_str());
    }

    /// A string.
    pub fn str(&mut self, key: &str, value: &str) {
        write_string(self.key(key), value);
    }

    /// An integer.
    pub fn int(&mut self, key: &str, value: i64) {
        self.key(key).push_str(&value.to_string());
    }

    /// `true` or `false`.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.key(key).push_str(if value { "true" } else { "false" });
    }

    /// `null`.
    pub fn null(&mut self, key: &str) {
        self.key(key).push_str("null");
    }

    /// An object.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut ObjectWriter)) {
        let mut inner = ObjectWriter::new();
        fill(&mut inner);
        self.key(key).push_str(inner.finish().as_str());
    }

    /// An array.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter)) {
        let mut inner = ArrayWriter(String::from("["));
        fill(&mut inner);
        self.key(key).push_str(inner.finish().as_str());
    }

    /// The object.
    pub fn finish(mut self) -> Json {
        self.0.push('}');
        Json::own(self.0)
    }
}

impl ArrayWriter {
    fn next(&mut self) -> &mut String {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        &mut self.0
    }

    /// An item that is JSON already; its bytes stay.
    pub fn raw(&mut self, value: &Json) {
        self.next().push_str(value.as_str());
    }

    /// A string.
    pub fn str(&mut self, value: &str) {
        write_string(self.next(), value);
    }

    /// An object.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter)) {
        let mut inner = ObjectWriter::new();
        fill(&mut inner);
        self.raw(&inner.finish());
    }

    fn finish(mut self) -> Json {
        self.0.push(']');
        Json::own(self.0)
    }
}

/// Appends a string in quotes, escaped as little as possible.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|b| b < 0x20 || b == b'"' || b == b'\\')
    {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut signs = special.chars();
        match signs.next() {
            Some(sign @ ('"' | '\\')) => out.extend(['\\', sign]),
            Some(control) => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            None => {}
        }
        rest = signs.as_str();
    }
    out.push_str(rest);
    out.push('"');
}
