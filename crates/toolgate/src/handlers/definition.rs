//! Definitions under construction.

use serde_json::{Map, Value, json};
use toolgate_core::{Definition, ItemKind, Json};

/// Definition under construction.
#[derive(Clone, Debug)]
pub(super) struct DefinitionDraft(Map<String, Value>);

impl DefinitionDraft {
    pub(super) fn new(key: &str, name: &str) -> DefinitionDraft {
        DefinitionDraft(Map::from_iter([(key.to_owned(), json!(name))]))
    }

    pub(super) fn set(&mut self, member: &str, value: impl Into<Value>) {
        self.0.insert(member.to_owned(), value.into());
    }

    /// Sets a member of a nested object.
    pub(super) fn set_nested(&mut self, object: &str, member: &str, value: impl Into<Value>) {
        let inner = self.0.entry(object).or_insert_with(|| json!({}));
        if let Some(inner) = inner.as_object_mut() {
            inner.insert(member.to_owned(), value.into());
        }
    }

    /// Returns a member of a nested object.
    pub(super) fn nested(&self, object: &str, member: &str) -> Option<Value> {
        self.0.get(object)?.get(member).cloned()
    }

    /// Adds a value to a list.
    pub(super) fn push(&mut self, list: &str, value: Value) {
        let list = self.0.entry(list).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(value);
        }
    }

    pub(super) fn text(&self, member: &str) -> Option<&str> {
        self.0.get(member)?.as_str()
    }

    pub(super) fn finish(&self, kind: ItemKind) -> Result<Definition, String> {
        let json = Json::from_value(&Value::Object(self.0.clone()));
        Definition::read(kind, json).map_err(str::to_owned)
    }
}
