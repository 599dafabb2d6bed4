//! Official JSON schemas of the protocol, vendored in `spec/`, with one validator for each definition.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

type Key = (String, String);

static BUILT: LazyLock<Mutex<HashMap<Key, Arc<Validator>>>> = LazyLock::new(Mutex::default);
/// Returns the error of a value under a schema definition; empty if it is valid.
pub(super) fn wrong(revision: &str, definition: &str, value: &Value) -> Option<String> {
    let validator = validator(revision, definition);
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("at {:?}: {error}", error.instance_path().to_string()))
        .collect();
    (!errors.is_empty()).then(|| format!("no {definition} of {revision}: {}", errors.join("; ")))
}

fn validator(revision: &str, definition: &str) -> Arc<Validator> {
    let key = (revision.to_owned(), definition.to_owned());
    let mut built = BUILT.lock().unwrap();
    built
        .entry(key)
        .or_insert_with(|| Arc::new(build(revision, definition)))
        .clone()
}

fn build(revision: &str, definition: &str) -> Validator {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec");
    let text = std::fs::read_to_string(folder.join(revision).join("schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    let under = if schema.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    };
    assert!(
        schema[under].get(definition).is_some(),
        "the table of definitions is wrong: {revision} has no {definition}"
    );
    let root = json!({"$schema": schema["$schema"], under: schema[under].take(),
        "allOf": [{"$ref": format!("#/{under}/{definition}")}]});
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&root).unwrap()
}
