//! Values of the headers that repeat parts of a message.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

/// Prefix and suffix of a Base64 value.
const BASE64_MARKERS: (&str, &str) = ("=?base64?", "?=");

/// Encodes a text as a header value: unchanged where that is safe, else as marked Base64.
pub(crate) fn encode_value(text: &str) -> HeaderValue {
    let plain = Some(text).filter(|text| is_plain(text));
    let plain = plain.and_then(|text| HeaderValue::from_str(text).ok());
    plain.unwrap_or_else(|| {
        let coded = format!(
            "{}{}{}",
            BASE64_MARKERS.0,
            STANDARD.encode(text),
            BASE64_MARKERS.1
        );
        HeaderValue::from_str(&coded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_plain(text: &str) -> bool {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    // A reader that ignores the case of the markers would decode a value that only resembles them.
    let marked = text
        .get(..BASE64_MARKERS.0.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(BASE64_MARKERS.0));
    printable && !marked && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: HTTPM-25, HTTPM-29.
    #[test]
    fn a_value_that_is_not_plain_is_base64() {
        let check = |text: &str, expected: &str| {
            assert_eq!(encode_value(text).to_str().unwrap(), expected, "{text:?}");
        };
        check("read_file", "read_file");
        check("a b, c: ~", "a b, c: ~");
        check("", "");
        check("=?base64", "=?base64");
        check(" a", "=?base64?IGE=?=");
        check("a ", "=?base64?YSA=?=");
        check("a\tb", "=?base64?YQli?=");
        check("a\r\nb", "=?base64?YQ0KYg==?=");
        check("é", "=?base64?w6k=?=");
        check("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
        check("=?BASE64?YQ==?=", "=?base64?PT9CQVNFNjQ/WVE9PT89?=");
    }
}
