//! Value that is written into the file of a host, in JSON or TOML. The order of keys stays.

use jsonc_parser::cst::CstInputValue;
use toml_edit::{Array, InlineTable, Table, Value};

/// Value in an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HostEntryValue {
    /// Text.
    Text(String),
    /// List of texts.
    List(Vec<String>),
    /// Keys and values, in the order in which they are written.
    Object(Vec<(String, HostEntryValue)>),
}

impl HostEntryValue {
    /// Returns an object of the given keys and values.
    pub(crate) fn object<const N: usize>(fields: [(&str, HostEntryValue); N]) -> HostEntryValue {
        let fields = fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        HostEntryValue::Object(fields.collect())
    }

    /// Returns the value for an insertion into JSON.
    pub(super) fn to_cst(&self) -> CstInputValue {
        match self {
            HostEntryValue::Text(text) => CstInputValue::String(text.clone()),
            HostEntryValue::List(texts) => {
                let texts = texts.iter().cloned().map(CstInputValue::String);
                CstInputValue::Array(texts.collect())
            }
            HostEntryValue::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (key.clone(), value.to_cst()));
                CstInputValue::Object(fields.collect())
            }
        }
    }

    /// Returns the value as JSON.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            HostEntryValue::Text(text) => text.as_str().into(),
            HostEntryValue::List(texts) => texts.clone().into(),
            HostEntryValue::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (key.clone(), value.to_json()));
                serde_json::Value::Object(fields.collect())
            }
        }
    }

    /// Returns the value for an insertion into TOML.
    pub(super) fn to_toml(&self) -> Value {
        match self {
            HostEntryValue::Text(text) => text.into(),
            HostEntryValue::List(texts) => Value::Array(texts.iter().collect::<Array>()),
            HostEntryValue::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.to_toml()));
                Value::InlineTable(fields.collect::<InlineTable>())
            }
        }
    }

    /// Returns the section of a TOML document: the fields of an object, or nothing.
    pub(super) fn to_toml_table(&self) -> Table {
        let fields = match self {
            HostEntryValue::Object(fields) => fields.as_slice(),
            _ => &[],
        };
        let fields = fields
            .iter()
            .map(|(key, value)| (key.as_str(), value.to_toml()));
        fields.collect()
    }
}
