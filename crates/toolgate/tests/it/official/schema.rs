//! The schemas from the disk, one validator for each definition.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::Write,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex},
};

type Key = (String, String);

static BUILT: LazyLock<Mutex<HashMap<Key, Arc<Validator>>>> = LazyLock::new(Mutex::default);
static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = match std::env::var_os("TOOLGATE_SPEC") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"),
    };
    if !folder.is_dir() {
        // A folder that was named and is not there is a slip; none is a clone without the schemas.
        let named = std::env::var_os("TOOLGATE_SPEC").is_some();
        assert!(
            !named,
            "TOOLGATE_SPEC names no folder: {}",
            folder.display()
        );
        // Not by `eprintln!`, which a test that passes swallows.
        let skipped = "skipped: messages against the official schemas, which are not here";
        let _ = writeln!(std::io::stderr(), "{skipped}");
        return None;
    }
    Some(folder)
});

/// Whether the schemas are here.
pub(super) fn here() -> bool {
    FOLDER.is_some()
}

/// What is wrong with a value, by that definition; nothing where all is well.
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
    let folder = FOLDER.as_ref().expect("asked for before");
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
