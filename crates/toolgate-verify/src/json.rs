//! JSON tree and its canonical serialization (RFC 8785), for integers only.

use std::collections::BTreeMap;

const MAX_NESTING: usize = 64;
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// JSON value of a record.
#[derive(Clone, Debug)]
pub(crate) enum RecordValue {
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<RecordValue>),
    /// Object, by the UTF-16 code units of its names, which is the canonical order.
    Map(BTreeMap<Vec<u16>, RecordValue>),
}

/// Parses one line; `None` unless it is the canonical JSON of an object.
pub(crate) fn read(line: &[u8]) -> Option<RecordValue> {
    let text = std::str::from_utf8(line).ok()?;
    let mut left = text.chars().peekable();
    let value = value(&mut left, 1)?;
    let same =
        left.next().is_none() && matches!(value, RecordValue::Map(_)) && value.text() == text;
    same.then_some(value)
}

/// Parses one line that need not be canonical; `None` unless it is JSON of an object without white space.
pub(crate) fn read_any(line: &[u8]) -> Option<RecordValue> {
    let mut left = std::str::from_utf8(line).ok()?.chars().peekable();
    let value = value(&mut left, 1)?;
    (left.next().is_none() && matches!(value, RecordValue::Map(_))).then_some(value)
}

type CharStream<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn value(left: &mut CharStream<'_>, depth: usize) -> Option<RecordValue> {
    if depth > MAX_NESTING {
        return None;
    }
    match left.peek()? {
        '{' => map(left, depth),
        '[' => list(left, depth),
        '"' => string(left).map(RecordValue::Text),
        't' => word(left, "true").map(|()| RecordValue::Bool(true)),
        'f' => word(left, "false").map(|()| RecordValue::Bool(false)),
        _ => number(left),
    }
}

fn word(left: &mut CharStream<'_>, word: &str) -> Option<()> {
    word.chars().all(|c| left.next() == Some(c)).then_some(())
}

fn number(left: &mut CharStream<'_>) -> Option<RecordValue> {
    let mut text = String::new();
    while let Some(c) = left.next_if(|c| c.is_ascii_digit() || *c == '-') {
        text.push(c);
    }
    let number: i64 = text.parse().ok()?;
    (number.abs() <= MAX_INTEGER).then_some(RecordValue::Int(number))
}

fn list(left: &mut CharStream<'_>, depth: usize) -> Option<RecordValue> {
    let mut items = Vec::new();
    left.next();
    while left.peek() != Some(&']') {
        if !items.is_empty() {
            word(left, ",")?;
        }
        items.push(value(left, depth + 1)?);
    }
    left.next();
    Some(RecordValue::List(items))
}

fn map(left: &mut CharStream<'_>, depth: usize) -> Option<RecordValue> {
    let mut members = BTreeMap::new();
    left.next();
    while left.peek() != Some(&'}') {
        if !members.is_empty() {
            word(left, ",")?;
        }
        let name = string(left)?;
        word(left, ":")?;
        // A duplicate name is lost here, so that the serialization differs from the line.
        members.insert(name.encode_utf16().collect(), value(left, depth + 1)?);
    }
    left.next();
    Some(RecordValue::Map(members))
}

fn string(left: &mut CharStream<'_>) -> Option<String> {
    word(left, "\"")?;
    let mut text = String::new();
    loop {
        match left.next()? {
            '"' => return Some(text),
            '\\' => text.push(match left.next()? {
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'f' => '\u{c}',
                'r' => '\r',
                'u' => {
                    let mut code = 0;
                    for _ in 0..4 {
                        code = code * 16 + left.next()?.to_digit(16)?;
                    }
                    char::from_u32(code)?
                }
                c => c,
            }),
            c => text.push(c),
        }
    }
}

impl RecordValue {
    /// Returns a member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&RecordValue> {
        let RecordValue::Map(members) = self else {
            return None;
        };
        members.get(&name.encode_utf16().collect::<Vec<u16>>())
    }

    /// Returns the text of a member.
    pub(crate) fn str(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            RecordValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number of a member; `None` if it is negative.
    pub(crate) fn num(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            RecordValue::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns the object without a member.
    pub(crate) fn without(&self, name: &str) -> RecordValue {
        let mut copy = self.clone();
        if let RecordValue::Map(members) = &mut copy {
            members.remove(&name.encode_utf16().collect::<Vec<u16>>());
        }
        copy
    }

    /// Returns the canonical JSON.
    pub(crate) fn text(&self) -> String {
        match self {
            RecordValue::Bool(value) => value.to_string(),
            RecordValue::Int(value) => value.to_string(),
            RecordValue::Text(text) => quoted(text),
            RecordValue::List(items) => {
                let items: Vec<String> = items.iter().map(RecordValue::text).collect();
                format!("[{}]", items.join(","))
            }
            RecordValue::Map(members) => {
                let member = |(name, value): (&Vec<u16>, &RecordValue)| {
                    let name = String::from_utf16_lossy(name);
                    format!("{}:{}", quoted(&name), value.text())
                };
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
