//! Change of one entry, and the digest that is stored beside its value.

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// Change of one key: a new value, or its removal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoreChange {
    pub(crate) version: u64,
    pub(crate) table: String,
    pub(crate) key: String,
    /// New value; `None` removes the key.
    pub(crate) value: Option<Value>,
}

/// Returns the digest of an entry, over all its columns.
pub(crate) fn entry_digest(version: u64, table: &str, key: &str, value: &str) -> [u8; 32] {
    // With the lengths, no two entries have the same text.
    let text = format!(
        "{version}:{}:{table}:{}:{key}:{value}",
        table.len(),
        key.len()
    );
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}
