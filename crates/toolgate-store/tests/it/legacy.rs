//! Migration of the state file of earlier versions. The fixture was written by version 0.1.

use crate::kit::{Scratch, done, put, values};
use serde_json::json;
use std::fs;
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreError, StoreLimits};

const FILE: &str = include_str!("legacy/state.jsonl");

fn with_file(text: &str) -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join("state.jsonl"), text).unwrap();
    scratch
}

fn check_entries(scratch: &Scratch) {
    let state = scratch.open();
    let both = [("a".into(), json!({"uses": 2})), ("b".into(), json!(2))];
    assert_eq!(values(&state), both);
    assert_eq!(state.entries("grants")[0].version, 3);
    // No version is given out twice, also not those of removed entries.
    let next = done(put(&state, "c", Some(json!(1)), WritePrecondition::Absent));
    assert!(next > 5, "{next}");
    put(&state, "c", None, WritePrecondition::Any);
}

#[test]
fn a_file_of_an_earlier_version_is_taken_over() {
    let scratch = with_file(FILE);
    check_entries(&scratch);
    let backup = fs::read_to_string(scratch.0.join("state.jsonl.migrated")).unwrap();
    assert_eq!(backup, FILE);
    // The earlier version rejects this, and does not start with an empty state.
    let note = fs::read_to_string(scratch.0.join("state.jsonl")).unwrap();
    assert!(note.starts_with("The state of this directory is in state.sqlite.\n"));
    assert!(note.lines().count() > 1);
    check_entries(&scratch);
}

#[test]
fn a_torn_end_is_cut_off() {
    let last = FILE.lines().last().unwrap();
    for missing in 1..=last.len() {
        let scratch = with_file(&FILE[..FILE.len() - missing]);
        let state = scratch.open();
        // The last line removes "c".
        let keys: Vec<String> = values(&state).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "b", "c"], "{missing} bytes are missing");
    }
}

#[test]
fn a_damaged_line_ends_the_start() {
    let scratch = with_file(&FILE.replacen("uses", "used", 1));
    for _ in 0..2 {
        match DatabaseStore::open(&scratch.0, StoreLimits::default()) {
            Err(error @ StoreError::Damaged { .. }) => {
                assert!(
                    error.detail().contains("line 1 is damaged"),
                    "{}",
                    error.detail()
                );
            }
            other => panic!("{other:?}"),
        }
    }
    // The repaired file is read.
    fs::write(scratch.0.join("state.jsonl.migrating"), FILE).unwrap();
    check_entries(&scratch);
}

#[test]
fn every_step_can_be_repeated_after_a_crash() {
    // Before the note was written, and before the entries were stored.
    let scratch = with_file(FILE);
    let (file, migrating) = (
        scratch.0.join("state.jsonl"),
        scratch.0.join("state.jsonl.migrating"),
    );
    fs::rename(&file, &migrating).unwrap();
    check_entries(&scratch);
    assert!(file.exists() && !migrating.exists());
    // After the entries were stored: they are not read again.
    let state = scratch.open();
    put(&state, "a", None, WritePrecondition::Any);
    drop(state);
    fs::rename(scratch.0.join("state.jsonl.migrated"), &migrating).unwrap();
    let state = scratch.open();
    assert_eq!(values(&state), [("b".into(), json!(2))]);
    assert!(!migrating.exists());
}

#[test]
fn a_file_that_an_earlier_version_wrote_later_ends_the_start() {
    let scratch = with_file(FILE);
    check_entries(&scratch);
    fs::write(scratch.0.join("state.jsonl"), FILE).unwrap();
    let opened = DatabaseStore::open(&scratch.0, StoreLimits::default());
    let error = opened.err().map(|error| error.detail()).unwrap_or_default();
    assert!(error.contains("two versions of the program"), "{error}");
}
