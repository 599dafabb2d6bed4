//! Problems with arguments that do not match the type of a handler, described without the values of the arguments.
//!
//! The caller, its model and the audit log read the description, and an argument may be a secret. `serde` quotes the
//! received value in its errors.

use serde_json::Value;
use std::fmt;

/// Minimum length of an argument that a description must not quote, in bytes. Shorter ones occur in any text.
const MIN_WITHHELD_BYTES: usize = 4;

/// Arguments that do not match the type of a handler: what is expected, and the kind of what was received.
#[derive(Debug)]
pub(super) enum ArgumentProblem {
    /// A value of another kind or from another set than the expected one.
    Mismatch {
        expected: String,
        received: &'static str,
    },
    /// The type rejected the arguments with a text of its own.
    Rejected(String),
}

impl ArgumentProblem {
    /// Reads the text of a `serde` error about these arguments.
    pub(super) fn read(text: &str, arguments: &Value) -> ArgumentProblem {
        let standard = received_kind(text).and_then(|received| {
            let (_, expected) = text.rsplit_once(", expected ")?;
            Some(ArgumentProblem::Mismatch {
                expected: expected.to_owned(),
                received,
            })
        });
        standard.unwrap_or_else(|| match quotes(text, arguments) {
            true => ArgumentProblem::Mismatch {
                expected: "a value that the handler accepts".to_owned(),
                received: "another value",
            },
            false => ArgumentProblem::Rejected(text.to_owned()),
        })
    }

    /// Returns the expected value as a phrase, and the kind of the received value.
    pub(super) fn into_parts(self) -> (String, &'static str) {
        match self {
            ArgumentProblem::Mismatch { expected, received } => (expected, received),
            ArgumentProblem::Rejected(text) => (text, "a value that does not match"),
        }
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentProblem::Mismatch { expected, received } => {
                write!(f, "expected {expected}, got {received}")
            }
            ArgumentProblem::Rejected(text) => f.write_str(text),
        }
    }
}

/// Returns the kind of the received value, if the text is one of those with which `serde` quotes a value.
fn received_kind(text: &str) -> Option<&'static str> {
    if text.starts_with("invalid length ") {
        return Some("another length");
    }
    if text.starts_with("unknown variant ") {
        return Some("another value");
    }
    let value = text
        .strip_prefix("invalid type: ")
        .or_else(|| text.strip_prefix("invalid value: "))?;
    const KINDS: [(&str, &str); 9] = [
        ("string ", "a string"),
        ("character ", "a string"),
        ("integer ", "an integer"),
        ("floating point ", "a number"),
        ("boolean ", "a boolean"),
        ("null", "null"),
        ("unit value", "null"),
        ("sequence", "an array"),
        ("map", "an object"),
    ];
    let kind = KINDS.iter().find(|(start, _)| value.starts_with(start));
    Some(kind.map_or("another value", |(_, kind)| kind))
}

/// Returns whether a text quotes a string or a key of the arguments, at any depth.
fn quotes(text: &str, arguments: &Value) -> bool {
    let is_quoted = |word: &str| {
        let escaped = format!("{word:?}");
        let inner = escaped.trim_matches('"');
        word.len() >= MIN_WITHHELD_BYTES && (text.contains(word) || text.contains(inner))
    };
    match arguments {
        Value::String(word) => is_quoted(word),
        Value::Array(items) => items.iter().any(|item| quotes(text, item)),
        Value::Object(members) => members.values().any(|member| quotes(text, member)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, de::DeserializeOwned};
    use serde_json::json;

    const SECRET: &str = "ghp_0123456789, expected \"x\"";

    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Quoting;

    impl TryFrom<String> for Quoting {
        type Error = String;

        fn try_from(text: String) -> Result<Quoting, String> {
            Err(format!("{text:?} is not a color"))
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Explaining;

    impl TryFrom<String> for Explaining {
        type Error = String;

        fn try_from(_: String) -> Result<Explaining, String> {
            Err("a color has six digits".to_owned())
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Kelvin,
    }

    fn problem<T: DeserializeOwned + fmt::Debug>(arguments: &Value) -> String {
        let error = serde_json::from_value::<T>(arguments.clone()).unwrap_err();
        let text = ArgumentProblem::read(&error.to_string(), arguments).to_string();
        assert!(!text.contains("ghp_"), "{text}");
        text
    }

    #[test]
    fn never_quotes_the_value_of_an_argument() {
        let secret = json!([SECRET]);
        assert_eq!(problem::<Vec<i64>>(&secret), "expected i64, got a string");
        assert_eq!(
            problem::<Vec<char>>(&secret),
            "expected a character, got a string"
        );
        assert_eq!(
            problem::<Vec<Unit>>(&secret),
            "expected `celsius` or `kelvin`, got another value"
        );
        assert_eq!(
            problem::<Vec<Quoting>>(&secret),
            "expected a value that the handler accepts, got another value"
        );
        assert_eq!(
            problem::<Vec<u8>>(&json!([4711])),
            "expected u8, got an integer"
        );
    }

    #[test]
    fn keeps_the_text_of_a_type_that_does_not_quote() {
        assert_eq!(
            problem::<Vec<Explaining>>(&json!([SECRET])),
            "a color has six digits"
        );
    }
}
