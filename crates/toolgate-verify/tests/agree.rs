//! The two verifiers agree on every change of a log.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

use ring::digest::{SHA256, digest};
use ring::signature::Ed25519KeyPair;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use toolgate_journal::verify::{AuditCheck, AuditVerdict};
use toolgate_journal::{
    AuditEntry, AuditEvent, AuditJournal, FileDisk, JournalOptions, public_key,
};
use toolgate_verify::{VerifyOptions, verify};

struct Log {
    dir: PathBuf,
    chain: PathBuf,
    key: String,
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn log(name: &str, calls: usize, keep: Option<u64>) -> Log {
    let name = format!("toolgate-verify-{}-{name}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let mut options = JournalOptions::new(dir.join("audit"));
    options.segment_bytes = 4096;
    options.checkpoint_records = 5;
    options.retain_bytes = keep;
    options.checkpoint_mirror = Some(dir.join("kept"));
    let journal = AuditJournal::open(options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for at in 0..calls {
        for event in [AuditEvent::CALL_BEGIN, AuditEvent::CALL_END] {
            let entry = AuditEntry::new(event).with("call", format!("c{at}"));
            let entry = entry
                .with("args", "{\"é\":\"\u{1}\\\n\"}")
                .with("z\u{1f600}", at);
            runtime.block_on(journal.append(entry)).unwrap();
        }
    }
    let chain = dir.join("audit").join(journal.initial_chain());
    journal.close();
    let key = public_key(&dir.join("audit"), &FileDisk).unwrap();
    Log { dir, chain, key }
}

impl Log {
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.chain).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = paths.filter(|p| p.extension().is_some()).collect();
        files.sort();
        files
    }

    /// Returns the position that both verifiers report as bad.
    fn bad(&self, elsewhere: bool, about: &str) -> Option<(PathBuf, u64)> {
        let places = if elsewhere {
            vec![self.dir.join("kept")]
        } else {
            Vec::new()
        };
        let mut check = AuditCheck::new(self.dir.join("audit"));
        check.keys = vec![self.key.clone()];
        check.mirrors = places.clone();
        let keys = vec![self.key.clone()];
        let against = VerifyOptions {
            keys,
            mirrors: places,
            live: false,
            ..VerifyOptions::default()
        };
        let found = verify(&self.dir.join("audit"), &against).unwrap();
        let (code, ours, foreign) = (found.exit_code(), found.chains, found.foreign_lines);
        let theirs = check.run().unwrap();
        assert_eq!(theirs.foreign_lines, foreign, "{about}");
        let verdict = match theirs.verdict() {
            AuditVerdict::Intact => 0,
            AuditVerdict::Broken => 1,
            _ => 3,
        };
        assert_eq!(verdict, code, "{about}: {theirs}");
        assert_eq!(theirs.chains.len(), ours.len(), "{about}");
        let mine = ours.iter().find_map(|chain| chain.first_bad.clone());
        let bad = theirs
            .chains
            .iter()
            .find_map(|chain| chain.first_fault.clone());
        let place = |file: &Path, line| (file.to_owned(), line);
        let (a, b) = (
            mine.as_ref().map(|bad| place(&bad.file, bad.line)),
            bad.as_ref().map(|bad| place(&bad.file, bad.line)),
        );
        assert_eq!(a, b, "{about}: {mine:?} against {bad:?}");
        a
    }

    /// A change of a file, and back.
    fn changed(&self, file: &Path, bytes: &[u8], about: &str) -> bool {
        let sound = fs::read(file).unwrap();
        fs::write(file, bytes).unwrap();
        let bad = self.bad(true, about).is_some();
        fs::write(file, sound).unwrap();
        bad
    }
}

// T67: each byte with `TOOLGATE_LONG=1`, else every 101st.
#[test]
fn flipped_bytes() {
    let log = log("flip", 8, None);
    let step = if std::env::var_os("TOOLGATE_LONG").is_some() {
        1
    } else {
        101
    };
    let mut count = 0;
    assert_eq!(log.bad(true, "sound"), None);
    for file in log.files() {
        let sound = fs::read(&file).unwrap();
        for at in (0..sound.len()).step_by(step) {
            for flip in [0x01, sound[at]] {
                let mut bytes = sound.clone();
                bytes[at] ^= flip;
                assert!(log.changed(&file, &bytes, &format!("byte {at} by {flip}")));
                count += 1;
            }
        }
    }
    println!("T67: {count} flipped bytes found by both verifiers at the same line");
}

#[test]
fn records_deleted_repeated_swapped_and_inserted() {
    let log = log("records", 8, None);
    let mut count = 0;
    for file in log.files() {
        let sound = fs::read(&file).unwrap();
        let lines: Vec<&[u8]> = sound.split_inclusive(|b| *b == b'\n').collect();
        for at in 0..lines.len() {
            let mut changes = vec![lines.clone(); 4];
            changes[0].remove(at);
            changes[1].insert(at, lines[at]);
            changes[2].insert(0, lines[at]);
            changes[3].swap(at, (at + 1) % lines.len());
            // One line fewer at the end of all is a cut end, which the second place knows of if it was signed.
            for (kind, change) in changes.into_iter().enumerate() {
                log.changed(
                    &file,
                    &change.concat(),
                    &format!("record {at}, change {kind}"),
                );
                count += 1;
            }
        }
    }
    println!("T67: {count} deleted, repeated, inserted and swapped records, both verifiers agree");
}

#[test]
fn cut_ends_and_missing_files() {
    let log = log("cut", 8, None);
    let files = log.files();
    let last = files.last().unwrap();
    let sound = fs::read(last).unwrap();
    let mut found = 0;
    for length in (0..sound.len()).step_by(11) {
        found += u32::from(log.changed(last, &sound[..length], &format!("cut at {length}")));
    }
    let mut zeros = sound.clone();
    zeros.extend([0; 100]);
    assert!(log.changed(last, &zeros, "zeros at the end"));
    for file in &files {
        let bytes = fs::read(file).unwrap();
        fs::remove_file(file).unwrap();
        assert!(log.bad(true, "a file is gone").is_some());
        fs::write(file, bytes).unwrap();
    }
    fs::remove_dir_all(&log.chain).unwrap();
    assert!(log.bad(true, "the chain was removed").is_some());
    assert_eq!(
        log.bad(false, "without a second place nothing is missed"),
        None
    );
    println!("T67: {found} cut ends found, both verifiers agree on all");
}

#[test]
fn retired_segments() {
    let log = log("retired", 60, Some(12_000));
    assert!(!log.files()[0].ends_with("seg-00000001.jsonl"));
    assert_eq!(log.bad(true, "retired"), None);
    fs::remove_file(&log.files()[0]).unwrap();
    assert!(log.bad(true, "one more is gone").is_some());
}

#[test]
fn another_key() {
    let mut log = log("key", 2, None);
    let mut other = log.key.clone();
    other.replace_range(0..1, if other.starts_with('0') { "1" } else { "0" });
    log.key = other;
    assert!(log.bad(false, "another key").is_some());
}

#[test]
fn the_program_ends_with_the_documented_codes() {
    let log = log("codes", 8, None);
    let code = |words: &[&str]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate-verify"));
        let out = program.args(words).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let audit = log.dir.join("audit");
    let dir = audit.to_str().unwrap();
    // The mirror is found by its name in the log, the key in the folder.
    let (intact, said) = code(&[dir]);
    assert_eq!(intact, Some(0), "{said}");
    assert!(said.contains("intact: signed up to record "), "{said}");
    assert_eq!(code(&["--what"]).0, Some(2));
    assert_eq!(code(&[log.dir.join("none").to_str().unwrap()]).0, Some(3));
    let last = log.files().pop().unwrap();
    let sound = fs::read(&last).unwrap();
    fs::write(&last, &sound[..sound.len() / 2]).unwrap();
    assert_eq!(code(&[dir]).0, Some(1));
    fs::write(&last, &sound).unwrap();
    fs::remove_file(audit.join("checkpoint.key")).unwrap();
    assert_eq!(code(&[dir]).0, Some(3), "there is no key to compare with");
    assert_eq!(code(&[dir, "--key", &log.key]).0, Some(0));
    fs::remove_dir_all(log.dir.join("kept")).unwrap();
    let (unclear, said) = code(&[dir, "--key", &log.key]);
    assert_eq!(unclear, Some(3), "{said}");
}

/// Rewrites a log as an earlier version wrote it: without what a chain states about itself, signed with the same key.
/// Keeps `keep` records.
fn as_before(log: &Log, keep: usize) {
    const STATED: [&str; 5] = [
        "batch_records",
        "checkpoint_mirror",
        "checkpoint_records",
        "checkpoint_seconds",
        "mac_key",
    ];
    let seed = fs::read_to_string(log.dir.join("audit/checkpoint.key")).unwrap();
    let byte = |at: usize| u8::from_str_radix(&seed[2 * at..2 * at + 2], 16).unwrap();
    let seed: Vec<u8> = (0..32).map(byte).collect();
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let file = log.files().remove(0);
    let (mut text, mut prev) = (String::new(), "0".repeat(64));
    for line in fs::read_to_string(&file).unwrap().lines().take(keep) {
        let mut record: Map<String, Value> = serde_json::from_str(line).unwrap();
        record.retain(|name, _| name != "h" && !STATED.contains(&name.as_str()));
        record.insert("prev".into(), prev.clone().into());
        if record["ev"] == "checkpoint" {
            let (chain, last) = (record["chain"].as_str().unwrap(), &record["last"]);
            let lines = format!(
                "{chain}\n{last}\n{prev}\n{}\n{}",
                record["count"], record["at"]
            );
            let signed = format!("toolgate-journal-checkpoint-v1\n{lines}\n");
            let sig = hex(pair.sign(signed.as_bytes()).as_ref());
            record.insert("head".into(), prev.clone().into());
            record.insert("sig".into(), sig.into());
        }
        let body = serde_json::to_string(&record).unwrap();
        let body = format!("toolgate-journal-record-v1\n{body}");
        prev = hex(digest(&SHA256, body.as_bytes()).as_ref());
        record.insert("h".into(), prev.clone().into());
        text += &(serde_json::to_string(&record).unwrap() + "\n");
    }
    for file in log.files() {
        fs::remove_file(file).unwrap();
    }
    fs::write(&file, text).unwrap();
    let _ = fs::remove_dir_all(log.dir.join("kept"));
}

#[test]
fn a_log_of_an_earlier_version_is_intact_as_far_as_it_is_signed_and_else_cannot_be_told() {
    for (keep, code) in [(8, 0), (7, 3)] {
        let log = log(&format!("before-{keep}"), 6, None);
        as_before(&log, keep);
        assert_eq!(log.bad(false, "an earlier version"), None);
        let found = verify(&log.dir.join("audit"), &VerifyOptions::default()).unwrap();
        let lines = fs::read_to_string(log.files().remove(0)).unwrap();
        let last = lines.lines().last().unwrap();
        let signed = last.contains("\"ev\":\"checkpoint\"");
        assert_eq!(found.exit_code(), code, "{found:?}");
        assert_eq!(signed, code == 0, "{last}");
    }
}
