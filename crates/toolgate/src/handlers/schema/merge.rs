//! Merging of two schemas that apply to the same value.

use serde_json::{Map, Value, json};

/// Annotation keywords, which do not constrain the value; those of the outer schema take precedence.
const ANNOTATION_KEYWORDS: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// Returns whether a keyword is an annotation that does not constrain the value.
pub(super) fn is_annotation(key: &str) -> bool {
    ANNOTATION_KEYWORDS.contains(&key)
}

/// Merges `inner` into `outer`; the result requires both.
pub(super) fn merge_into(outer: &mut Map<String, Value>, inner: Value) {
    let Value::Object(mut inner) = inner else {
        return;
    };
    if is_compatible(outer, &inner) {
        merge_members(outer, &mut inner);
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

/// Returns whether the two schemas do not conflict.
fn is_compatible(outer: &Map<String, Value>, inner: &Map<String, Value>) -> bool {
    let open =
        !outer.contains_key("additionalProperties") && !inner.contains_key("additionalProperties");
    inner
        .iter()
        .all(|(key, value)| match (key.as_str(), outer.get(key)) {
            (_, None) => true,
            ("properties", Some(known)) => open && no_clash(known, value),
            ("required", Some(_)) => true,
            (key, Some(known)) => is_annotation(key) || known == value,
        })
}

fn no_clash(known: &Value, more: &Value) -> bool {
    let (Some(known), Some(more)) = (known.as_object(), more.as_object()) else {
        return false;
    };
    more.iter()
        .all(|(name, value)| known.get(name).is_none_or(|k| k == value))
}

/// Merges the properties and the required names of two schemas that do not conflict.
fn merge_members(outer: &mut Map<String, Value>, inner: &mut Map<String, Value>) {
    if let Some(Value::Object(known)) = outer.get_mut("properties")
        && let Some(Value::Object(more)) = inner.remove("properties")
    {
        known.extend(more);
    }
    if let Some(Value::Array(known)) = outer.get_mut("required")
        && let Some(Value::Array(more)) = inner.remove("required")
    {
        let new: Vec<Value> = more.into_iter().filter(|m| !known.contains(m)).collect();
        known.extend(new);
    }
}
