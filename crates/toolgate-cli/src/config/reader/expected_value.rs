//! Descriptions of valid values for messages, from the JSON Schema of the config.

use super::setting_path::{PathStep, SettingPath};
use serde_json::Value;

/// Returns the schema of the setting at a path.
fn schema_at<'s>(schema: &'s Value, path: &SettingPath) -> Option<&'s Value> {
    let step = |schema: &'s Value, step: &PathStep| {
        alternatives(schema).find_map(|schema| match step {
            PathStep::Key(key) => schema["properties"].get(key).or_else(|| {
                schema
                    .get("additionalProperties")
                    .filter(|more| more.is_object())
            }),
            PathStep::Index(_) => schema.get("items"),
        })
    };
    path.steps().iter().try_fold(schema, step)
}

/// Returns the schemas of which a value fits one.
fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    let any = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    any.map_or(std::slice::from_ref(schema), Vec::as_slice)
        .iter()
}

/// Returns the keys of the table at a path.
pub(super) fn keys_at<'s>(schema: &'s Value, path: &SettingPath) -> Vec<&'s str> {
    let properties = schema_at(schema, path).and_then(|schema| schema["properties"].as_object());
    properties
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect()
}

/// Returns true if some valid values are fixed words.
pub(super) fn has_words(schema: &Value, path: &SettingPath) -> bool {
    schema_at(schema, path)
        .is_some_and(|schema| alternatives(schema).any(|one| words(one).next().is_some()))
}

/// Returns true if valid values are integers.
pub(super) fn is_integer(schema: &Value, path: &SettingPath) -> bool {
    schema_at(schema, path).is_some_and(|schema| schema["type"] == "integer")
}

/// Returns true if valid values are integers or booleans, which have no quotes in TOML.
pub(super) fn is_unquoted(schema: &Value, path: &SettingPath) -> bool {
    let found = schema_at(schema, path);
    found.is_some_and(|schema| schema["type"] == "integer" || schema["type"] == "boolean")
}

/// Returns true if a value of any type is valid.
pub(super) fn is_anything(schema: &Value, path: &SettingPath) -> bool {
    schema_at(schema, path).is_none_or(|schema| schema == true)
}

fn words(schema: &Value) -> impl Iterator<Item = &Value> {
    let list = schema["enum"].as_array().into_iter().flatten();
    list.chain(schema.get("const"))
}

/// Returns an example of a setting as TOML.
pub(super) fn example(schema: &Value, path: &SettingPath) -> String {
    let examples = schema_at(schema, path).and_then(|found| found["examples"].as_array());
    match examples.and_then(|all| all.first()) {
        Some(example) => to_toml(example),
        None => describe(schema, path),
    }
}

/// Describes the valid values of a setting, for the end of "…; write ".
pub(super) fn describe(schema: &Value, path: &SettingPath) -> String {
    let Some(schema) = schema_at(schema, path) else {
        return "a value of another type".to_owned();
    };
    let parts: Vec<String> = alternatives(schema)
        .filter(|one| !is_dangerous(one))
        .flat_map(|one| describe_one(one, path))
        .collect();
    choice(&parts)
}

/// Joins alternatives: `a, b or c`.
fn choice(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [single] => single.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// Returns true for a form that messages about a wrong type do not suggest.
fn is_dangerous(schema: &Value) -> bool {
    let keys = schema["required"].as_array().into_iter().flatten();
    keys.filter_map(Value::as_str)
        .any(|key| key.starts_with("danger_"))
}

fn describe_one(schema: &Value, path: &SettingPath) -> Vec<String> {
    let words: Vec<String> = words(schema).map(Value::to_string).collect();
    if !words.is_empty() {
        return words;
    }
    let example = schema["examples"].as_array().and_then(|all| all.first());
    vec![match (schema["type"].as_str(), example) {
        (Some("boolean"), _) => "true or false".to_owned(),
        (Some("integer"), _) => format!(
            "an integer from {} to {}",
            schema["minimum"], schema["maximum"]
        ),
        (Some("string"), Some(example)) => format!("a string such as {example}"),
        (Some("string"), None) => "a string in quotes".to_owned(),
        (Some("array"), _) if schema["items"]["type"] == "object" => {
            format!("sections that begin with {}", path.index(0).section())
        }
        (Some("array"), Some(example)) => format!("an array such as {}", to_toml(example)),
        (Some("array"), None) => "an array".to_owned(),
        (Some("object"), Some(example)) => to_toml(example),
        (Some("object"), None) => match schema.get("additionalProperties") {
            Some(more) if more.is_object() => {
                format!("sections that begin with {}", path.key("NAME").section())
            }
            _ => format!("a section that begins with {}", path.section()),
        },
        _ => "a value of another type".to_owned(),
    }]
}

/// Returns a JSON value as TOML in one line.
fn to_toml(value: &Value) -> String {
    match value {
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(to_toml).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(table) => {
            let pair = |(key, value): (&String, &Value)| format!("{key} = {}", to_toml(value));
            format!(
                "{{ {} }}",
                table.iter().map(pair).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}
