//! The newest records, and the ones to come.

use crate::kit::{BOUND, Scratch, append, begin};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Instant;
use toolgate_journal::AuditJournal;
use toolgate_journal::read::{AuditFollower, SegmentLine, tail};

fn calls(lines: &[SegmentLine]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.fields.get("call")?.as_str())
        .collect()
}

fn record(journal: &AuditJournal, call: &str) {
    append(journal, begin(call)).unwrap();
}

#[test]
fn the_last_records_of_all_chains_by_time() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.open(), scratch.open());
    for call in ["a", "b", "c", "d", "e", "f"] {
        record(
            if call < "c" || call == "e" {
                &one
            } else {
                &two
            },
            call,
        );
    }
    assert_eq!(calls(&tail(&scratch.0, 4).unwrap()), ["c", "d", "e", "f"]);
    let all = tail(&scratch.0, 100).unwrap();
    assert_eq!(
        (all.len(), all[0].event.as_str(), all[0].seq),
        (10, "genesis", 1)
    );
    assert_eq!(all[9].chain, two.initial_chain());
    assert_eq!(all[9].raw, scratch.lines(two.initial_chain())[4]);
    assert!(tail(&scratch.0, 0).unwrap().is_empty());
}

#[test]
fn lines_longer_than_a_block_are_whole() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for at in 0..9 {
        append(
            &journal,
            begin(&format!("c{at}")).with("args", "x".repeat(60_000)),
        )
        .unwrap();
    }
    let lines = tail(&scratch.0, 5).unwrap();
    assert_eq!(calls(&lines), ["c4", "c5", "c6", "c7", "c8"]);
    assert!(
        lines
            .iter()
            .all(|line| line.fields["args"].as_str().unwrap().len() == 60_000)
    );
}

#[test]
fn a_follower_misses_nothing_and_repeats_nothing() {
    let scratch = Scratch::new();
    let one = scratch.open();
    record(&one, "a");
    record(&one, "b");
    let (last, mut follower) = AuditFollower::with_tail(&scratch.0, 1).unwrap();
    assert_eq!(calls(&last), ["b"]);
    assert!(follower.poll().unwrap().is_empty());
    record(&one, "c");
    let two = scratch.open();
    record(&two, "d");
    let lines = follower.poll().unwrap();
    assert_eq!(calls(&lines), ["c", "d"]);
    assert_eq!(lines.len(), 4, "the new chain from its beginning");
    assert!(follower.poll().unwrap().is_empty());
    assert!(
        AuditFollower::from_end(&scratch.0)
            .unwrap()
            .poll()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn everything_from_the_start() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for at in 0..40 {
        let entry = begin(&format!("c{at}")).with("args", "x".repeat(60_000));
        append(&journal, entry).unwrap();
    }
    let (mut follower, mut all) = (AuditFollower::from_start(&scratch.0), Vec::new());
    loop {
        let lines = follower.poll().unwrap();
        if lines.is_empty() {
            break;
        }
        assert!(lines.len() <= 20, "a poll reads about a mebibyte");
        all.extend(lines);
    }
    assert_eq!(all.len(), 42);
    assert!((1..).zip(&all).all(|(seq, line)| line.seq == seq));
}

#[test]
fn half_a_line_is_waited_for() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let file = scratch.segment(journal.initial_chain());
    let mut follower = AuditFollower::from_end(&scratch.0).unwrap();
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(b"{\"ev\":\"de").unwrap();
    assert!(follower.poll().unwrap().is_empty());
    assert_eq!(tail(&scratch.0, 9).unwrap().len(), 2);
    file.write_all(b"ny\"}\nnonsense\n").unwrap();
    let events: Vec<String> = follower
        .poll()
        .unwrap()
        .into_iter()
        .map(|line| line.event)
        .collect();
    assert_eq!(events, ["deny", "unreadable"]);
}

#[test]
fn a_follower_goes_on_in_the_next_segment() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let first = scratch.segment(journal.initial_chain());
    let mut follower = AuditFollower::from_end(&scratch.0).unwrap();
    record(&journal, "a");
    fs::write(
        first.with_file_name("seg-00000002.jsonl"),
        "{\"call\":\"b\",\"ev\":\"deny\"}\n",
    )
    .unwrap();
    let mut found = Vec::new();
    let start = Instant::now();
    while found.len() < 2 && start.elapsed() < BOUND {
        found.extend(follower.poll().unwrap());
    }
    assert_eq!(calls(&found), ["a", "b"]);
    assert_eq!(calls(&tail(&scratch.0, 2).unwrap()), ["a", "b"]);
}
