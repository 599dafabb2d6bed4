//! JSON Schema of the config. It is generated from the types that read the config; messages take expected values from it.

use super::config_file::ConfigFile;
use schemars::{
    Schema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::Value;
use std::sync::OnceLock;

/// Returns the schema of the config.
pub(super) fn config_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        // Editors for TOML support this revision of JSON Schema.
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        let settings = settings.with_transform(TomlSchema);
        let mut schema = settings
            .into_generator()
            .into_root_schema_for::<ConfigFile>();
        schema.insert("title".to_owned(), "Toolgate config".into());
        schema.to_value()
    })
}

/// Returns the schema as text, for `toolgate config schema` and for editors.
pub(crate) fn config_schema_text() -> String {
    format!("{:#}\n", config_schema())
}

/// Fits the schemas of Rust's types to a config in TOML: no `null`, no formats of integers, no line breaks of comments,
/// and no empty lists as defaults.
#[derive(Clone)]
struct TomlSchema;

impl Transform for TomlSchema {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        let default = schema.get("default");
        if default.is_some_and(|default| default.is_null() || *default == Value::Array(Vec::new()))
        {
            schema.remove("default");
        }
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|one| one != "null");
            if let [single] = types.as_slice() {
                let single = single.clone();
                schema.insert("type".to_owned(), single);
            }
        }
        let Some(Value::Array(any)) = schema.get_mut("anyOf") else {
            return;
        };
        any.retain(|one| one["type"] != "null");
        if let [Value::Object(single)] = any.as_slice() {
            let single = single.clone();
            schema.remove("anyOf");
            for (key, value) in single {
                schema.ensure_object().entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
#[path = "schema/tests.rs"]
mod tests;
