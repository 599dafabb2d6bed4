//! SHA-256 digests of definitions and arguments.

use ring::digest::{SHA256, digest};
use std::sync::Arc;
use toolgate_core::{Item, Json};
use toolgate_protocol::hex;

/// SHA-256 of a definition as canonical JSON, hexadecimal.
pub(crate) struct DefinitionDigest(String);

impl DefinitionDigest {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the digest of the item's definition, computed once per item.
pub(crate) fn definition(item: &Item) -> Arc<DefinitionDigest> {
    item.cached(|item| DefinitionDigest(of_json(item.def.json())))
}

/// Returns the SHA-256 of canonical JSON (sorted keys, number tokens unchanged), hexadecimal.
pub(crate) fn of_json(json: &Json) -> String {
    of_text(&json.canonical())
}

/// Returns the SHA-256 of a text, hexadecimal.
pub(crate) fn of_text(text: &str) -> String {
    of_bytes(text.as_bytes())
}

/// Returns the SHA-256 of bytes, hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes).as_ref())
}
