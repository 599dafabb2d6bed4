//! Fixed arguments: set by the operator for every call of a tool, and neither visible to nor accepted from callers.

use super::undeclared_problem;
use serde_json::{Map, Value};
use toolgate_core::{Json, SchemaViolation};

/// Fixed arguments of a tool.
pub(super) struct FixedArguments {
    set: Map<String, Value>,
    /// Schema as callers see it.
    pub(super) visible_schema: Value,
}

impl FixedArguments {
    /// Creates fixed arguments for a tool with the server's own schema.
    pub(super) fn new(fixed: &Json, schema: &Value) -> FixedArguments {
        let set = match fixed.to_value() {
            Value::Object(set) => set,
            _ => Map::new(),
        };
        let mut seen = schema.clone();
        if let Some(known) = seen.get_mut("properties").and_then(Value::as_object_mut) {
            known.retain(|name, _| !set.contains_key(name));
        }
        FixedArguments {
            set,
            visible_schema: seen,
        }
    }

    /// Returns a problem for each fixed argument that the caller sent: to callers they are unknown.
    pub(super) fn sent_by_caller(&self, arguments: &Value) -> Vec<SchemaViolation> {
        let none = Map::new();
        let known = self
            .visible_schema
            .get("properties")
            .and_then(Value::as_object);
        let sent = arguments.as_object().into_iter().flatten();
        let sent = sent.filter(|(name, _)| self.set.contains_key(*name));
        sent.map(|(name, value)| undeclared_problem(known.unwrap_or(&none), name, value))
            .collect()
    }

    /// Returns the sent arguments without the fixed ones.
    pub(super) fn without(&self, arguments: &Value) -> Value {
        let mut besides = arguments.clone();
        if let Some(besides) = besides.as_object_mut() {
            besides.retain(|name, _| !self.set.contains_key(name));
        }
        besides
    }

    /// Returns the arguments that the server receives.
    pub(super) fn with(&self, arguments: &Value) -> Map<String, Value> {
        let mut whole = arguments.as_object().cloned().unwrap_or_default();
        whole.extend(self.set.clone());
        whole
    }

    /// Removes the values of fixed arguments from problems.
    pub(super) fn without_values(&self, mut found: Vec<SchemaViolation>) -> Vec<SchemaViolation> {
        for problem in &mut found {
            let first = problem.path.split('/').nth(1).unwrap_or_default();
            let first = first.replace("~1", "/").replace("~0", "~");
            if self.set.contains_key(&first) {
                problem.received =
                    "a value that the operator set; report it to the operator".to_owned();
            }
        }
        found
    }
}
