//! Root of a schema.

use super::traverse;
use serde_json::{Map, Value, json};

/// Replaces a reference at the root with the definition.
pub(super) fn inline_root(mut schema: Value) -> Value {
    for _ in 0..MAX_REFERENCE_DEPTH {
        let Some(name) = traverse::reference_target(&schema) else {
            break;
        };
        let Some(body) = schema["$defs"].get(&name).cloned() else {
            break;
        };
        if let Value::Object(top) = &mut schema {
            top.remove("$ref");
            super::merge::merge_into(top, body);
        }
    }
    schema
}

/// Adds `"type": "object"` to a choice between objects: before 2026-07-28 a result must be an object, and its schema
/// must say so.
pub(super) fn mark_as_object(mut schema: Value) -> Value {
    let kept = schema.get("$defs").cloned().unwrap_or_default();
    if schema.get("type").is_none() && is_object(&schema, &kept, MAX_REFERENCE_DEPTH) {
        schema["type"] = json!("object");
    }
    schema
}

fn is_object(schema: &Value, kept: &Value, deep: usize) -> bool {
    let Some(deep) = deep.checked_sub(1) else {
        return false;
    };
    if let Some(body) = traverse::reference_target(schema).and_then(|name| kept.get(&name)) {
        return is_object(body, kept, deep);
    }
    let forms = list(schema, "anyOf");
    schema["type"] == "object"
        || (!forms.is_empty() && forms.iter().all(|form| is_object(form, kept, deep)))
}

/// Maximum length of a chain of references.
const MAX_REFERENCE_DEPTH: usize = 16;

/// Returns a schema whose root is an object and not a choice: some clients reject the whole list because of one tool
/// with a choice at the root.
pub(super) fn object_root(schema: Value) -> Result<Value, String> {
    let mut schema = inline_root(schema);
    if schema["type"] == "null" {
        return Ok(json!({"type": "object", "additionalProperties": false}));
    }
    let kept = schema.get("$defs").cloned().unwrap_or_default();
    let choice = ["anyOf", "oneOf", "allOf"]
        .iter()
        .any(|key| schema.get(key).is_some());
    if choice {
        let shape = ObjectShape::of(&schema, &kept, MAX_REFERENCE_DEPTH).ok_or(NOT_AN_OBJECT)?;
        shape.write_to(&mut schema);
    }
    match schema.get("type") {
        None => schema["type"] = json!("object"),
        Some(Value::String(object)) if object == "object" => {}
        Some(_) => return Err(NOT_AN_OBJECT.to_owned()),
    }
    Ok(schema)
}

const NOT_AN_OBJECT: &str = "tool arguments are a JSON object, but this type is deserialized from something else; \
    use a struct with named fields";

/// Combined shape of all variants of an object.
#[derive(Default)]
struct ObjectShape {
    properties: Map<String, Value>,
    /// Required members, sorted and unique.
    required: Vec<String>,
    closed: bool,
    description: Option<String>,
    /// One line of description for each variant.
    variant_lines: Vec<String>,
}

impl ObjectShape {
    /// Returns the shape of a schema; `None` if it is not an object.
    fn of(schema: &Value, kept: &Value, deep: usize) -> Option<ObjectShape> {
        if let Some(name) = traverse::reference_target(schema) {
            return ObjectShape::of(kept.get(&name)?, kept, deep.checked_sub(1)?);
        }
        if schema.get("type").is_some_and(|t| t != "object") || schema.get("enum").is_some() {
            return None;
        }
        let mut shape = ObjectShape::own(schema);
        for all in list(schema, "allOf") {
            shape.and(ObjectShape::of(all, kept, deep.checked_sub(1)?)?);
        }
        for key in ["anyOf", "oneOf"]
            .into_iter()
            .filter(|key| schema.get(key).is_some())
        {
            let deep = deep.checked_sub(1)?;
            let forms = list(schema, key)
                .iter()
                .filter_map(|one| ObjectShape::of(one, kept, deep));
            shape.and(
                forms
                    .map(ObjectShape::with_variant_line)
                    .reduce(ObjectShape::or)?,
            );
        }
        Some(shape)
    }

    fn own(schema: &Value) -> ObjectShape {
        let properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let required = list(schema, "required").iter();
        let mut required: Vec<String> = required
            .filter_map(|r| r.as_str().map(str::to_owned))
            .collect();
        required.sort();
        required.dedup();
        let closed = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|key| schema.get(key) == Some(&json!(false)));
        ObjectShape {
            properties,
            required,
            closed,
            description: schema["description"].as_str().map(str::to_owned),
            variant_lines: Vec::new(),
        }
    }

    /// Adds the line of one variant if a tag member identifies it.
    fn with_variant_line(mut self) -> ObjectShape {
        let tag = |name: &&String| {
            let property = self.properties.get(*name);
            property.is_some_and(|p| list(p, "enum").len() == 1)
        };
        let Some(tag) = self.required.iter().find(tag) else {
            return self;
        };
        let others = self.required.iter().filter(|r| *r != tag);
        let others: Vec<String> = others.map(|r| format!("`{r}`")).collect();
        let needs = if others.is_empty() { "" } else { " needs " };
        let text = self.description.iter().map(|text| format!(": {text}"));
        let line = format!(
            "- `{tag}` = {}{needs}{}{}",
            self.properties[tag]["enum"][0],
            others.join(", "),
            text.collect::<String>()
        );
        self.variant_lines.push(line);
        self
    }

    fn and(&mut self, other: ObjectShape) {
        for (name, property) in other.properties {
            self.properties.entry(name).or_insert(property);
        }
        self.required.extend(other.required);
        self.required.sort();
        self.required.dedup();
        self.closed |= other.closed;
        self.variant_lines.extend(other.variant_lines);
    }

    fn or(mut self, other: ObjectShape) -> ObjectShape {
        for (name, property) in other.properties {
            let known = self.properties.remove(&name);
            let both = match known {
                Some(known) if known != property => either(known, property),
                _ => property,
            };
            self.properties.insert(name, both);
        }
        self.required.retain(|name| other.required.contains(name));
        self.closed &= other.closed;
        self.variant_lines.extend(other.variant_lines);
        self
    }

    fn write_to(self, schema: &mut Value) {
        let Value::Object(top) = schema else {
            return;
        };
        let gone = [
            "anyOf",
            "oneOf",
            "allOf",
            "unevaluatedProperties",
            "required",
        ];
        top.retain(|key, _| !gone.contains(&key.as_str()));
        if !self.properties.is_empty() {
            top.insert("properties".to_owned(), Value::Object(self.properties));
        }
        if !self.required.is_empty() {
            top.insert("required".to_owned(), json!(self.required));
        }
        if self.closed {
            top.insert("additionalProperties".to_owned(), json!(false));
        }
        let told = top.get("description").and_then(Value::as_str);
        let told: Vec<String> = told
            .map(str::to_owned)
            .into_iter()
            .chain(self.variant_lines)
            .collect();
        if !told.is_empty() {
            top.insert("description".to_owned(), json!(told.join("\n")));
        }
    }
}

fn either(a: Value, b: Value) -> Value {
    let mut both = json!({"anyOf": [a, b]});
    super::simplify::SchemaDirection::Output.simplify(&mut both);
    both
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
