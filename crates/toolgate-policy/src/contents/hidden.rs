//! Arguments that their schema marks as secret.

use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use toolgate_core::{Item, Json};
use toolgate_wire::json::{ArrayWriter, Kind, ObjectWriter};

/// What stands in the place of such an argument.
const MARK: &str = toolgate_wire::placeholder::REDACTED_BY_SCHEMA;

/// The names of arguments that a schema marks `writeOnly` or `format: password`, wherever they stand in it.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    names: HashSet<String>,
    /// Something is marked that has no name of its own: nobody can tell where it will stand.
    unnamed: bool,
}

impl Hidden {
    /// Those of an item; worked out once.
    pub(super) fn of(item: &Item) -> Arc<Hidden> {
        item.memo(|item| {
            let mut hidden = Hidden::default();
            if let Some(schema) = item.def.json().get("inputSchema") {
                hidden.walk(&schema.to_value(), None);
            }
            hidden
        })
    }

    /// Looks through a schema; `name` is that of the nearest property around it.
    fn walk(&mut self, schema: &Value, name: Option<&str>) {
        match schema {
            Value::Object(members) => {
                if is_marked(schema) {
                    match name {
                        Some(name) => _ = self.names.insert(name.to_owned()),
                        None => self.unnamed = true,
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
            // Whoever refers to one of these gives it a name of his own.
            ("$defs" | "definitions", Value::Object(all)) => {
                all.values().for_each(|schema| self.walk(schema, None));
            }
            // These have names for keys, and schemas behind them.
            ("patternProperties" | "dependentSchemas", Value::Object(all)) => {
                all.values().for_each(|schema| self.walk(schema, name));
            }
            // Values, not schemas.
            ("const" | "enum" | "default" | "example" | "examples", _) => {}
            _ => self.walk(value, name),
        }
    }

    /// The arguments without them; `None` where nobody can tell which they are.
    pub(super) fn redact(&self, json: &Json) -> Option<Json> {
        match (self.unnamed, self.names.is_empty()) {
            (true, _) => None,
            (false, true) => Some(json.clone()),
            (false, false) => Some(self.without(json)),
        }
    }

    fn without(&self, json: &Json) -> Json {
        match json.kind() {
            Kind::Object => {
                let mut o = ObjectWriter::new();
                for (key, value) in json.members() {
                    match self.names.contains(key.as_ref()) {
                        true => o.str(&key, MARK),
                        false => o.raw(&key, &self.without(&value)),
                    }
                }
                o.finish()
            }
            Kind::Array => {
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
