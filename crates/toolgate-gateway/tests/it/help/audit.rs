//! Reading the record.

use serde_json::Value;

/// The client's ids of all calls whose end is in the record.
pub(crate) fn ends(records: &[Value]) -> std::collections::BTreeSet<String> {
    let ended = records.iter().filter(|record| record["ev"] == "call.end");
    ended
        .filter_map(|record| Some(record["rid"].as_str()?.trim_matches('"').to_owned()))
        .collect()
}
