//! From one segment to the next, at every point of it.

use crate::kit::{Scratch, append, begin, end};
use std::fs;
use std::path::PathBuf;
use toolgate_journal::verify::{AuditCheck, AuditReport, RecordFault};
use toolgate_journal::{AuditJournal, JournalOptions};

pub(crate) fn small(scratch: &Scratch) -> JournalOptions {
    let mut options = JournalOptions::new(&scratch.0);
    options.segment_bytes = 4096;
    options.checkpoint_mirror = Some(scratch.elsewhere());
    options
}

pub(crate) fn check(scratch: &Scratch) -> AuditReport {
    let mut check = AuditCheck::new(&scratch.0);
    check.mirrors.push(scratch.elsewhere());
    check.run().unwrap()
}

pub(crate) fn segments(scratch: &Scratch, chain: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.0.join(chain)).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    files
}

/// A closed log of a few segments; the call `long` is open from the first to the last.
fn log(calls: usize) -> (Scratch, String) {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    append(&journal, begin("long")).unwrap();
    for at in 0..calls {
        append(&journal, begin(&format!("c{at}"))).unwrap();
        append(&journal, end(&format!("c{at}"))).unwrap();
    }
    let chain = journal.initial_chain().to_owned();
    journal.close();
    (scratch, chain)
}

#[test]
fn segments_are_sealed_and_signed_and_the_chain_goes_on() {
    let (scratch, chain) = log(40);
    let files = segments(&scratch, &chain);
    assert!(files.len() > 5, "{}", files.len());
    for file in &files[1..] {
        let text = fs::read_to_string(file).unwrap();
        assert!(
            text.lines()
                .next()
                .unwrap()
                .contains("\"ev\":\"checkpoint\"")
        );
    }
    for file in &files[..files.len() - 1] {
        let text = fs::read_to_string(file).unwrap();
        let seal = text.lines().last().unwrap();
        assert!(seal.contains("\"ev\":\"segment.sealed\"") && seal.contains("\"open_from\":1"));
    }
    let report = check(&scratch);
    assert!(report.is_intact(), "{report}");
    let found = &report.chains[0];
    assert_eq!(found.segments, files.len() as u64);
    assert_eq!(
        (found.open_calls.len(), found.open_calls[0].call.as_str()),
        (1, "long")
    );
    assert_eq!(
        (found.signed, found.mirrored),
        (found.records - 1, Some(found.signed))
    );
}

// T70: a crash may come at any byte of a rotation.
#[test]
fn every_point_of_a_rotation_is_continued() {
    let (scratch, chain) = log(12);
    let files = segments(&scratch, &chain);
    let all: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    let seal = all[1].len()
        - all[1]
            .trim_ascii_end()
            .rsplit(|b| *b == b'\n')
            .next()
            .unwrap()
            .len()
        - 1;
    let mut points = 0;
    // While the seal is written, and while the first record of the next segment is.
    let ends = (seal..=all[1].len())
        .step_by(7)
        .map(|length| (length, None));
    let first = all[2].iter().position(|b| *b == b'\n').unwrap();
    let nexts = (0..=first + 1)
        .step_by(7)
        .map(|length| (all[1].len(), Some(length)));
    for (length, next) in ends.chain([(all[1].len(), None)]).chain(nexts) {
        files
            .iter()
            .skip(2)
            .for_each(|file| drop(fs::remove_file(file)));
        fs::write(&files[0], &all[0]).unwrap();
        fs::write(&files[1], &all[1][..length]).unwrap();
        if let Some(length) = next {
            fs::write(&files[2], &all[2][..length]).unwrap();
        }
        let mut options = small(&scratch);
        options.checkpoint_mirror = None;
        let journal = AuditJournal::open(options).unwrap();
        assert_eq!(journal.initial_chain(), chain, "{length} {next:?}");
        append(&journal, begin("after")).unwrap();
        append(&journal, end("after")).unwrap();
        drop(journal);
        let report = scratch.verify();
        assert!(report.is_intact(), "{length} {next:?}: {report}");
        let found = &report.chains[0];
        assert_eq!(
            (found.open_calls.len(), found.unknown_calls > 0),
            (0, true),
            "`long` is closed"
        );
        points += 1;
    }
    println!("T70: {points} crash points of a rotation, all continued");
}

// A start does not read what is behind a seal, unless a call is open from there.
#[test]
fn a_start_reads_from_the_last_seal_only() {
    let (scratch, chain) = log(40);
    let files = segments(&scratch, &chain);
    // Closes `long`; after two more rotations nothing is open from before.
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    for at in 0..20 {
        append(&journal, begin(&format!("d{at}"))).unwrap();
        append(&journal, end(&format!("d{at}"))).unwrap();
    }
    drop(journal);
    let changed = fs::read_to_string(&files[1])
        .unwrap()
        .replacen("read", "rxxx", 1);
    fs::write(&files[1], changed).unwrap();
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    assert_eq!(journal.initial_chain(), chain);
    drop(journal);
    let bad = check(&scratch).chains.remove(0).first_fault.unwrap();
    assert_eq!((bad.file, bad.fault), (files[1].clone(), RecordFault::Hash));
}

#[test]
fn a_seal_is_checked() {
    for change in ["missing segment", "no seal", "grown"] {
        let (scratch, chain) = log(20);
        let files = segments(&scratch, &chain);
        let text = fs::read_to_string(&files[1]).unwrap();
        let cut = text.trim_end().rfind('\n').unwrap() + 1;
        match change {
            "missing segment" => fs::remove_file(&files[1]).unwrap(),
            "no seal" => fs::write(&files[1], &text[..cut]).unwrap(),
            _ => fs::write(&files[1], format!("{text}{}", &text[cut..])).unwrap(),
        }
        let bad = check(&scratch).chains.remove(0).first_fault.unwrap();
        let at = if change == "grown" { 1 } else { 2 };
        assert_eq!(bad.file, files[at], "{change}: {bad:?}");
    }
}

#[test]
fn the_age_of_a_segment_is_a_limit() {
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.segment_age = std::time::Duration::ZERO;
    let journal = AuditJournal::open(options).unwrap();
    for at in 0..3 {
        append(&journal, begin(&format!("c{at}"))).unwrap();
    }
    assert_eq!(segments(&scratch, journal.initial_chain()).len(), 4);
}
