//! `resources/read`: contents of a resource.

use super::{list::CacheHint, meta, resource_contents::ResourceContents};
use crate::json::{Json, JsonKind};

/// Method name `resources/read`, which returns the contents of a resource.
pub const NAME: &str = "resources/read";
/// Method name `resources/subscribe`, which subscribes to updates of one resource (revisions up to 2025-11-25).
pub const SUBSCRIBE: &str = "resources/subscribe";
/// Method name `resources/unsubscribe`, which ends such a subscription (revisions up to 2025-11-25).
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Result of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResult {
    /// Contents of the resource, each with a URI and `text` or `blob`, unchanged.
    pub contents: Vec<Json>,
    /// Cache hint of the result.
    pub hint: CacheHint,
    /// `_meta` of the result without the protocol's keys.
    pub meta: Option<Json>,
}

impl ReadResult {
    /// Reads the result of `resources/read`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(result: &Json) -> Result<ReadResult, &'static str> {
        let contents = result
            .get("contents")
            .filter(|c| c.kind() == JsonKind::Array)
            .ok_or("\"contents\" is missing or not an array")?;
        let contents: Vec<Json> = contents.items().collect();
        if !contents.iter().all(is_contents) {
            return Err(
                "an element of \"contents\" lacks a string \"uri\", or has neither a string \"text\" nor a string \"blob\"",
            );
        }
        Ok(ReadResult {
            contents,
            hint: CacheHint::read(result),
            meta: result
                .get("_meta")
                .as_ref()
                .and_then(meta::without_reserved_keys),
        })
    }
}

impl ReadResult {
    /// Returns the contents of the resource with typed accessors: text or decoded bytes.
    pub fn parts(&self) -> impl Iterator<Item = ResourceContents> + '_ {
        let parts = self.contents.iter().cloned();
        parts.map(|json| ResourceContents { json })
    }
}

fn is_contents(part: &Json) -> bool {
    let text = |key: &str| part.get(key).is_some_and(|v| v.kind() == JsonKind::String);
    text("uri") && (text("text") || text("blob"))
}
