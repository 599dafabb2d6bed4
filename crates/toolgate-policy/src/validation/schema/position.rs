//! Positions in a schema document: which values are schemas, and which are data.

use serde_json::{Map, Value};

/// Keywords with values that are data, not schemas.
const DATA_KEYWORDS: [&str; 6] = [
    "const", "default", "enum", "example", "examples", "required",
];

/// The content of a keyword's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum KeywordContent {
    /// A schema, or an unknown object that a reference may use as one.
    Schema,
    /// A list of schemas.
    List,
    /// A map of schemas, by names that are not keywords.
    Map,
    /// Data without schemas.
    Data,
}

/// Returns whether the members of this keyword's value are schemas.
pub(super) fn is_map(key: &str) -> bool {
    matches!(
        key,
        "properties"
            | "patternProperties"
            | "$defs"
            | "definitions"
            | "dependentSchemas"
            | "dependencies"
    )
}

/// Returns whether the value of this keyword is a list of schemas.
pub(super) fn is_list(key: &str) -> bool {
    matches!(key, "allOf" | "anyOf" | "oneOf" | "prefixItems")
}

/// Classifies the value of a keyword.
pub(super) fn keyword_content(key: &str, value: &Value) -> KeywordContent {
    match value {
        _ if DATA_KEYWORDS.contains(&key) => KeywordContent::Data,
        Value::Object(_) if is_map(key) => KeywordContent::Map,
        Value::Object(_) | Value::Bool(_) => KeywordContent::Schema,
        Value::Array(_) => KeywordContent::List,
        _ => KeywordContent::Data,
    }
}

/// A schema in a document, with its path.
pub(super) struct LocatedSchema<'a> {
    /// The tokens of its JSON pointer.
    pub(super) path: Vec<String>,
    pub(super) schema: &'a Map<String, Value>,
}

/// Returns all schemas of a document, parents before their subschemas.
pub(super) fn schemas(root: &Value) -> Vec<LocatedSchema<'_>> {
    let mut found = Vec::new();
    collect(root, &mut Vec::new(), &mut found);
    found
}

/// Collects the schemas recursively. The JSON parser bounds the recursion.
fn collect<'a>(value: &'a Value, path: &mut Vec<String>, found: &mut Vec<LocatedSchema<'a>>) {
    let Value::Object(schema) = value else {
        return;
    };
    found.push(LocatedSchema {
        path: path.clone(),
        schema,
    });
    for (key, value) in schema {
        path.push(key.clone());
        match (keyword_content(key, value), value) {
            (KeywordContent::Schema, value) => collect(value, path, found),
            (KeywordContent::Map, Value::Object(map)) => {
                for (name, value) in map {
                    path.push(name.clone());
                    collect(value, path, found);
                    path.pop();
                }
            }
            (KeywordContent::List, Value::Array(list)) => {
                for (at, value) in list.iter().enumerate() {
                    path.push(at.to_string());
                    collect(value, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// Returns the value at a path.
pub(super) fn get_mut<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Formats a path as a JSON pointer.
pub(super) fn pointer(path: &[String]) -> String {
    path.iter()
        .map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// Returns the unescaped tokens of a JSON pointer.
pub(super) fn tokens(pointer: &str) -> Vec<String> {
    let tokens = pointer.split('/').skip(1);
    tokens
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}
