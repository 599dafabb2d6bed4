//! Schemas as libraries generate them and people write them, each with valid and invalid arguments.
//!
//! `skipped` counts the keywords that cannot be checked.

use super::{fits_all, taken};
use serde_json::Value;

#[test]
fn schemas_of_the_field_are_checked() {
    let lines = include_str!("../../../../tests/it/schemas/field/schemas.jsonl").lines();
    let mut all = 0;
    for line in lines.filter(|line| !line.is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let list = |key: &str| case[key].as_array().unwrap().clone();
        let skipped = taken(case["schema"].clone()).skipped;
        assert_eq!(
            case["skipped"],
            skipped.len(),
            "{}: {skipped:?}",
            case["name"]
        );
        fits_all(&case["schema"], &list("good"), &list("bad"));
        all += 1;
    }
    assert!(all >= 60, "{all}");
}
