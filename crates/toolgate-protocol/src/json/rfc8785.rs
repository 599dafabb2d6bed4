//! Canonical JSON of audit records: RFC 8785 without fractions and `null`.
//!
//! Digests of definitions and arguments use another form, [`Json::canonical`](super::Json::canonical), which keeps every
//! number. Here, keys are sorted by UTF-16 code units, strings have the shortest escapes, and numbers are integers within
//! 2^53.

mod read;

pub use read::{JsonFlaw, read_object};

use super::text::write_short;
use serde_json::{Map, Number, Value};
use std::{cmp::Ordering, fmt, fmt::Write as _};

/// Largest integer, in either direction. Beyond it, readers of RFC 8785 lose digits.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Maximum nesting depth of a value that is written. Less than that of a record, which contains it.
const MAX_VALUE_DEPTH: usize = 60;

/// JSON value without a canonical form, such as a fraction or `null`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NonCanonicalValue {
    /// A value is nested more than 60 levels deep.
    TooDeep,
    /// A value is `null`.
    Null,
    /// An integer is beyond 2^53.
    LargeInteger(Number),
    /// A number has a fraction or an exponent.
    Fraction(Number),
}

impl fmt::Display for NonCanonicalValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => f.write_str("a field is nested too deeply; record it as text"),
            Self::Null => f.write_str("a field is null; leave it out"),
            Self::LargeInteger(number) => {
                write!(f, "the integer {number} is beyond ±2^53; record it as text")
            }
            Self::Fraction(number) => write!(
                f,
                "the number {number} is not an integer; record it as text or in smaller units"
            ),
        }
    }
}

impl std::error::Error for NonCanonicalValue {}

/// Appends the canonical JSON of a value ([RFC 8785]), the form of audit records.
///
/// # Errors
/// The value has a part without a canonical form. What was written before it stays.
///
/// [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
pub fn write(out: &mut String, value: &Value) -> Result<(), NonCanonicalValue> {
    put(out, value, 0)
}

/// Appends a quoted JSON string with the shortest escapes, as [RFC 8785] requires.
///
/// [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
pub fn write_string(out: &mut String, text: &str) {
    write_short(out, text);
}

/// Appends a canonical JSON number: `number`, or the largest canonical integer if that is smaller.
pub fn write_number(out: &mut String, number: u64) {
    let mut left = number.min(MAX_INTEGER);
    let mut digits = [0; 16];
    let mut at = digits.len();
    // An integer within 2^53 has at most 16 digits.
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        at -= 1;
        if left == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Compares object keys by UTF-16 code units, which is the member order of [RFC 8785]. That differs from the order of
/// bytes only between characters beyond U+FFFF, whose surrogates come first, and those from U+E000 to U+FFFF.
///
/// [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    const BEYOND_SURROGATES: std::ops::Range<u8> = 0xee..0xf0;
    // Most keys differ in their first letter.
    if let (Some(a), Some(b)) = (a.as_bytes().first(), b.as_bytes().first())
        && a != b
        && (a | b).is_ascii()
    {
        return a.cmp(b);
    }
    let differing = a.bytes().zip(b.bytes()).find(|(a, b)| a != b);
    match differing {
        None => a.len().cmp(&b.len()),
        Some((0xf0.., b)) if BEYOND_SURROGATES.contains(&b) => Ordering::Less,
        Some((a, 0xf0..)) if BEYOND_SURROGATES.contains(&a) => Ordering::Greater,
        Some((a, b)) => a.cmp(&b),
    }
}

fn put(out: &mut String, value: &Value, depth: usize) -> Result<(), NonCanonicalValue> {
    if depth > MAX_VALUE_DEPTH {
        return Err(NonCanonicalValue::TooDeep);
    }
    match value {
        Value::Null => return Err(NonCanonicalValue::Null),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => put_integer(out, number)?,
        Value::String(text) => write_string(out, text),
        Value::Array(items) => put_array(out, items, depth)?,
        Value::Object(members) => put_object(out, members, depth)?,
    }
    Ok(())
}

fn put_integer(out: &mut String, number: &Number) -> Result<(), NonCanonicalValue> {
    let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
    match size {
        Some(size) if size <= MAX_INTEGER => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{number}");
            Ok(())
        }
        Some(_) => Err(NonCanonicalValue::LargeInteger(number.clone())),
        None => Err(NonCanonicalValue::Fraction(number.clone())),
    }
}

fn put_array(out: &mut String, items: &[Value], depth: usize) -> Result<(), NonCanonicalValue> {
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

fn put_object(
    out: &mut String,
    members: &Map<String, Value>,
    depth: usize,
) -> Result<(), NonCanonicalValue> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|a, b| compare_keys(a.0, b.0));
    out.push('{');
    for (at, (key, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        put(out, value, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests;
