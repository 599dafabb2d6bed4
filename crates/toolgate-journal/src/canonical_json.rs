//! Canonical JSON of the writer: RFC 8785 without fractions.

use crate::error::Error;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Largest integer. Beyond it, readers of RFC 8785 lose digits; record these numbers as strings.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Maximum nesting depth of a field.
const MAX_FIELD_DEPTH: usize = 60;

/// Returns the canonical JSON of a value.
pub(crate) fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    put(&mut out, value, 0)?;
    Ok(out)
}

/// Compares keys by UTF-16 code units, which differs from the order of UTF-8 bytes.
pub(crate) fn key_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Appends a JSON string with the shortest escapes.
pub(crate) fn put_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn put(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_FIELD_DEPTH {
        return Err(Error::entry(
            "a field is nested too deeply; record it as text",
        ));
    }
    match value {
        Value::Null => return Err(Error::entry("a field is null; leave it out")),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => put_integer(out, number)?,
        Value::String(text) => put_string(out, text),
        Value::Array(items) => put_array(out, items, depth)?,
        Value::Object(members) => put_object(out, members, depth)?,
    }
    Ok(())
}

fn put_integer(out: &mut String, number: &Number) -> Result<(), Error> {
    let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
    match size {
        Some(size) if size <= MAX_INTEGER => {
            let _ = write!(out, "{number}");
            Ok(())
        }
        Some(_) => Err(Error::entry(format!(
            "the integer {number} is beyond 2^53; record it as text"
        ))),
        None => Err(Error::entry(format!(
            "the number {number} is not an integer; record it as text or in smaller units"
        ))),
    }
}

fn put_array(out: &mut String, items: &[Value], depth: usize) -> Result<(), Error> {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        put(out, item, depth + 1)?;
    }
    out.push(']');
    Ok(())
}

fn put_object(out: &mut String, members: &Map<String, Value>, depth: usize) -> Result<(), Error> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|a, b| key_order(a.0, b.0));
    out.push('{');
    for (at, (key, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        put_string(out, key);
        out.push(':');
        put(out, value, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value, expected: &str) {
        assert_eq!(text(&value).unwrap(), expected);
    }

    #[test]
    fn serializes_canonically() {
        check(
            json!({"b": 1, "a": [true, false, -3], "": {}}),
            r#"{"":{},"a":[true,false,-3],"b":1}"#,
        );
        check(
            json!("\u{8}\t\n\u{c}\r\"\\\u{1f}\u{7f}\u{2028}é/"),
            "\"\\b\\t\\n\\f\\r\\\"\\\\\\u001f\u{7f}\u{2028}é/\"",
        );
        check(json!(9007199254740991_u64), "9007199254740991");
    }

    // The example of RFC 8785, section 3.2.3: U+1F600 sorts before U+FB33.
    #[test]
    fn keys_sort_by_utf16() {
        check(
            json!({"\u{fb33}": 1, "\u{1f600}": 2, "ö": 3, "€": 4, "1": 5}),
            "{\"1\":5,\"ö\":3,\"€\":4,\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
    }

    #[test]
    fn refuses_what_readers_disagree_on() {
        for value in [
            json!(1.5),
            json!(1.0),
            json!(null),
            json!(9007199254740993_u64),
            json!(i64::MIN),
        ] {
            assert!(
                matches!(text(&json!([value])), Err(Error::Entry(_))),
                "{value}"
            );
        }
    }
}
