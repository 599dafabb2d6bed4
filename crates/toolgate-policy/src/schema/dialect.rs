//! In which dialect a schema is written.

use super::bounds::Graph;
use jsonschema::Draft;
use serde_json::Value;

/// 2020-12, unless `$schema` names draft-07 or keywords appear that only draft-07 has.
///
/// Source: the Tools pages of the protocol since 2025-11-25 (2020-12 where nothing is said).
pub(super) fn of(graph: &Graph<'_>) -> Result<Draft, String> {
    let mut said = None;
    for part in &graph.parts {
        let Some(name) = part.schema.get("$schema").and_then(Value::as_str) else {
            continue;
        };
        let draft = known(name).ok_or_else(|| {
            format!("its dialect {name:?} is not supported; 2020-12 and draft-07 are")
        })?;
        if said.is_some_and(|other| other != draft) {
            return Err("it mixes two dialects".to_owned());
        }
        said = Some(draft);
    }
    let old = || graph.parts.iter().any(|part| draft_07_only(part.schema));
    Ok(said.unwrap_or_else(|| {
        if old() {
            Draft::Draft7
        } else {
            Draft::Draft202012
        }
    }))
}

fn known(name: &str) -> Option<Draft> {
    let name = name.strip_suffix('#').unwrap_or(name);
    let name = name
        .strip_prefix("https://")
        .or_else(|| name.strip_prefix("http://"))?;
    match name {
        "json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        "json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        _ => None,
    }
}

fn draft_07_only(schema: &serde_json::Map<String, Value>) -> bool {
    let has = |key: &str| schema.contains_key(key);
    let shaped = |key: &str, shape: fn(&Value) -> bool| schema.get(key).is_some_and(shape);
    (shaped("definitions", Value::is_object) && !has("$defs"))
        || shaped("dependencies", Value::is_object)
        || shaped("items", Value::is_array)
        || has("additionalItems")
}
