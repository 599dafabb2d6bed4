//! Arguments that are set for every call of a tool: callers neither see nor send them.

use super::strange;
use serde_json::{Map, Value};
use toolgate_core::{Json, Problem};

/// The arguments that are set for a tool.
pub(super) struct Fixed {
    set: Map<String, Value>,
    /// What callers see of the schema.
    pub(super) seen: Value,
}

impl Fixed {
    /// The arguments that are set, and the schema of the server's own.
    pub(super) fn new(fixed: &Json, schema: &Value) -> Fixed {
        let set = match fixed.to_value() {
            Value::Object(set) => set,
            _ => Map::new(),
        };
        let mut seen = schema.clone();
        if let Some(known) = seen.get_mut("properties").and_then(Value::as_object_mut) {
            known.retain(|name, _| !set.contains_key(name));
        }
        Fixed { set, seen }
    }

    /// Those that the caller sent: to him they are unknown.
    pub(super) fn sent(&self, arguments: &Value) -> Vec<Problem> {
        let none = Map::new();
        let known = self.seen.get("properties").and_then(Value::as_object);
        let sent = arguments.as_object().into_iter().flatten();
        let sent = sent.filter(|(name, _)| self.set.contains_key(*name));
        sent.map(|(name, value)| strange(known.unwrap_or(&none), name, value))
            .collect()
    }

    /// What the caller sent besides.
    pub(super) fn without(&self, arguments: &Value) -> Value {
        let mut besides = arguments.clone();
        if let Some(besides) = besides.as_object_mut() {
            besides.retain(|name, _| !self.set.contains_key(name));
        }
        besides
    }

    /// What the server gets.
    pub(super) fn with(&self, arguments: &Value) -> Map<String, Value> {
        let mut whole = arguments.as_object().cloned().unwrap_or_default();
        whole.extend(self.set.clone());
        whole
    }

    /// What is wrong, without a word of what was set.
    pub(super) fn unsaid(&self, mut found: Vec<Problem>) -> Vec<Problem> {
        for problem in &mut found {
            let first = problem.path.split('/').nth(1).unwrap_or_default();
            let first = first.replace("~1", "/").replace("~0", "~");
            if self.set.contains_key(&first) {
                problem.got = "what the operator set; tell him".to_owned();
            }
        }
        found
    }
}
