//! `completion/complete`: what an argument may be.

use super::meta;
use crate::json::{Json, Kind};

/// What an argument may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompleteResult {
    /// The best ones first; at most [`CompleteResult::MOST`].
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// Whether there are more.
    pub more: Option<bool>,
    /// The `_meta` of the result without the keys of the protocol.
    pub meta: Option<Json>,
}

impl CompleteResult {
    /// The most values that one answer has.
    pub const MOST: usize = 100;

    /// Reads a complete result. Values beyond the most are left out.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(result: &Json) -> Result<CompleteResult, &'static str> {
        let completion = result
            .get("completion")
            .ok_or("the result has no \"completion\"")?;
        let values = completion
            .get("values")
            .filter(|v| v.kind() == Kind::Array)
            .ok_or("the result has no \"completion.values\" array")?;
        let all: Option<Vec<String>> = values.items().map(|v| v.string()).collect();
        let mut values = all.ok_or("a value of the completion is not a string")?;
        let cut = values.len() > CompleteResult::MOST;
        values.truncate(CompleteResult::MOST);
        let more = completion.get("hasMore").and_then(|m| m.bool());
        Ok(CompleteResult {
            values,
            total: completion.get("total").and_then(|t| t.u64()),
            more: if cut { Some(true) } else { more },
            meta: result.get("_meta").as_ref().and_then(meta::foreign),
        })
    }
}
