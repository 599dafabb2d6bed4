//! Reading the record.

use serde_json::Value;
use std::path::Path;

/// The client's ids of all calls whose end is in the record.
pub(crate) fn ends(records: &[Value]) -> std::collections::BTreeSet<String> {
    let ended = records.iter().filter(|record| record["ev"] == "call.end");
    ended
        .filter_map(|record| Some(record["rid"].as_str()?.trim_matches('"').to_owned()))
        .collect()
}

/// All records of a data directory, read from the files.
pub(crate) fn records(state: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for chain in std::fs::read_dir(state.join("audit")).unwrap() {
        let chain = chain.unwrap().path();
        let files = std::fs::read_dir(&chain).into_iter().flatten();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|e| e == "jsonl"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            // The last line may still be on its way.
            all.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
    }
    all
}
