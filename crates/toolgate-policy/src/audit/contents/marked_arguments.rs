//! Redaction of arguments that their schema marks as secret.

use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use toolgate_core::{Item, Json};
use toolgate_protocol::json::{ArrayWriter, JsonKind, ObjectWriter};

/// Replacement for an argument that is marked as secret.
const REDACTED_PLACEHOLDER: &str = toolgate_protocol::placeholder::REDACTED_BY_SCHEMA;

/// Names of arguments that a schema marks `writeOnly` or `format: password`, at any depth.
#[derive(Debug, Default)]
pub(super) struct MarkedArguments {
    names: HashSet<String>,
    /// True if a marked schema has no property name, so that its location in the arguments is unknown.
    has_unnamed: bool,
}

impl MarkedArguments {
    /// Returns the marked names of an item, computed once per item.
    pub(super) fn of(item: &Item) -> Arc<MarkedArguments> {
        item.cached(|item| {
            let mut hidden = MarkedArguments::default();
            if let Some(schema) = item.def.json().get("inputSchema") {
                hidden.walk(&schema.to_value(), None);
            }
            hidden
        })
    }

    /// Traverses a schema; `name` is the nearest enclosing property.
    fn walk(&mut self, schema: &Value, name: Option<&str>) {
        match schema {
            Value::Object(members) => {
                if is_marked(schema) {
                    match name {
                        Some(name) => _ = self.names.insert(name.to_owned()),
                        None => self.has_unnamed = true,
                    }
                }
                for (key, value) in members {
                    self.keyword(key, value, name);
                }
            }
            Value::Array(all) => all.iter().for_each(|one| self.walk(one, name)),
            _ => {}
        }
    }

    fn keyword(&mut self, key: &str, value: &Value, name: Option<&str>) {
        match (key, value) {
            ("properties", Value::Object(all)) => {
                for (name, schema) in all {
                    self.walk(schema, Some(name));
                }
            }
            // A reference to one of these determines its property name.
            ("$defs" | "definitions", Value::Object(all)) => {
                all.values().for_each(|schema| self.walk(schema, None));
            }
            // Maps from names to schemas.
            ("patternProperties" | "dependentSchemas", Value::Object(all)) => {
                all.values().for_each(|schema| self.walk(schema, name));
            }
            // Values, not schemas.
            ("const" | "enum" | "default" | "example" | "examples", _) => {}
            _ => self.walk(value, name),
        }
    }

    /// Returns the redacted arguments; `None` if the marked ones are unknown.
    pub(super) fn redact(&self, json: &Json) -> Option<Json> {
        match (self.has_unnamed, self.names.is_empty()) {
            (true, _) => None,
            (false, true) => Some(json.clone()),
            (false, false) => Some(self.without(json)),
        }
    }

    fn without(&self, json: &Json) -> Json {
        match json.kind() {
            JsonKind::Object => {
                let mut o = ObjectWriter::new();
                for (key, value) in json.members() {
                    match self.names.contains(key.as_ref()) {
                        true => o.str(&key, REDACTED_PLACEHOLDER),
                        false => o.raw(&key, &self.without(&value)),
                    }
                }
                o.finish()
            }
            JsonKind::Array => {
                let mut a = ArrayWriter::new();
                json.items().for_each(|item| a.raw(&self.without(&item)));
                a.finish()
            }
            _ => json.clone(),
        }
    }
}

fn is_marked(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true))
        || schema.get("format").and_then(Value::as_str) == Some("password")
}
