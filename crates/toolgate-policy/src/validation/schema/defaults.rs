//! Required members with a default, which a server fills in.

use super::position::{self, get_mut};
use super::reference::percent_decode;
use serde_json::{Map, Value};

/// Schemas in which the default of one property is looked for.
const MAX_SCHEMAS: usize = 16;

/// The same schema in which members that have a `default` are not required; `None` where there are none.
///
/// A value passes if it fits either schema, so a value that fits the original always passes.
pub(super) fn optional(tree: &Value) -> Option<Value> {
    let schemas = position::schemas(tree);
    let filled = schemas.iter().map(|one| (one, filled(one.schema, tree)));
    let filled: Vec<_> = filled.filter(|(_, names)| !names.is_empty()).collect();
    if filled.is_empty() {
        return None;
    }
    let mut relaxed = tree.clone();
    for (one, filled) in filled {
        let schema = get_mut(&mut relaxed, &one.path)?;
        if let Some(Value::Array(names)) = schema.get_mut("required") {
            names.retain(|name| name.as_str().is_none_or(|name| !filled.contains(&name)));
        }
    }
    Some(relaxed)
}

/// Required members with a default.
fn filled<'a>(schema: &'a Map<String, Value>, root: &Value) -> Vec<&'a str> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let properties = schema.get("properties");
    let is_filled = |name: &&str| {
        let mut left = MAX_SCHEMAS;
        let property = properties.and_then(|all| all.get(*name));
        property.is_some_and(|property| has_default(property, root, &mut left))
    };
    names.filter(is_filled).collect()
}

/// Returns whether a schema has a default: its own, or that of a schema that it refers to or includes by `allOf`.
///
/// Source: JSON Schema 2020-12 Core, 7.7.1: annotations of all schemas that apply to a value are collected.
fn has_default(schema: &Value, root: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    let target = || {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        root.pointer(&percent_decode(pointer)?)
    };
    let included = schema.get("allOf").and_then(Value::as_array);
    let mut included = included.into_iter().flatten().chain(target());
    schema.get("default").is_some() || included.any(|one| has_default(one, root, left))
}
