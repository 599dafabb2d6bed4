//! Simplification of a schema to fewer keywords.

use super::{merge, range, traverse};
use serde_json::{Map, Value, json};

/// Direction of a schema, which decides whether `null` can be omitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SchemaDirection {
    /// Input: an optional argument need not allow `null`.
    Input,
    /// Output: the schema describes exactly what is written.
    Output,
}

impl SchemaDirection {
    /// Simplifies a schema and all nested ones. A simple schema stays unchanged.
    pub(super) fn simplify(self, schema: &mut Value) {
        for inner in traverse::subschemas_mut(schema) {
            self.simplify(inner);
        }
        let Value::Object(object) = schema else {
            return;
        };
        range::replace_format(object);
        no_bare_booleans(object);
        no_const(object);
        no_list_of_types(object);
        any_for_one(object);
        tuple_items(object);
        if self == SchemaDirection::Input {
            no_null_for_absent(object);
        }
        simple_any(object);
        for key in ["required", "properties"] {
            if object
                .get(key)
                .is_some_and(|v| *v == json!([]) || *v == json!({}))
            {
                object.remove(key);
            }
        }
    }
}

/// Replaces `true` with `{}`. `additionalProperties: false` and similar stay, because every client supports them.
fn no_bare_booleans(object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            (
                "items"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "unevaluatedProperties",
                value @ Value::Bool(true),
            ) => *value = json!({}),
            ("properties" | "patternProperties" | "$defs", Value::Object(map)) => {
                map.values_mut().for_each(no_bare_boolean);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(no_bare_boolean);
            }
            _ => {}
        }
    }
}

fn no_bare_boolean(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        _ => {}
    }
}

fn no_const(object: &mut Map<String, Value>) {
    match object.remove("const") {
        Some(Value::Null) => {
            object.insert("type".to_owned(), json!("null"));
        }
        Some(value) => {
            object.insert("enum".to_owned(), json!([value]));
        }
        None => {}
    }
}

/// Replaces a list of types with a choice between schemas of one type each.
fn no_list_of_types(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get("type").cloned() else {
        return;
    };
    if object.contains_key("anyOf") {
        return;
    }
    let (telling, checking): (Map<_, _>, Map<_, _>) = std::mem::take(object)
        .into_iter()
        .partition(|(key, _)| merge::is_annotation(key) || key == "$defs");
    let mut any: Vec<Value> = types.iter().map(|one| of_type(one, &checking)).collect();
    *object = telling;
    if any.len() == 1 {
        merge::merge_into(object, any.remove(0));
    } else {
        object.insert("anyOf".to_owned(), Value::Array(any));
    }
}

fn of_type(one: &Value, checking: &Map<String, Value>) -> Value {
    if one == "null" {
        return json!({"type": "null"});
    }
    let mut schema = checking.clone();
    schema.insert("type".to_owned(), one.clone());
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    Value::Object(schema)
}

/// Replaces `oneOf` with `anyOf`: the variants of a Rust type exclude each other anyway.
fn any_for_one(object: &mut Map<String, Value>) {
    if !object.contains_key("anyOf")
        && let Some(one) = object.remove("oneOf")
    {
        object.insert("anyOf".to_owned(), one);
    }
}

/// Adds `items` to tuples for clients that do not support `prefixItems`.
fn tuple_items(object: &mut Map<String, Value>) {
    let Some(Value::Array(list)) = object.get("prefixItems").cloned() else {
        return;
    };
    let mut kinds: Vec<Value> = Vec::new();
    for one in &list {
        if !kinds.contains(one) {
            kinds.push(one.clone());
        }
    }
    let exact = json!(list.len());
    let whole = object.get("minItems") == Some(&exact) && object.get("maxItems") == Some(&exact);
    if object.contains_key("items") || !whole {
        return;
    }
    if kinds.len() == 1 {
        object.remove("prefixItems");
        object.insert("items".to_owned(), kinds.remove(0));
    } else {
        object.insert("items".to_owned(), json!({"anyOf": kinds}));
    }
}

fn no_null_for_absent(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let needed = |name: &String| {
        let list = required.as_array();
        list.is_some_and(|list| list.iter().any(|r| r.as_str() == Some(name)))
    };
    let Some(Value::Object(properties)) = object.get_mut("properties") else {
        return;
    };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !needed(name)) {
        without_null(property);
    }
}

fn without_null(property: &mut Value) {
    let Value::Object(object) = property else {
        return;
    };
    let null = json!({"type": "null"});
    if let Some(Value::Array(any)) = object.get_mut("anyOf") {
        if any.iter().any(|one| *one != null) {
            any.retain(|one| *one != null);
        }
        simple_any(object);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// Joins the enumerations in a choice, and removes a choice with one variant.
fn simple_any(object: &mut Map<String, Value>) {
    let Some(Value::Array(any)) = object.remove("anyOf") else {
        return;
    };
    let mut kept: Vec<Value> = Vec::new();
    let mut words = Vec::new();
    for one in any.into_iter().flat_map(spread) {
        if kept.contains(&one) {
            continue;
        }
        match kept
            .iter_mut()
            .find(|k| is_values(k) && is_values(&one) && k["type"] == one["type"])
        {
            Some(values) => add_values(values, one, &mut words),
            None if is_values(&one) => kept.push(take_first_values(one, &mut words)),
            None => kept.push(one),
        }
    }
    describe_values(object, &mut kept, &words);
    if kept.len() == 1 && !kept[0].as_object().is_some_and(Map::is_empty) {
        merge::merge_into(object, kept.remove(0));
    } else {
        object.insert("anyOf".to_owned(), Value::Array(kept));
    }
}

/// Flattens a choice directly inside a choice.
fn spread(one: Value) -> Vec<Value> {
    match one {
        Value::Object(mut object) if object.len() == 1 && object.contains_key("anyOf") => {
            match object.remove("anyOf") {
                Some(Value::Array(any)) => any,
                other => vec![json!({"anyOf": other})],
            }
        }
        one => vec![one],
    }
}

/// Returns whether a schema is only an enumeration of one type, with at most a description.
fn is_values(schema: &Value) -> bool {
    let Value::Object(object) = schema else {
        return false;
    };
    object.contains_key("enum")
        && object
            .keys()
            .all(|k| ["type", "enum", "description"].contains(&k.as_str()))
}

/// Descriptions of enumeration values: the value and its text.
type ValueDescriptions = Vec<(String, String)>;

fn take_first_values(mut one: Value, words: &mut ValueDescriptions) -> Value {
    take_description(&mut one, words);
    one
}

fn add_values(values: &mut Value, mut one: Value, words: &mut ValueDescriptions) {
    take_description(&mut one, words);
    if let (Some(values), Some(more)) = (values["enum"].as_array_mut(), one["enum"].as_array()) {
        let new: Vec<Value> = more
            .iter()
            .filter(|m| !values.contains(m))
            .cloned()
            .collect();
        values.extend(new);
    }
}

/// Moves the description of a single value to `words`. The description of several values belongs to none of them.
fn take_description(one: &mut Value, words: &mut ValueDescriptions) {
    let Value::Object(object) = one else {
        return;
    };
    let single = match object
        .get("enum")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([Value::String(value)]) => value.clone(),
        Some([value]) => value.to_string(),
        _ => return,
    };
    if let Some(Value::String(text)) = object.remove("description") {
        words.push((single, text));
    }
}

/// Adds the descriptions of the single values to the description of the enumeration.
fn describe_values(object: &mut Map<String, Value>, kept: &mut [Value], words: &ValueDescriptions) {
    if words.is_empty() {
        return;
    }
    let lines: Vec<String> = words
        .iter()
        .map(|(value, text)| format!("- `{value}`: {text}"))
        .collect();
    let lines = lines.join("\n");
    let place = match kept.len() {
        1 => Some(object),
        _ => kept
            .iter_mut()
            .find(|k| is_values(k))
            .and_then(Value::as_object_mut),
    };
    let Some(place) = place else {
        return;
    };
    let text = match place.get("description").and_then(Value::as_str) {
        Some(before) => format!("{before}\n{lines}"),
        None => lines,
    };
    place.insert("description".to_owned(), json!(text));
}
