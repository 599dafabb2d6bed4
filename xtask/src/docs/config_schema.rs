//! Sections and settings of the config, read from its published JSON Schema.

use std::collections::BTreeMap;

use serde_json::Value;

/// Name of the part before the first section.
pub(super) const TOP_LEVEL: &str = "top level";
/// Beginning of the last sentence of a description if the default is no fixed value.
const DEFAULT_TEXT: &str = " Default: ";

/// Settings of each section, by the section's name such as `[server.NAME]`.
pub(super) type ConfigSections = BTreeMap<String, BTreeMap<String, SettingRow>>;

/// Row of a setting in the reference.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SettingRow {
    /// Type, words or range of the valid values.
    pub(super) value: String,
    pub(super) default: String,
    pub(super) meaning: String,
}

/// Returns the sections of the config.
///
/// # Errors
/// A setting without a description, or of a type that this module does not know.
pub(super) fn sections(schema: &Value) -> Result<ConfigSections, String> {
    let mut all = ConfigSections::new();
    add_section(&mut all, &[], TOP_LEVEL.to_owned(), schema)?;
    Ok(all)
}

fn add_section(
    all: &mut ConfigSections,
    path: &[&str],
    name: String,
    schema: &Value,
) -> Result<(), String> {
    let required: Vec<&str> = array(schema, "required")
        .filter_map(Value::as_str)
        .collect();
    let mut rows = BTreeMap::new();
    for (key, setting) in schema["properties"].as_object().into_iter().flatten() {
        let path = [path, &[key.as_str()]].concat();
        let named = [path.as_slice(), &["NAME"]].concat();
        let (entries, items) = (&setting["additionalProperties"], &setting["items"]);
        if has_settings(setting) {
            add_section(all, &path, format!("[{}]", path.join(".")), setting)?;
        } else if has_settings(entries) {
            add_section(all, &named, format!("[{}]", named.join(".")), entries)?;
        } else if has_settings(items) {
            add_section(all, &path, format!("[[{}]]", path.join(".")), items)?;
        } else {
            let row = SettingRow::new(setting, required.contains(&key.as_str()));
            let row =
                row.ok_or_else(|| format!("the schema does not describe {}", path.join(".")))?;
            rows.insert(key.clone(), row);
        }
    }
    all.insert(name, rows);
    Ok(())
}

fn has_settings(schema: &Value) -> bool {
    schema["properties"].is_object()
}

impl SettingRow {
    fn new(setting: &Value, required: bool) -> Option<SettingRow> {
        let description = setting["description"].as_str()?;
        let (meaning, text) = match description.rsplit_once(DEFAULT_TEXT) {
            Some((meaning, text)) => (meaning, Some(text.trim_end_matches('.'))),
            None => (description, None),
        };
        let default = match (&setting["default"], text) {
            _ if required => "required".to_owned(),
            (Value::Null, text) => text.unwrap_or("none").to_owned(),
            (Value::String(text), _) => format!("`\"{text}\"`"),
            (value, _) => format!("`{value}`"),
        };
        Some(SettingRow {
            value: value_text(setting)?,
            default,
            meaning: meaning.to_owned(),
        })
    }
}

/// Describes the valid values of a setting.
fn value_text(schema: &Value) -> Option<String> {
    if let Some(title) = schema["title"].as_str() {
        return Some(title.to_owned());
    }
    let words: Vec<String> = array(schema, "enum")
        .chain(schema.get("const"))
        .map(|word| format!("`{word}`"))
        .collect();
    if !words.is_empty() {
        return Some(choice(&words));
    }
    let alternatives = array(schema, "anyOf").chain(array(schema, "oneOf"));
    let alternatives: Vec<&Value> = alternatives.filter(|one| !is_dangerous(one)).collect();
    if !alternatives.is_empty() {
        let mut parts = Vec::new();
        for one in alternatives {
            parts.extend(
                value_text(one)?
                    .split(" or ")
                    .flat_map(|part| part.split(", "))
                    .map(str::to_owned),
            );
        }
        return Some(choice(&parts));
    }
    Some(match schema["type"].as_str() {
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => format!("{} to {}", schema["minimum"], schema["maximum"]),
        Some("string") => "string".to_owned(),
        Some("array") => format!("array of {}", plural(&value_text(&schema["items"])?)),
        Some("object") => match &schema["additionalProperties"] {
            Value::Bool(true) => "table".to_owned(),
            entries => format!("table of {}", plural(&value_text(entries)?)),
        },
        _ => return None,
    })
}

/// True for a form that readers should not use without need.
fn is_dangerous(schema: &Value) -> bool {
    let mut keys = array(schema, "required").filter_map(Value::as_str);
    keys.any(|key| key.starts_with("danger_"))
}

fn array<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    schema[key].as_array().into_iter().flatten()
}

/// Returns the plural of a type: `array of strings` becomes `arrays of strings`.
fn plural(types: &str) -> String {
    let plural = |one: &str| match one.split_once(" of ") {
        Some((outer, inner)) => format!("{outer}s of {inner}"),
        None => format!("{one}s"),
    };
    let all: Vec<String> = types.split(" or ").map(plural).collect();
    all.join(" or ")
}

/// Joins alternatives: `a, b or c`.
fn choice(parts: &[String]) -> String {
    match parts {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        parts => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(value: &str, default: &str, meaning: &str) -> SettingRow {
        SettingRow {
            value: value.to_owned(),
            default: default.to_owned(),
            meaning: meaning.to_owned(),
        }
    }

    #[test]
    fn rows_have_values_defaults_and_meanings() {
        let marked = json!({"type": "object", "properties": {"danger_clear": {}}, "required": ["danger_clear"]});
        let schema = json!({"required": ["a"], "properties": {
            "a": {"description": "An A.", "type": "array", "items": {"anyOf": [{"type": "string"}, marked]}},
            "b": {"description": "A B. Default: that of `a`.", "type": "integer", "minimum": 1, "maximum": 9},
            "c": {"description": "A C.", "default": "x", "oneOf": [{"const": "x"}, {"const": "y"}, {"const": "z"}]},
            "d": {"description": "A D.", "default": true, "type": "boolean"},
            "e": {"description": "An E.", "anyOf": [{"enum": ["off", "ask"]}, {"title": "rate"}]},
            "f": {"description": "An F.", "type": "object", "additionalProperties": true},
            "g": {"description": "A G.", "type": "object", "additionalProperties": {"title": "string or secret"}},
            "h": {"description": "An H.", "type": "object", "additionalProperties": {"type": "array", "items": {"title": "scope"}}},
        }});
        let rows = sections(&schema).unwrap().remove(TOP_LEVEL).unwrap();
        let expected = [
            row("array of strings", "required", "An A."),
            row("1 to 9", "that of `a`", "A B."),
            row("`\"x\"`, `\"y\"` or `\"z\"`", "`\"x\"`", "A C."),
            row("`true` or `false`", "`true`", "A D."),
            row("`\"off\"`, `\"ask\"` or rate", "none", "An E."),
            row("table", "none", "An F."),
            row("table of strings or secrets", "none", "A G."),
            row("table of arrays of scopes", "none", "An H."),
        ];
        assert_eq!(Vec::from_iter(rows.into_values()), expected);
    }

    #[test]
    fn sections_have_the_names_of_the_file() {
        let inner = json!({"properties": {"k": {"description": "K.", "type": "string"}}});
        let schema = json!({"properties": {
            "limits": inner,
            "rule": {"items": inner},
            "server": {"additionalProperties": {"properties": {"exchange": inner}}},
        }});
        let sections = sections(&schema).unwrap();
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        let expected = [
            "[[rule]]",
            "[limits]",
            "[server.NAME.exchange]",
            "[server.NAME]",
            TOP_LEVEL,
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_setting_needs_a_description() {
        let schema = json!({"properties": {"limits": {"properties": {"k": {"type": "string"}}}}});
        assert_eq!(
            sections(&schema).unwrap_err(),
            "the schema does not describe limits.k"
        );
    }
}
