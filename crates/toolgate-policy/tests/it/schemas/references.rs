//! T53: schemas that refer to somewhere else: nothing is fetched, nothing is opened, and the tool is withheld.
#![allow(clippy::print_stdout, reason = "the figures of the tests")]

use super::bombs::explode;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use toolgate_core::Caller;
use toolgate_policy::SchemaBounds;

/// Schemas that a validator with default settings would follow.
fn schemas(folder: &str) -> Vec<Value> {
    let places = [
        "http://127.0.0.1:9/s.json".to_owned(),
        "https://localhost/s.json".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "ftp://127.0.0.1/s.json".to_owned(),
        format!("file://{folder}/secret.json"),
        "file:///etc/passwd".to_owned(),
        format!("{folder}/secret.json"),
        "secret.json".to_owned(),
        "../secret.json#/$defs/a".to_owned(),
        "//127.0.0.1/s.json".to_owned(),
        "data:application/json,{}".to_owned(),
        "urn:uuid:deadbeef-1234-ffff-ffff-4321feebdaed".to_owned(),
        "json-schema:///secret".to_owned(),
        "HTTP://127.0.0.1:9/".to_owned(),
    ];
    let mut all = Vec::new();
    for place in &places {
        let refs = ["$ref", "$dynamicRef", "$recursiveRef"];
        all.extend(refs.map(|key| json!({"type": "object", "properties": {"x": {key: place}}})));
        all.push(json!({"type": "object", "allOf": [{"$ref": format!("{place}#/a")}]}));
        all.push(json!({"type": "object", "$schema": place}));
        all.push(json!({"type": "object", "properties": {"x": {"$schema": place}}}));
        all.push(
            json!({"type": "object", "$id": place, "properties": {"x": {"$ref": "other.json"}}}),
        );
        all.push(json!({"type": "object", "properties": {"x": {"$id": place, "$ref": "./a#b"}}}));
        all.push(json!({"type": "object", "$id": place, "$ref": "../up.json"}));
        all.push(json!({"type": "object", "x-more": {"deep": [{"$ref": place}]}}));
    }
    all
}

const ALONE: &str = "TOOLGATE_TEST_REFERENCES";

#[tokio::test]
async fn references_alone() {
    let Ok(folder) = std::env::var(ALONE) else {
        return;
    };
    let caller = Caller::new("key:test");
    // With a pattern it is one for the compiler, as those below are.
    let good = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "a"}}});
    let said = explode(SchemaBounds::default(), &good, &json!({"x": "a"}), &caller).await;
    assert_eq!(said, "passed", "what is opened once is opened before");
    let _ = std::fs::read(format!("{folder}/marker"));
    let mut kept = Vec::new();
    for schema in schemas(&folder) {
        let said = explode(
            SchemaBounds::default(),
            &schema,
            &json!({"x": "a"}),
            &caller,
        )
        .await;
        if said != "withheld" {
            kept.push(schema.to_string());
        }
    }
    let _ = std::fs::read(format!("{folder}/marker"));
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "it starts itself again, watched by strace"
)]
fn t53_no_schema_makes_us_fetch_or_open_anything() {
    if Command::new("strace").arg("-V").output().is_err() {
        let ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
        assert!(!ci, "nothing may be skipped here: strace is not installed");
        eprintln!("skipped: strace is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("toolgate-t53-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("secret.json"), r#"{"$defs": {"a": {}}}"#).unwrap();
    let log = folder.join("log");
    let mut watched = Command::new("strace");
    watched.args(["-f", "-qq", "-e", "trace=%file,%network,openat2", "-o"]);
    watched.arg(&log).arg(std::env::current_exe().unwrap());
    watched.args(["--exact", "schemas::references::references_alone"]);
    let out = watched
        .env(ALONE, &folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let log = std::fs::read_to_string(&log).unwrap();
    let marks: Vec<usize> = (log.lines().enumerate())
        .filter(|(_, line)| line.contains("/marker\""))
        .map(|(at, _)| at)
        .collect();
    let [first, last] = marks.as_slice() else {
        panic!("{} marks in {log}", marks.len());
    };
    let between: Vec<&str> = log.lines().take(*last).skip(first + 1).collect();
    assert!(between.is_empty(), "{between:#?}");
    println!(
        "T53: {} schemas that lead out withheld, 0 sockets, 0 files opened",
        schemas("/x").len()
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
