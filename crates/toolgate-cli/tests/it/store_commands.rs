//! `toolgate store`, and a data directory of an earlier version.

use crate::help::{Gate, Modern, Setup, TempDir, output, toolgate};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Output, sync::Arc};

/// A store of an earlier version with a freeze of all calls, which must never be lost.
const FROZEN: &str = include_str!("store_commands/state.jsonl");

/// Runs `toolgate store` over a data directory.
fn store(data: &Path, words: &[&str]) -> Output {
    let mut command = toolgate();
    command.arg("store").args(words).arg("--data").arg(data);
    output(&mut command)
}

fn text(output: &Output) -> String {
    let both = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(output));
    text(output)
}

/// A gateway with a remembered approval and a key, after it ended.
fn used() -> Arc<TempDir> {
    let gate = Setup::demo().start();
    gate.cli(&["keys", "create", "ci", "--expires", "5d"]);
    let port = gate.port;
    let arguments = json!({"name": "n", "text": "x"});
    let call = std::thread::spawn(move || Modern::call(port, &json!(1), "demo_note", arguments));
    gate.cli(&["approve", &gate.pending(), "--remember", "--uses", "3"]);
    call.join().unwrap();
    gate.stop()
}

fn grants(gate: &Gate) -> Value {
    let listed = gate.run(&["grants", "list", "--json"]);
    serde_json::from_slice(&listed.stdout).unwrap()
}

#[test]
fn an_export_is_imported_into_another_directory() {
    let data = used();
    let state = data.path().join("state");
    let checked = done(&store(&state, &["check"]));
    assert!(
        checked.contains("grants") && checked.ends_with("the database is sound\n"),
        "{checked}"
    );
    let backup = data.file("backup.jsonl");
    let backup = backup.to_str().unwrap();
    let said = done(&store(&state, &["export", backup]));
    assert!(said.contains("has secrets"), "{said}");
    assert_eq!(
        fs::metadata(backup).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Nothing is overwritten.
    let again = store(&state, &["export", backup]);
    assert!(text(&again).contains("cannot create"), "{}", text(&again));
    let over = store(&state, &["import", backup]);
    assert!(
        text(&over).contains("already has entries"),
        "{}",
        text(&over)
    );

    let other = Arc::new(TempDir::new("imported"));
    let said = done(&store(&other.path().join("state"), &["import", backup]));
    assert!(said.starts_with("imported "), "{said}");
    let (from, to) = (Setup::demo().start_in(data), Setup::demo().start_in(other));
    let (from, to) = (grants(&from), grants(&to));
    assert_eq!(from.as_array().map(Vec::len), Some(1), "{from}");
    assert_eq!(from, to);
}

#[test]
fn a_cut_export_is_refused_whole() {
    let data = used();
    let state = data.path().join("state");
    let backup = data.file("backup.jsonl");
    done(&store(&state, &["export", backup.to_str().unwrap()]));
    let whole = fs::read_to_string(&backup).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let cut = data.write("cut.jsonl", &lines[..lines.len() - 1].join("\n"));
    let other = TempDir::new("imported");
    let refused = store(other.path(), &["import", cut.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("no end line"), "{}", text(&refused));
    let checked = store(other.path(), &["check"]);
    assert!(
        text(&checked).contains("there is no stored state"),
        "{}",
        text(&checked)
    );
}

#[test]
fn a_table_is_cleared_only_without_a_gateway() {
    let gate = Setup::demo().start();
    let path = gate.data.path().join("state");
    let refused = store(&path, &["clear", "seal_keys", "--yes"]);
    assert!(
        text(&refused).contains("a gateway is running"),
        "{}",
        text(&refused)
    );
    let data = gate.stop();
    assert_eq!(
        done(&store(&path, &["clear", "seal_keys", "--yes"])),
        "removed 1 entry\n"
    );
    let none = store(&path, &["clear", "seal_keys", "--yes"]);
    assert!(
        text(&none).contains("no table \"seal_keys\""),
        "{}",
        text(&none)
    );
    // The gateway makes a new key.
    let _data = Setup::demo().start_in(data).stop();
    assert_eq!(
        done(&store(&path, &["clear", "seal_keys", "--yes"])),
        "removed 1 entry\n"
    );
}

#[test]
fn a_freeze_of_an_earlier_version_holds() {
    let data = Arc::new(TempDir::new("earlier"));
    let state = data.path().join("state").join("state");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("state.jsonl"), FROZEN).unwrap();
    let gate = Setup::demo().start_in(data);
    let answer = Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    assert!(
        answer.body.contains("the operator froze everything"),
        "{}",
        answer.body
    );
    let data = gate.stop();
    assert_eq!(
        fs::read_to_string(state.join("state.jsonl.migrated")).unwrap(),
        FROZEN
    );
    let said = done(&store(&data.path().join("state"), &["migrate"]));
    assert!(said.starts_with("the state is in the database: "), "{said}");
}
