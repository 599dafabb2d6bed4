//! The official JSON Schema Test Suite, with our bounds: no verdict of ours is another than the suite's.
//!
//! `cargo xtask install` unpacks the suite; without it nothing is tested.

#![allow(clippy::print_stdout, reason = "the figures of the tests")]

use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use toolgate_core::Json;
use toolgate_policy::{SchemaBounds, validate_value};

fn suite() -> Option<PathBuf> {
    let given = std::env::var_os("TOOLGATE_INTEROP").map(PathBuf::from);
    let folder =
        given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("interop"));
    let unpacked = std::fs::read_dir(folder.join("suite"));
    let unpacked = unpacked.into_iter().flatten().filter_map(Result::ok);
    let tests = unpacked
        .map(|entry| entry.path().join("json/tests"))
        .find(|tests| tests.is_dir());
    let ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    assert!(
        tests.is_some() || !ci,
        "nothing may be skipped here: no suite in {}",
        folder.display()
    );
    tests
}

/// Groups that may be withheld, with our reason.
const DECIDED: [(&str, &str); 5] = [
    ("leads out of the schema", "a reference to another document"),
    ("is not supported", "another dialect"),
    ("without end", "refers to itself without looking deeper"),
    ("does not lead to a subschema", "a reference into nothing"),
    ("too long", "too much work"),
];

/// Runs the required tests of a dialect: how many agree, and how many are withheld for which reason.
fn run(tests: &Path, name: &str, dialect: &str) -> (usize, BTreeMap<&'static str, Vec<String>>) {
    let (mut agree, mut withheld) = (0, BTreeMap::<&'static str, Vec<String>>::new());
    let mut files: Vec<PathBuf> = std::fs::read_dir(tests.join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some()) {
        let groups: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            let mut schema = group["schema"].clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.entry("$schema").or_insert_with(|| dialect.into());
            }
            let about = format!(
                "{}: {}",
                file.file_stem().unwrap().to_string_lossy(),
                group["description"]
            );
            for test in group["tests"].as_array().unwrap() {
                match validate_value(
                    &Json::from_value(&schema),
                    &test["data"],
                    &SchemaBounds::default(),
                ) {
                    Ok(valid) => {
                        assert_eq!(
                            test["valid"], valid,
                            "{name} {about}: {}",
                            test["description"]
                        );
                        agree += 1;
                    }
                    Err(why) => {
                        let decided = DECIDED.iter().find(|(words, _)| why.contains(words));
                        let (_, reason) =
                            decided.unwrap_or_else(|| panic!("{name} {about}: withheld: {why}"));
                        withheld.entry(*reason).or_default().push(about.clone());
                    }
                }
            }
        }
    }
    (agree, withheld)
}

#[test]
fn t54_the_official_suite() {
    let Some(tests) = suite() else {
        eprintln!(
            "skipped: the JSON Schema Test Suite is not installed; `cargo xtask install` does it"
        );
        return;
    };
    let dialects = [
        (
            "draft2020-12",
            "https://json-schema.org/draft/2020-12/schema",
            1180,
        ),
        ("draft7", "http://json-schema.org/draft-07/schema#", 860),
    ];
    for (name, dialect, least) in dialects {
        let (agree, withheld) = run(&tests, name, dialect);
        let counts: Vec<String> = withheld
            .iter()
            .map(|(why, what)| format!("{} {why}", what.len()))
            .collect();
        println!(
            "T54: {name}: {agree} required tests agree, 0 disagree; withheld: {}",
            counts.join(", ")
        );
        assert!(agree >= least, "{agree} {withheld:#?}");
    }
}
