//! Digests that bind: of a definition and of arguments.

use ring::digest::{SHA256, digest};
use std::sync::Arc;
use toolgate_core::{Item, Json};

/// SHA-256 of a definition in canonical form, hexadecimal.
pub(crate) struct Definition(String);

impl Definition {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The digest of the item's definition; worked out once.
pub(crate) fn definition(item: &Item) -> Arc<Definition> {
    item.memo(|item| Definition(of(item.def.json())))
}

/// SHA-256 of a JSON text in canonical form (sorted keys, number tokens as they stand), hexadecimal.
pub(crate) fn of(json: &Json) -> String {
    of_text(&json.canonical())
}

/// SHA-256 of a text, hexadecimal.
pub(crate) fn of_text(text: &str) -> String {
    of_bytes(text.as_bytes())
}

/// SHA-256 of bytes, hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}
