//! `completion/complete`: completion of an argument.

use super::meta;
use crate::json::{Json, JsonKind};

/// Result of `completion/complete`: suggested values for an argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompleteResult {
    /// Suggested values, best first; at most [`CompleteResult::MAX_VALUES`].
    pub values: Vec<String>,
    /// Total number of suggested values, if the server knows it.
    pub total: Option<u64>,
    /// True if there are more suggested values than these.
    pub has_more: Option<bool>,
    /// `_meta` of the result without the protocol's keys.
    pub meta: Option<Json>,
}

impl CompleteResult {
    /// Maximum number of suggested values in one completion result.
    pub const MAX_VALUES: usize = 100;

    /// Reads the result of `completion/complete`. Values beyond the maximum are removed.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(result: &Json) -> Result<CompleteResult, &'static str> {
        let completion = result
            .get("completion")
            .ok_or("\"completion\" is missing")?;
        let values = completion
            .get("values")
            .filter(|v| v.kind() == JsonKind::Array)
            .ok_or("\"completion.values\" is missing or not an array")?;
        let all: Option<Vec<String>> = values.items().map(|v| v.string()).collect();
        let mut values = all.ok_or("an element of \"completion.values\" is not a string")?;
        let cut = values.len() > CompleteResult::MAX_VALUES;
        values.truncate(CompleteResult::MAX_VALUES);
        let more = completion.get("hasMore").and_then(|m| m.bool());
        Ok(CompleteResult {
            values,
            total: completion.get("total").and_then(|t| t.u64()),
            has_more: if cut { Some(true) } else { more },
            meta: result
                .get("_meta")
                .as_ref()
                .and_then(meta::without_reserved_keys),
        })
    }
}
