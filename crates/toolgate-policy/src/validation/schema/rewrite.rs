//! Rewriting of older dialects and common mistakes to the draft that a schema is compiled as.

use super::{
    PATTERN_KEYWORD,
    dialect::{self, SchemaDialect, SchemaDraft},
    position::{KeywordContent, keyword_content},
    reference::percent_decode,
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Members that remain beside `$ref` in dialects in which it overrides its siblings: they assert nothing.
const BESIDE_REF: [&str; 8] = [
    "$ref",
    "$schema",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "writeOnly",
];

/// Rewrites a schema of a dialect so that it means the same in [`SchemaDialect::draft`].
pub(super) fn rewrite(schema: &Value, dialect: SchemaDialect) -> Value {
    let rewrite = DialectRewriter {
        root: schema,
        dialect,
    };
    let siblings = dialect.ignores_siblings_of_ref();
    let mut new = rewrite.schema(schema, schema, siblings);
    if let Some(root) = new.as_object_mut()
        && dialect.draft() == SchemaDraft::Draft202012
    {
        // It may name the dialect that it was rewritten from.
        root.remove("$schema");
    }
    new
}

struct DialectRewriter<'a> {
    root: &'a Value,
    dialect: SchemaDialect,
}

impl<'a> DialectRewriter<'a> {
    /// Rewrites a schema and its subschemas. `base` is the base of its references. The JSON parser bounds the
    /// recursion.
    fn schema(&self, old: &'a Value, base: &'a Value, alone: bool) -> Value {
        let Value::Object(schema) = old else {
            return old.clone();
        };
        let inner = !std::ptr::eq(old, self.root);
        let alone = dialect::named_by(schema).map_or(alone, SchemaDialect::ignores_siblings_of_ref);
        let is_ref = alone && schema.get("$ref").is_some_and(Value::is_string);
        let id = match self.dialect {
            SchemaDialect::Draft04 => "id",
            _ => "$id",
        };
        let base = match inner && !is_ref && schema.get(id).is_some_and(Value::is_string) {
            true => old,
            false => base,
        };
        let mut new = Map::new();
        for (key, value) in schema {
            // A subschema without an identifier may not name a dialect, but generators that nest schemas write one.
            let left_out = key == PATTERN_KEYWORD
                || (is_ref && !BESIDE_REF.contains(&key.as_str()))
                || (inner && key == "$schema");
            if left_out {
                continue;
            }
            let value = match (keyword_content(key, value), value) {
                (KeywordContent::Map, Value::Object(map)) => {
                    let parts = map.iter();
                    let parts = parts.map(|(k, v)| (k.clone(), self.schema(v, base, alone)));
                    Value::Object(parts.collect())
                }
                (KeywordContent::List, Value::Array(list)) => {
                    list.iter().map(|v| self.schema(v, base, alone)).collect()
                }
                (KeywordContent::Schema, value) => self.schema(value, base, alone),
                (_, value) => value.clone(),
            };
            new.insert(key.clone(), value);
        }
        self.keywords(schema, &mut new);
        if let Some(Value::String(reference)) = schema.get("$ref") {
            new.insert("$ref".to_owned(), self.moved(reference, base).into());
        }
        Value::Object(new)
    }

    /// Returns whether keywords that only draft-07 and older dialects have are rewritten.
    fn rewrites_old(&self) -> bool {
        self.dialect.draft() == SchemaDraft::Draft202012
    }

    fn keywords(&self, schema: &Map<String, Value>, new: &mut Map<String, Value>) {
        bounds(schema, new);
        types(schema, new, self.dialect == SchemaDialect::Unnamed);
        required(schema, new);
        if !self.rewrites_old() {
            return;
        }
        if self.dialect == SchemaDialect::Draft04 {
            identifier(new);
        }
        let mut both = Map::new();
        tuples(schema, new, &mut both);
        dependencies(schema, new, &mut both);
        recursive(new, &mut both);
        if both.is_empty() {
            return;
        }
        match new.get_mut("allOf") {
            Some(Value::Array(all)) => all.push(Value::Object(both)),
            _ => {
                new.insert("allOf".to_owned(), json!([both]));
            }
        }
    }

    /// Returns a reference with its pointer adjusted to keywords that have moved.
    fn moved(&self, reference: &str, base: &Value) -> String {
        let pointer = reference.strip_prefix('#').filter(|p| p.starts_with('/'));
        let Some(pointer) = pointer.filter(|_| self.rewrites_old()) else {
            return reference.to_owned();
        };
        let (mut at, mut here) = (Some(base), KeywordContent::Schema);
        let mut new = String::from("#");
        for token in pointer.split('/').skip(1) {
            let name = percent_decode(token).unwrap_or_default();
            let name = name.replace("~1", "/").replace("~0", "~");
            let next = at.and_then(|at| match at {
                Value::Object(map) => map.get(&name),
                Value::Array(list) => list.get(name.parse::<usize>().ok()?),
                _ => None,
            });
            match (at, here) {
                (Some(Value::Object(schema)), KeywordContent::Schema) => {
                    let step = moved_keyword(schema, &name).unwrap_or_else(|| token.to_owned());
                    new.push_str(&format!("/{step}"));
                    here = next.map_or(KeywordContent::Data, |next| keyword_content(&name, next));
                }
                (_, holder) => {
                    new.push_str(&format!("/{token}"));
                    here = match holder {
                        KeywordContent::Map | KeywordContent::List => KeywordContent::Schema,
                        _ => KeywordContent::Data,
                    };
                }
            }
            at = next;
        }
        new
    }
}

/// Returns the new location of a keyword's value, as part of a pointer.
fn moved_keyword(schema: &Map<String, Value>, key: &str) -> Option<String> {
    let tuple = schema.get("items").is_some_and(Value::is_array);
    let (to, clashes) = match key {
        "items" if tuple => ("prefixItems", schema.contains_key("prefixItems")),
        "additionalItems" if tuple => ("items", schema.contains_key("prefixItems")),
        "dependencies" => ("dependentSchemas", has_dependents(schema)),
        _ => return None,
    };
    let all = schema.get("allOf").and_then(Value::as_array);
    Some(match clashes {
        true => format!("allOf/{}/{to}", all.map_or(0, Vec::len)),
        false => to.to_owned(),
    })
}

/// Rewrites `items` with a list, and its `additionalItems`. Beside `prefixItems` both apply, so they go to `allOf`.
fn tuples(
    schema: &Map<String, Value>,
    new: &mut Map<String, Value>,
    both: &mut Map<String, Value>,
) {
    if !schema.get("items").is_some_and(Value::is_array) {
        return;
    }
    let (items, rest) = (new.remove("items"), new.remove("additionalItems"));
    let to = match schema.contains_key("prefixItems") {
        true => both,
        false => new,
    };
    // An empty list asserts nothing, and 2020-12 does not allow it.
    let items = items.filter(|items| items.as_array().is_none_or(|items| !items.is_empty()));
    to.extend(items.map(|items| ("prefixItems".to_owned(), items)));
    to.extend(rest.map(|rest| ("items".to_owned(), rest)));
}

fn has_dependents(schema: &Map<String, Value>) -> bool {
    schema.contains_key("dependentRequired") || schema.contains_key("dependentSchemas")
}

fn dependencies(
    schema: &Map<String, Value>,
    new: &mut Map<String, Value>,
    both: &mut Map<String, Value>,
) {
    if !schema.get("dependencies").is_some_and(Value::is_object) {
        return;
    }
    let Some(Value::Object(all)) = new.remove("dependencies") else {
        return;
    };
    let to = match has_dependents(schema) {
        true => both,
        false => new,
    };
    let (names, schemas): (Map<_, _>, Map<_, _>) =
        all.into_iter().partition(|(_, value)| value.is_array());
    if !names.is_empty() {
        to.insert("dependentRequired".to_owned(), names.into());
    }
    if !schemas.is_empty() {
        to.insert("dependentSchemas".to_owned(), schemas.into());
    }
}

/// Rewrites `$recursiveRef` of 2019-09, which only allows the value `#`.
fn recursive(new: &mut Map<String, Value>, both: &mut Map<String, Value>) {
    let Some(Value::String(reference)) = new.get("$recursiveRef").cloned() else {
        return;
    };
    new.remove("$recursiveRef");
    let to = match new.contains_key("$ref") {
        true => both,
        false => new,
    };
    to.insert("$ref".to_owned(), reference.into());
}

/// Rewrites the boolean `exclusiveMinimum` beside `minimum`, and the same for the maximum.
fn bounds(schema: &Map<String, Value>, new: &mut Map<String, Value>) {
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) else {
            continue;
        };
        new.remove(exclusive);
        if let Some(limit @ Value::Number(_)) = schema.get(bound).filter(|_| *is_exclusive) {
            new.remove(bound);
            new.insert(exclusive.to_owned(), limit.clone());
        }
    }
}

/// Rewrites `type`: removes `any`, which is no constraint, and duplicates, and adds `null` for `nullable` of OpenAPI.
fn types(schema: &Map<String, Value>, new: &mut Map<String, Value>, openapi: bool) {
    let Some(value) = schema.get("type") else {
        return;
    };
    let mut names: Vec<Value> = match value {
        Value::Array(names) => without_repeats(names),
        name => vec![name.clone()],
    };
    if names.iter().any(|name| name == "any") {
        new.remove("type");
        return;
    }
    let nullable = openapi && schema.get("nullable") == Some(&Value::Bool(true));
    if nullable && !names.iter().any(|name| name == "null") {
        names.push("null".into());
    }
    if value.is_array() || nullable {
        new.insert("type".to_owned(), names.into());
    }
}

/// Rewrites `required`: removes duplicates, and `required: false` in a property, which asserts nothing.
fn required(schema: &Map<String, Value>, new: &mut Map<String, Value>) {
    match schema.get("required") {
        Some(Value::Bool(false)) => {
            new.remove("required");
        }
        Some(Value::Array(names)) => {
            new.insert("required".to_owned(), without_repeats(names).into());
        }
        _ => {}
    }
}

fn without_repeats(values: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let new = |value: &&Value| {
        value
            .as_str()
            .is_none_or(|text| seen.insert(text.to_owned()))
    };
    values.iter().filter(new).cloned().collect()
}

/// Rewrites `id` of draft-04 to `$anchor` or `$id`.
fn identifier(new: &mut Map<String, Value>) {
    let Some(Value::String(id)) = new.get("id").cloned() else {
        return;
    };
    new.remove("id");
    match id.strip_prefix('#') {
        Some(anchor) => new.entry("$anchor").or_insert_with(|| anchor.into()),
        None => new.entry("$id").or_insert_with(|| id.into()),
    };
}
