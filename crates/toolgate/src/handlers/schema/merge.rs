//! Two schemas that hold for one value, as one.

use serde_json::{Map, Value, json};

/// Keywords that only tell; the outer one counts.
const TELLING: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// Whether a schema says more than words about a value.
pub(super) fn tells(key: &str) -> bool {
    TELLING.contains(&key)
}

/// Puts `inner` into `outer`, for which both hold.
pub(super) fn into(outer: &mut Map<String, Value>, inner: Value) {
    let Value::Object(inner) = inner else {
        return;
    };
    let fits =
        |(key, value): (&String, &Value)| tells(key) || outer.get(key).is_none_or(|o| o == value);
    if inner.iter().all(fits) {
        for (key, value) in inner {
            outer.entry(key).or_insert(value);
        }
        return;
    }
    let all = outer.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.push(Value::Object(inner));
    }
}
