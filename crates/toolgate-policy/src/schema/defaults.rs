//! Required members that have a default: a server fills them in.

use super::position::{self, get_mut};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The same schema in which members that have a `default` are not required; `None` where there are none.
///
/// A value passes if it fits either of the two, so one that fits the schema as it stands always does.
pub(super) fn optional(tree: &Value) -> Option<Value> {
    let schemas = position::schemas(tree);
    let filled = schemas.iter().map(|one| (one, filled(one.schema)));
    let filled: Vec<_> = filled.filter(|(_, names)| !names.is_empty()).collect();
    if filled.is_empty() {
        return None;
    }
    let mut relaxed = tree.clone();
    for (one, filled) in filled {
        let schema = get_mut(&mut relaxed, &one.path)?;
        if let Some(Value::Array(names)) = schema.get_mut("required") {
            names.retain(|name| name.as_str().is_none_or(|name| !filled.contains(name)));
        }
    }
    Some(relaxed)
}

/// Required members with a default.
fn filled(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let properties = schema.get("properties");
    let has_default = |name: &&str| {
        let property = properties.and_then(|all| all.get(*name));
        property.is_some_and(|property| property.get("default").is_some())
    };
    names.filter(has_default).collect()
}
