//! Traversal of nested schemas.

use serde_json::Value;

/// Keywords whose value is a schema. In some of them `true` and `false` have a special meaning.
const SCHEMA_KEYWORDS: [&str; 11] = [
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "contains",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
];
/// Keywords whose value is an array of schemas.
const SCHEMA_LIST_KEYWORDS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 4] = [
    "properties",
    "patternProperties",
    "$defs",
    "dependentSchemas",
];

/// Returns the schemas directly inside a schema.
pub(super) fn subschemas(schema: &Value) -> Vec<&Value> {
    let Value::Object(object) = schema else {
        return Vec::new();
    };
    let parts = object.iter().map(|(key, value)| match value {
        Value::Array(list) if SCHEMA_LIST_KEYWORDS.contains(&key.as_str()) => list.iter().collect(),
        Value::Object(map) if SCHEMA_MAP_KEYWORDS.contains(&key.as_str()) => map.values().collect(),
        value if SCHEMA_KEYWORDS.contains(&key.as_str()) => vec![value],
        _ => Vec::new(),
    });
    parts.flatten().collect()
}

/// Returns the schemas directly inside a schema, mutably.
pub(super) fn subschemas_mut(schema: &mut Value) -> Vec<&mut Value> {
    let Value::Object(object) = schema else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for (key, value) in object.iter_mut() {
        let key = key.as_str();
        if SCHEMA_KEYWORDS.contains(&key) {
            parts.push(value);
        } else if SCHEMA_LIST_KEYWORDS.contains(&key) {
            parts.extend(value.as_array_mut().into_iter().flatten());
        } else if SCHEMA_MAP_KEYWORDS.contains(&key) {
            let map = value.as_object_mut().into_iter();
            parts.extend(map.flat_map(|map| map.values_mut()));
        }
    }
    parts
}

/// Returns the nesting depth of schemas.
pub(super) fn depth(schema: &Value) -> usize {
    let inner = subschemas(schema).into_iter().map(|inner| depth(inner) + 1);
    inner.max().unwrap_or(0)
}

/// Returns the name of the definition that a schema refers to.
pub(super) fn reference_target(schema: &Value) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    Some(unpercent(name).replace("~1", "/").replace("~0", "~"))
}

/// Decodes percent-encoding: references are URI fragments.
fn unpercent(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
