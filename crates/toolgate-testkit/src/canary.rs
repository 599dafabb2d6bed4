//! Canary secrets that a test plants, and that must not appear anywhere.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use std::{collections::HashMap, fmt::Write};

/// Length of the prefix by which a spelling is indexed, in bytes; a shorter spelling is compared as a whole.
const CANARY_PREFIX_BYTES: usize = 16;

/// Returns the spellings of a secret that a program may write: unchanged, in hexadecimal, URL-encoded, and in Base64
/// after any other bytes.
pub fn spellings(secret: &str) -> Vec<String> {
    let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let url = secret.replace('-', "%2D").replace('/', "%2F");
    let mut all = vec![secret.to_owned(), hex.to_uppercase(), hex, url];
    for before in 0..3 {
        let text = STANDARD_NO_PAD.encode(format!("{}{secret}", "x".repeat(before)));
        // The characters at both ends depend on the bytes beside the secret.
        let inner = text.get(4..text.len().saturating_sub(4));
        all.extend(inner.filter(|inner| !inner.is_empty()).map(str::to_owned));
    }
    all
}

/// A set of secrets in all their spellings, found in one pass.
pub struct CanarySet {
    by_head: HashMap<Vec<u8>, Vec<String>>,
    short: Vec<String>,
}

impl CanarySet {
    /// Creates a set of secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> CanarySet {
        let mut canaries = CanarySet {
            by_head: HashMap::new(),
            short: Vec::new(),
        };
        for spelling in secrets.into_iter().flat_map(spellings) {
            match spelling.as_bytes().get(..CANARY_PREFIX_BYTES) {
                Some(head) => {
                    let of = canaries.by_head.entry(head.to_vec()).or_default();
                    of.push(spelling);
                }
                None => canaries.short.push(spelling),
            }
        }
        canaries
    }

    /// Returns a spelling that these bytes contain.
    pub fn in_bytes(&self, bytes: &[u8]) -> Option<&str> {
        let at = |at: usize| {
            let of = self.by_head.get(bytes.get(at..at + CANARY_PREFIX_BYTES)?)?;
            let here = |spelling: &&String| bytes[at..].starts_with(spelling.as_bytes());
            of.iter().find(here).map(String::as_str)
        };
        let long = (0..bytes.len().saturating_sub(CANARY_PREFIX_BYTES - 1)).find_map(at);
        let is = |short: &&String| {
            let short = short.as_bytes();
            !short.is_empty() && bytes.windows(short.len()).any(|window| window == short)
        };
        long.or_else(|| self.short.iter().find(is).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_spelling_at_every_position() {
        let secrets = [
            "canary-one-3Ks9Mn4Bv7Qw1Ez6",
            "canary-two-8Jd5Ua2Xi7Oc4Ry9",
            "short",
        ];
        let canaries = CanarySet::new(secrets);
        for spelling in secrets.into_iter().flat_map(spellings) {
            for text in [
                spelling.clone(),
                format!("canary-one {spelling}"),
                format!("\u{e9}{spelling}x"),
            ] {
                assert!(canaries.in_bytes(text.as_bytes()).is_some(), "{text}");
            }
        }
        for text in [
            "",
            "canary-one-3Ks9Mn4Bv7Qw1Ez",
            "anary-two-8Jd5Ua2Xi7Oc4Ry9",
            "shor",
        ] {
            assert_eq!(canaries.in_bytes(text.as_bytes()), None, "{text}");
        }
        let behind = STANDARD_NO_PAD.encode("{\"a\": \"canary-one-3Ks9Mn4Bv7Qw1Ez6\"}");
        assert!(canaries.in_bytes(behind.as_bytes()).is_some(), "{behind}");
    }
}
