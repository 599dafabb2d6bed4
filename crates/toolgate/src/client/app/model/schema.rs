//! Input schemas as model APIs accept them.
//!
//! OpenAI and Anthropic reject the whole request if one schema has a combination of schemas at its top, or is no object
//! schema. Only the model sees the changed schema: the client checks arguments against the tool's own.

use super::ModelApi;
use crate::aggregate::WireNames;
use toolgate_core::Json;
use toolgate_protocol::json::{ArrayWriter, JsonKind, ObjectWriter};

/// Keywords that an API rejects at the top of a schema.
const REJECTED_KEYWORDS: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// Input schema for a model, and what it left out.
pub(super) struct ModelSchema {
    /// Object schema for the API.
    pub(super) parameters: Json,
    /// Constraints that the API does not accept, for the description.
    pub(super) note: Option<String>,
    /// Keys of arguments that the API does not accept: the key for the API, and the tool's own.
    pub(super) renamed_keys: Vec<(String, String)>,
}

impl ModelSchema {
    pub(super) fn of(api: ModelApi, schema: &Json) -> ModelSchema {
        let mut rest = schema.without("$schema");
        let mut dropped = ObjectWriter::new();
        let mut has_dropped = false;
        for keyword in REJECTED_KEYWORDS {
            let Some(value) = schema.get(keyword) else {
                continue;
            };
            dropped.raw(keyword, &value);
            has_dropped = true;
            rest = rest.without(keyword);
        }
        let properties = all_properties(schema);
        let renamed_keys = renamed_keys(api, &properties);
        let properties = rename_members(&properties, &renamed_keys);
        if rest.get("type").and_then(|t| t.string()).as_deref() != Some("object") {
            rest = rest.with("type", &string("object"));
        }
        rest = rest.with("properties", &properties);
        if let Some(required) = rest.get("required").filter(|_| !renamed_keys.is_empty()) {
            rest = rest.with("required", &rename_items(&required, &renamed_keys));
        }
        ModelSchema {
            parameters: rest,
            note: has_dropped.then(|| {
                format!(
                    "The arguments must also match this JSON Schema: {}",
                    dropped.finish().as_str()
                )
            }),
            renamed_keys,
        }
    }

    /// Returns the arguments with the tool's own keys.
    pub(super) fn own_arguments(renamed_keys: &[(String, String)], arguments: Json) -> Json {
        match renamed_keys.is_empty() {
            true => arguments,
            false => {
                let back: Vec<_> = renamed_keys
                    .iter()
                    .map(|(api, own)| (own.clone(), api.clone()))
                    .collect();
                rename_members(&arguments, &back)
            }
        }
    }
}

/// Returns the properties of an object schema, with those of the combined schemas that it does not define itself.
fn all_properties(schema: &Json) -> Json {
    let own = schema.get("properties");
    let own = own.filter(|own| own.kind() == JsonKind::Object);
    let mut all = own.unwrap_or_else(|| ObjectWriter::new().finish());
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in schema.get(keyword).iter().flat_map(Json::items) {
            let more = branch.get("properties");
            for (key, property) in more.iter().flat_map(Json::members) {
                if all.get(&key).is_none() {
                    all = all.with(&key, &property);
                }
            }
        }
    }
    all
}

/// Returns the keys that the API does not accept, with names that it does: the name for the API, and the tool's own.
fn renamed_keys(api: ModelApi, properties: &Json) -> Vec<(String, String)> {
    let Some(limits) = api.key_limits() else {
        return Vec::new();
    };
    let keys: Vec<String> = properties
        .members()
        .map(|(key, _)| key.into_owned())
        .collect();
    let own: Vec<&str> = keys.iter().map(String::as_str).collect();
    let names = WireNames::within("", limits).assign(&own);
    let pairs = names.into_iter().zip(keys);
    pairs.filter(|(name, own)| name != own).collect()
}

/// Returns the object with renamed keys, from pairs of the new key and the old one.
fn rename_members(object: &Json, renamed: &[(String, String)]) -> Json {
    if renamed.is_empty() {
        return object.clone();
    }
    let mut o = ObjectWriter::new();
    for (key, value) in object.members() {
        o.raw(new_name(&key, renamed), &value);
    }
    o.finish()
}

fn rename_items(list: &Json, renamed: &[(String, String)]) -> Json {
    let mut names = ArrayWriter::new();
    for name in list.items().filter_map(|name| name.string()) {
        names.str(new_name(&name, renamed));
    }
    names.finish()
}

fn new_name<'a>(name: &'a str, renamed: &'a [(String, String)]) -> &'a str {
    let found = renamed.iter().find(|(_, old)| old == name);
    found.map_or(name, |(new, _)| new)
}

fn string(text: &str) -> Json {
    Json::from_value(&text.into())
}
