//! The published schema, and what it rejects. Tests of the config show that it accepts every valid config.

use super::*;
use std::path::Path;

const PUBLISHED: &str = include_str!("../../../../../docs/reference/toolgate.schema.json");

#[test]
fn the_published_schema_is_that_of_the_program() {
    if std::env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let file = root.join("docs/reference/toolgate.schema.json");
        return std::fs::write(file, config_schema_text()).unwrap();
    }
    assert_eq!(
        PUBLISHED,
        config_schema_text(),
        "docs/reference/toolgate.schema.json is old; run the test with TOOLGATE_WRITE_SNAPSHOTS=1"
    );
}

#[test]
fn every_setting_has_a_description() {
    fn check(path: &str, schema: &Value) {
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            let is_source = ["env", "file", "keyring", "danger_clear"].contains(&key.as_str());
            assert!(is_source || schema["description"].is_string(), "{path}");
            check(&path, schema);
            check(&path, &schema["additionalProperties"]);
            check(&path, &schema["items"]);
        }
    }
    check("", config_schema());
}
