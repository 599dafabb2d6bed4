//! Recovery after a crash at the next start.

use crate::kit::{Scratch, append, begin, end};
use std::fs;
use std::path::PathBuf;
use toolgate_journal::verify::RecordFault;

/// A closed log of one finished and two open calls: seven records, of which two are checkpoints.
fn crashed() -> (Scratch, String) {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for entry in [begin("c1"), begin("c2"), end("c1"), begin("c3")] {
        append(&journal, entry).unwrap();
    }
    let chain = journal.initial_chain().to_owned();
    journal.close();
    (scratch, chain)
}

fn torn_files(scratch: &Scratch, chain: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(scratch.0.join(chain))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.to_string_lossy().contains(".torn-"))
        .collect()
}

#[test]
fn open_calls_are_closed_as_unknown() {
    let (scratch, chain) = crashed();
    let journal = scratch.open();
    assert_eq!(journal.initial_chain(), chain);
    let lines = scratch.lines(&chain);
    assert_eq!(lines.len(), 11);
    assert!(
        lines[7].contains(r#""ev":"recovered""#) && lines[7].contains(r#""bytes":0,"calls":2"#)
    );
    assert!(lines[8].contains(r#""begin":4,"boot""#) && lines[8].contains(r#""call":"c2""#));
    assert!(lines[9].contains(r#""ev":"call.unknown""#) && lines[9].contains(r#""call":"c3""#));
    append(&journal, begin("c4")).unwrap();
    append(&journal, end("c4")).unwrap();
    drop(journal);
    let report = scratch.verify();
    assert!(report.is_intact(), "{report}");
    assert_eq!(
        (
            report.chains[0].unknown_calls,
            report.chains[0].open_calls.len()
        ),
        (2, 0)
    );
}

#[test]
fn a_start_after_a_clean_end_closes_nothing() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let journal = scratch.open();
    let lines = scratch.lines(journal.initial_chain());
    assert_eq!(lines.len(), 4);
    assert!(lines[2].contains(r#""bytes":0,"calls":0"#));
}

// Whatever the length of the torn end, from one byte to a line without its newline.
#[test]
fn a_torn_end_is_set_aside_at_every_length() {
    let (scratch, chain) = crashed();
    let file = scratch.segment(&chain);
    let sound = fs::read(&file).unwrap();
    let last = scratch.lines(&chain).pop().unwrap();
    let start = sound.len() - last.len() - 1;
    for torn in (1..=last.len()).step_by(23).chain([last.len()]) {
        fs::write(&file, &sound[..start + torn]).unwrap();
        let bad = scratch.verify().chains.remove(0).first_fault.unwrap();
        assert_eq!(
            (bad.line, bad.fault),
            (7, RecordFault::Torn { bytes: torn as u64 })
        );
        drop(scratch.open());
        let report = scratch.verify();
        assert!(report.is_intact(), "{report}");
        assert_eq!(
            (report.chains[0].torn_bytes, report.chains[0].unknown_calls),
            (torn as u64, 2)
        );
        let files = torn_files(&scratch, &chain);
        assert_eq!(files.len(), 1);
        assert_eq!(fs::read(&files[0]).unwrap(), &sound[start..start + torn]);
        fs::remove_file(&files[0]).unwrap();
    }
}

#[test]
fn blocks_of_zeros_are_set_aside() {
    let (scratch, chain) = crashed();
    let file = scratch.segment(&chain);
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend([0; 5000]);
    bytes.extend(b"}\nrest of a lost batch\n");
    fs::write(&file, &bytes).unwrap();
    drop(scratch.open());
    let report = scratch.verify();
    assert!(report.is_intact(), "{report}");
    assert_eq!(report.chains[0].torn_bytes, 5023);
}

#[test]
fn a_crash_before_the_first_record_is_mended() {
    for left in ["", "{\"boot\":", "no file"] {
        let scratch = Scratch::new();
        let journal = scratch.open();
        let chain = journal.initial_chain().to_owned();
        drop(journal);
        let file = scratch.segment(&chain);
        if left == "no file" {
            fs::remove_file(&file)
        } else {
            fs::write(&file, left)
        }
        .unwrap();
        let journal = scratch.open();
        assert_eq!(journal.initial_chain(), chain);
        assert!(scratch.lines(&chain)[0].contains(r#""ev":"genesis""#));
        assert!(scratch.verify().is_intact());
    }
}

// A crash cannot tear that much, so whoever put the zero there must not have the rest cut off.
#[test]
fn a_zero_far_from_the_end_is_not_a_torn_end() {
    let (scratch, chain) = crashed();
    let file = scratch.segment(&chain);
    let journal = scratch.open();
    for _ in 0..60 {
        let entry = begin("big").with("args", "x".repeat(60_000));
        journal.enqueue(entry).unwrap();
    }
    drop(journal);
    let mut bytes = fs::read(&file).unwrap();
    bytes[700] = 0;
    fs::write(&file, &bytes).unwrap();
    assert_ne!(scratch.open().initial_chain(), chain);
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert!(!scratch.verify().is_intact());
}

#[test]
fn a_changed_chain_is_left_alone() {
    let (scratch, chain) = crashed();
    let file = scratch.segment(&chain);
    let changed = fs::read_to_string(&file)
        .unwrap()
        .replacen("files.read", "files.rxxx", 1);
    fs::write(&file, &changed).unwrap();
    let journal = scratch.open();
    assert_ne!(journal.initial_chain(), chain);
    assert_eq!(fs::read_to_string(&file).unwrap(), changed);
    let report = scratch.verify();
    assert_eq!(
        report.chains[0].first_fault.as_ref().unwrap().fault,
        RecordFault::Hash
    );
    assert!(report.chains[1].first_fault.is_none());
}

#[test]
fn a_live_chain_may_have_calls_in_flight_and_half_a_line() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    append(&journal, begin("c1")).unwrap();
    let file = scratch.segment(journal.initial_chain());
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"{\"boot\"");
    fs::write(&file, bytes).unwrap();
    let report = scratch.verify();
    assert!(report.is_intact() && report.chains[0].live, "{report}");
    assert!(report.to_string().contains("in use, 1 call in flight"));
    drop(journal);
    assert!(!scratch.verify().is_intact());
}
