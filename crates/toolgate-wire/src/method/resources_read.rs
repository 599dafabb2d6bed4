//! `resources/read`: the contents of a resource.

use super::{list::CacheHint, meta};
use crate::json::{Json, Kind};

/// The method.
pub const NAME: &str = "resources/read";
/// Asks to hear of changes of one resource (revisions up to 2025-11-25).
pub const SUBSCRIBE: &str = "resources/subscribe";
/// Asks to hear of them no longer (revisions up to 2025-11-25).
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// What a resource holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResult {
    /// Its parts, each with a URI and `text` or `blob`, as they came.
    pub contents: Vec<Json>,
    /// How long it is fresh.
    pub hint: CacheHint,
    /// The `_meta` of the result without the keys of the protocol.
    pub meta: Option<Json>,
}

impl ReadResult {
    /// Reads a complete result.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(result: &Json) -> Result<ReadResult, &'static str> {
        let contents = result
            .get("contents")
            .filter(|c| c.kind() == Kind::Array)
            .ok_or("the result has no \"contents\" array")?;
        let contents: Vec<Json> = contents.items().collect();
        if !contents.iter().all(is_contents) {
            return Err("a part of \"contents\" has no \"uri\", or neither \"text\" nor \"blob\"");
        }
        Ok(ReadResult {
            contents,
            hint: CacheHint::read(result),
            meta: result.get("_meta").as_ref().and_then(meta::foreign),
        })
    }
}

fn is_contents(part: &Json) -> bool {
    let text = |key: &str| part.get(key).is_some_and(|v| v.kind() == Kind::String);
    text("uri") && (text("text") || text("blob"))
}
