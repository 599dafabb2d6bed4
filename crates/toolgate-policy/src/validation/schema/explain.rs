//! Explanations of invalid values that a model can act on and that do not contain the value itself.

use super::{SchemaValidator, checker};
use serde_json::{Map, Value};
use toolgate_core::SchemaViolation;
use toolgate_protocol::plural::count_of;

/// Maximum number of reported problems.
pub(crate) const MAX_SCHEMA_PROBLEMS: usize = 8;
/// Maximum size of one part of an explanation, in bytes.
const MAX_EXPLANATION_PART_BYTES: usize = 200;

/// The problems of a value, and one sentence that lists them.
pub(crate) struct SchemaProblems {
    pub(crate) problems: Vec<SchemaViolation>,
}

impl SchemaProblems {
    /// Formats the problems as `at /a expected an integer, received a string of 3 characters; at …`.
    pub(crate) fn sentence(&self) -> String {
        let say = |p: &SchemaViolation| match p.path.as_str() {
            "" => format!("expected {}, got {}", p.expected, p.received),
            path => format!("at {path} expected {}, got {}", p.expected, p.received),
        };
        self.problems.iter().map(say).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the first problems of a value; none if it is valid.
pub(crate) fn problems(schema: &SchemaValidator, value: &Value) -> Vec<SchemaViolation> {
    if too_deep(value, schema.depth) {
        let expected = format!(
            "at most {} levels of nesting (the limit for this schema)",
            schema.depth
        );
        return vec![SchemaViolation::new("", expected, "more")];
    }
    if schema
        .plain
        .as_ref()
        .is_some_and(|plain| plain.accepts(value))
    {
        return Vec::new();
    }
    checker::problems(schema, value)
}

/// Returns whether a value has more than `levels` levels of nesting. The JSON parser bounds the recursion.
fn too_deep(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels == 0 && !items.is_empty() || items.iter().any(|v| too_deep(v, levels - 1))
        }
        Value::Object(map) => {
            levels == 0 && !map.is_empty() || map.values().any(|v| too_deep(v, levels - 1))
        }
        _ => false,
    }
}

/// Appends a member name to a JSON pointer.
pub(crate) fn pointer_step(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Returns the explanation of an unknown member, with a suggestion or the known names.
pub(crate) fn unknown_member(what: &str, name: &str, known: Option<&Map<String, Value>>) -> String {
    let near = known.and_then(|known| nearest(name, known.keys()));
    match near {
        Some(near) => format!("no {what} of this name (did you mean {near:?}?)"),
        None => format!("no {what} of this name{}", there_are(known)),
    }
}

pub(super) fn there_are(known: Option<&Map<String, Value>>) -> String {
    let known: Vec<String> = known
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    match known.is_empty() {
        true => " (there are none)".to_owned(),
        false => format!(" (there are {})", names(&known)),
    }
}

/// Returns the known name that was probably meant, by edit distance.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    const MAX_SUGGESTION_NAME_BYTES: usize = 64;
    if name.len() > MAX_SUGGESTION_NAME_BYTES {
        return None;
    }
    let far =
        |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    let known = known.filter(|other| other.len() <= MAX_SUGGESTION_NAME_BYTES);
    let (distance, near) = known.map(|other| (far(other), other)).min()?;
    (distance <= 1 + name.chars().count() / 4).then_some(near)
}

/// Describes a value by its kind and size. Never quotes strings, since a secret may be in the wrong place.
pub(crate) fn describe_value(value: &Value, secret: bool) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) if secret => "a boolean".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(_) if secret => "a number".to_owned(),
        Value::Number(n) => format!("the number {n}"),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => {
            format!(
                "a string of {}",
                count_of(text.chars().count() as u64, "character")
            )
        }
        Value::Array(items) => format!("an array of {}", count_of(items.len() as u64, "item")),
        Value::Object(map) => format!("an object of {}", count_of(map.len() as u64, "member")),
    }
}

pub(super) fn names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_SCHEMA_PROBLEMS);
    let mut shown: Vec<String> = shown.map(|name| format!("{name:?}")).collect();
    if names.len() > MAX_SCHEMA_PROBLEMS {
        shown.push(format!("and {} more", names.len() - MAX_SCHEMA_PROBLEMS));
    }
    shown.join(", ")
}

pub(super) fn article(name: &str) -> String {
    match name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// Truncates a long text; schemas are untrusted too.
pub(crate) fn truncate(text: &str) -> String {
    let end = text
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= MAX_EXPLANATION_PART_BYTES)
        .last()
        .unwrap_or(0);
    if end == text.len() {
        text.to_owned()
    } else {
        format!("{}…", &text[..end])
    }
}

/// Returns the subschema at a JSON pointer, without following references. It decides which values are hidden: only
/// numbers and booleans are ever shown, and not if the schema marks them as secret.
pub(super) fn subschema_at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(schema, |at, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        at.get("properties")
            .and_then(|p| p.get(&step))
            .or_else(|| at.get("items"))
    })
}

/// Returns whether a schema marks its values as secret (`writeOnly`, or the format `password`).
pub(super) fn is_secret_schema(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true))
        || schema.get("format").and_then(Value::as_str) == Some("password")
}
