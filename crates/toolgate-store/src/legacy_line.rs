//! One line of the state file of earlier versions.

use crate::change::StoreChange;
use ring::digest;
use serde_json::json;
use toolgate_protocol::{hex, json::Json};

/// Length in bytes of `,"h":"`, 16 digits and `"}`.
const HASH_SUFFIX_BYTES: usize = 24;

impl StoreChange {
    /// Appends the line and a newline to `out`.
    pub(crate) fn append_line(&self, out: &mut String) {
        let (version, table, key) = (self.version, json!(self.table), json!(self.key));
        let mut body = format!("{{\"n\":{version},\"t\":{table},\"k\":{key}");
        if let Some(value) = &self.value {
            body.push_str(",\"v\":");
            body.push_str(&value.to_string());
        }
        let hash = check(body.as_bytes());
        out.push_str(&body);
        out.push_str(&format!(",\"h\":\"{hash}\"}}\n"));
    }

    /// Completes the text of an object before its hash to a line without newline, for fuzz targets.
    pub(crate) fn with_hash(body: &[u8]) -> Vec<u8> {
        let hash = format!(",\"h\":\"{}\"}}", check(body));
        [body, hash.as_bytes()].concat()
    }

    /// Parses a line without its newline; `None` if its form or hash is wrong.
    pub(crate) fn parse_line(line: &[u8]) -> Option<StoreChange> {
        let (body, tail) = line.split_at_checked(line.len().checked_sub(HASH_SUFFIX_BYTES)?)?;
        let hash = tail.strip_prefix(b",\"h\":\"")?.strip_suffix(b"\"}")?;
        if hash != check(body).as_bytes() {
            return None;
        }
        let change = Json::read_stored(line).ok()?;
        Some(StoreChange {
            version: change.get("n")?.u64()?,
            table: change.get("t")?.string()?,
            key: change.get("k")?.string()?,
            value: change.get("v").map(|value| value.to_value()),
        })
    }
}

fn check(body: &[u8]) -> String {
    let mut hash = hex::encode(digest::digest(&digest::SHA256, body).as_ref());
    hash.truncate(16);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(version: u64, table: String, key: String, value in proptest::option::of(".*")) {
            let value = value.map(|text| json!({"text": text, "n": 1}));
            let change = StoreChange { version, table, key, value };
            let mut line = String::new();
            change.append_line(&mut line);
            let line = line.strip_suffix('\n').unwrap();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(StoreChange::parse_line(line.as_bytes()), Some(change));
        }
    }

    #[test]
    fn detects_every_flipped_byte() {
        let mut line = String::new();
        let value = Some(json!({"a": 1}));
        let change = StoreChange {
            version: 7,
            table: "grants".into(),
            key: "g-1".into(),
            value,
        };
        change.append_line(&mut line);
        let line = line.trim_end().as_bytes();
        for at in 0..line.len() {
            let mut bad = line.to_vec();
            bad[at] ^= 1;
            assert_eq!(StoreChange::parse_line(&bad), None, "byte {at}");
        }
    }
}
