//! An audit log that somebody cut, rewrote or displaced: what both verifiers, a start and `status` say.

use crate::help::{Gate, Modern, SOON, Setup, TempDir, output, toolgate, until};
use ring::digest;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use toolgate_verify::{VerifyOptions, verify};

fn setup() -> Setup {
    let program = env!("CARGO_BIN_EXE_toolgate");
    Setup::config(format!(
        "[audit]\ncheckpoint_records = 50\ncheckpoint_seconds = 1\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
}

fn add(gate: &Gate, n: usize) {
    let id = json!(format!("add-{n}"));
    let arguments = json!({"a": n, "b": 1});
    let answer = Modern::call(gate.port, &id, "demo_add", arguments);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The data directory of a gateway that answered so many calls and ended.
fn used(calls: usize) -> (Arc<TempDir>, PathBuf) {
    let gate = setup().start();
    (0..calls).for_each(|n| add(&gate, n));
    let data = gate.stop();
    let state = data.path().join("state");
    (data, state)
}

/// The newest segment of the only chain.
fn segment(state: &Path) -> PathBuf {
    let chains = fs::read_dir(state.join("audit")).unwrap();
    let chains = chains.map(|entry| entry.unwrap().path());
    let files = chains
        .filter(|path| path.is_dir())
        .flat_map(|chain| fs::read_dir(chain).unwrap())
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    files.pop().unwrap()
}

fn cli(state: &Path, words: &[&str]) -> Output {
    output(toolgate().args(words).arg("--data").arg(state))
}

/// The exit code of both verifiers, which are told nothing but the folder, and what `audit verify` printed.
#[track_caller]
fn verdict(state: &Path, live: bool) -> (u8, String) {
    let out = cli(state, &["audit", "verify"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let against = VerifyOptions {
        live,
        ..VerifyOptions::default()
    };
    let code = verify(&state.join("audit"), &against).unwrap().exit_code();
    assert_eq!(out.status.code(), Some(i32::from(code)), "{said}");
    (code, said)
}

/// Writes every record from `from` on anew: another caller, no checkpoint, all hashes fitting.
fn forge(file: &Path, from: usize) {
    let text = fs::read_to_string(file).unwrap();
    let read = |line| serde_json::from_str::<Map<String, Value>>(line).unwrap();
    let mut records: Vec<_> = text.lines().map(read).collect();
    let tail = records.split_off(from - 1);
    for mut record in tail.into_iter().filter(|r| r["ev"] != "checkpoint") {
        let last = records.last().unwrap();
        record.insert("seq".into(), (last["seq"].as_u64().unwrap() + 1).into());
        record.insert("prev".into(), last["h"].clone());
        record.insert("caller".into(), "mallory".into());
        record.remove("h");
        let body = serde_json::to_string(&record).unwrap();
        let body = format!("toolgate-journal-record-v1\n{body}");
        let hash = digest::digest(&digest::SHA256, body.as_bytes());
        let hash: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        record.insert("h".into(), hash.into());
        records.push(record);
    }
    let line = |record| serde_json::to_string(record).unwrap() + "\n";
    fs::write(file, records.iter().map(line).collect::<String>()).unwrap();
}

fn cut(file: &Path, lines: usize) {
    let text = fs::read_to_string(file).unwrap();
    let all: Vec<&str> = text.lines().collect();
    fs::write(file, all[..all.len() - lines].join("\n") + "\n").unwrap();
}

#[test]
fn a_log_rewritten_without_the_key_is_not_intact_for_either_verifier() {
    let (data, state) = used(400);
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("intact: signed up to record "), "{said}");
    let file = segment(&state);
    forge(&file, 4);
    assert_eq!(
        verdict(&state, false).0,
        1,
        "the mirror is found by default"
    );
    for mirror in fs::read_dir(state.join("checkpoints")).unwrap() {
        fs::remove_file(mirror.unwrap().path()).unwrap();
    }
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 1, "the folder of the mirror is left: {said}");
    fs::remove_dir(state.join("checkpoints")).unwrap();
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 1, "the folder of the mirror is gone: {said}");
    assert!(said.contains("NOT INTACT"), "{said}");
    // Nor does the next start sign it.
    let gate = setup().start_in(data);
    assert_eq!(gate.run(&["status"]).status.code(), Some(1));
    let _data = gate.stop();
    assert_eq!(verdict(&state, false).0, 1);
}

#[test]
fn a_log_without_its_mirror_cannot_be_told() {
    let (_data, state) = used(3);
    fs::remove_dir_all(state.join("checkpoints")).unwrap();
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("the chain names the checkpoint mirror"),
        "{said}"
    );
    fs::remove_dir_all(state.join("audit")).unwrap();
    assert_eq!(cli(&state, &["audit", "verify"]).status.code(), Some(3));
    assert_eq!(
        cli(&state, &["audit", "verify", "x"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_mirror_elsewhere_is_found_by_the_name_in_the_log() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let elsewhere = TempDir::new("mirror");
    let mirror = elsewhere.path().join("kept");
    let gate = Setup::config(format!(
        "[audit]\ncheckpoints = {mirror:?}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    ))
    .start();
    (0..5).for_each(|n| add(&gate, n));
    let data = gate.stop();
    let state = data.path().join("state");
    assert_eq!(verdict(&state, false).0, 0);
    cut(&segment(&state), 8);
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the end was cut off"), "{said}");
}

#[test]
fn a_start_over_a_cut_log_says_so_until_it_is_acknowledged() {
    let (data, state) = used(10);
    let chain = segment(&state).parent().unwrap().to_owned();
    let chain = chain.file_name().unwrap().to_str().unwrap().to_owned();
    cut(&segment(&state), 20);
    let gate = setup().start_in(data);
    let said = gate.said().join("\n");
    assert!(said.contains("the audit log is damaged: "), "{said}");
    assert!(said.contains(&chain), "{said}");
    let status = gate.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(told.contains(&format!("damaged      {chain}: ")), "{told}");
    assert!(told.contains("the end was cut off"), "{told}");
    assert_eq!(gate.state()["record"]["damage"][0]["about"], json!(chain));
    add(&gate, 1);
    let records = gate.audit();
    let genesis = records
        .iter()
        .rfind(|record| record["ev"] == "genesis")
        .unwrap();
    assert_eq!(genesis["after"], json!(chain));
    assert!(genesis["cause"].as_str().unwrap().contains("cut off"));
    assert_eq!(
        (
            &genesis["checkpoint_records"],
            &genesis["checkpoint_seconds"]
        ),
        (&json!(50), &json!(1))
    );
    let told = gate.cli(&["audit", "acknowledge"]);
    assert!(told.contains(&format!("acknowledged {chain}: ")), "{told}");
    gate.cli(&["status"]);
    let known = gate.audit();
    let known = known
        .iter()
        .find(|record| record["ev"] == "audit.acknowledged");
    assert_eq!(known.unwrap()["about"], json!(chain));
    assert_eq!(verdict(&state, true).0, 1, "the verifiers still report it");
}

#[test]
fn a_segment_displaced_under_a_running_gateway_is_refused_reported_and_written_back() {
    for deleted in [false, true] {
        let gate = setup().start();
        add(&gate, 0);
        let state = gate.data.path().join("state");
        let file = segment(&state);
        match deleted {
            true => fs::remove_file(&file).unwrap(),
            false => fs::rename(&file, file.with_extension("old")).unwrap(),
        }
        let mut calls = 1;
        until("the segment is written back", SOON, || {
            let id = json!(format!("late-{calls}"));
            Modern::call(gate.port, &id, "demo_add", json!({"a": 1, "b": 1}));
            calls += 1;
            file.exists().then_some(())
        });
        let status = until("the log is written again", SOON, || {
            let status = gate.run(&["status"]);
            let told = String::from_utf8_lossy(&status.stdout).into_owned();
            told.contains("audit log    written")
                .then_some((status, told))
        });
        assert_eq!(status.0.status.code(), Some(1));
        let why = "was renamed or deleted by another program";
        assert!(status.1.contains(why), "{}", status.1);
        gate.cli(&["audit", "acknowledge"]);
        gate.cli(&["status"]);
        add(&gate, calls);
        let records = gate.audit();
        assert!(records.iter().any(
            |r| r["ev"] == "recovered" && r["cause"].as_str().is_some_and(|c| c.contains(why))
        ));
        let _data = gate.stop();
        let (code, said) = verdict(&state, false);
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn an_exchanged_mac_key_is_found_by_both_verifiers_and_by_the_start() {
    let (data, state) = used(2);
    fs::write(state.join("audit/mac.key"), "5a".repeat(32)).unwrap();
    let (code, said) = verdict(&state, false);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("mac.key was replaced: the records name another key"),
        "{said}"
    );
    let gate = setup().start_in(data);
    let said = gate.said().join("\n");
    assert!(said.contains("the audit log is damaged: mac.key"), "{said}");
}
