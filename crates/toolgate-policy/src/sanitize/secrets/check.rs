//! Checks that tell a secret from a placeholder, code or prose that matches the same pattern.

use serde::Deserialize;

/// A check that a match must pass to count as a secret.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum SecretCheck {
    /// No check: the pattern is specific enough.
    #[default]
    None,
    /// Not a placeholder.
    Word,
    /// Not a placeholder, and letters mixed with digits or symbols.
    Mixed,
    /// `NAME:PASSWORD` in Base64.
    Basic,
}

impl SecretCheck {
    pub(super) fn holds(self, found: &str) -> bool {
        match self {
            SecretCheck::None => true,
            SecretCheck::Word => !placeholder(found),
            SecretCheck::Mixed => {
                !is_redacted(found) && mixed(found) && !placeholder(found) && !code(found)
            }
            SecretCheck::Basic => is_basic(found),
        }
    }
}

/// Returns whether a text is a redaction mark.
pub(super) fn is_redacted(text: &str) -> bool {
    let inner = text
        .strip_prefix(super::MARK_PREFIX)
        .and_then(|t| t.strip_suffix(']'));
    inner.is_some_and(|rule| {
        rule.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}

/// Returns whether a text is `NAME:PASSWORD` in Base64, as in HTTP Basic authentication, Docker and npm.
pub(super) fn is_basic(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let (mut bits, mut count, mut plain) = (0_u32, 0, Vec::new());
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            plain.push((bits >> count) as u8);
        }
    }
    let Ok(plain) = std::str::from_utf8(&plain) else {
        return false;
    };
    let parts = plain
        .split_once(':')
        .filter(|_| !plain.contains(char::is_control));
    parts.is_some_and(|(name, password)| !name.is_empty() && password.len() >= 3)
}

/// Substrings of placeholders that people write instead of a secret.
const STAND_INS: [&str; 19] = [
    "your",
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "xxxx",
    "****",
    "....",
    "dummy",
    "sample",
    "todo",
    "insert",
    "replace",
    "${",
    "{{",
    "%s",
    "[redacted",
    "redacted]",
];

/// Words that are not secrets on their own.
const PLAIN: [&str; 14] = [
    "password", "passwd", "pass", "pw", "pwd", "secret", "token", "user", "test", "foo", "bar",
    "null", "none", "x",
];

fn placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut bytes = lower.bytes();
    let first = bytes.next();
    PLAIN.contains(&lower.as_str())
        || text.starts_with(['$', '<', '%', '{', '*'])
        || bytes.all(|b| Some(b) == first)
        || STAND_INS.iter().any(|word| lower.contains(word))
}

/// Returns whether a text has letters, and digits or symbols that prose does not end with.
fn mixed(text: &str) -> bool {
    let letter = text.bytes().any(|b| b.is_ascii_alphabetic());
    let other = |b: u8| b.is_ascii_digit() || matches!(b, b'!' | b'#' | b'@' | b'^' | b'~' | b'&');
    letter && text.bytes().any(other)
}

/// Returns whether a text is program code: a path of names (`process.env.KEY_2`), or a constant name
/// (`READ_TOKEN_2`).
fn code(text: &str) -> bool {
    let name = |part: &str| {
        let mut chars = part.bytes();
        chars
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && chars.all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let parts: Vec<&str> = text.split(['.', '-']).collect();
    let long = parts
        .iter()
        .any(|part| part.len() > 16 && entropy(part) > 3.5);
    let upper = text
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (parts.len() > 1 && !long && parts.iter().all(|part| name(part)))
        || (upper && text.contains('_'))
        || (text.contains("::") && !long)
}

/// Returns the Shannon entropy of a text, in bits per byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut seen = [0_u32; 256];
    text.bytes().for_each(|b| seen[usize::from(b)] += 1);
    let all = text.len().max(1) as f64;
    let bits = seen.iter().filter(|n| **n > 0).map(|n| {
        let share = f64::from(*n) / all;
        -share * share.log2()
    });
    bits.sum()
}
