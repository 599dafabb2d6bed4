//! Checkpoints: when they come, and what those in a second place find.

use crate::kit::{Scratch, append, begin, block_on, end};
use crate::rotation::{check, segments, small};
use std::fs;
use std::time::{Duration, Instant};
use toolgate_journal::verify::{AuditCheck, RecordFault};
use toolgate_journal::{AuditJournal, FileDisk, JournalOptions, public_key};

fn marks(scratch: &Scratch, chain: &str) -> Vec<usize> {
    let lines = scratch.lines(chain);
    let numbered = lines.iter().enumerate();
    numbered
        .filter(|(_, line)| line.contains("\"ev\":\"checkpoint\""))
        .map(|(at, _)| at + 1)
        .collect()
}

#[test]
fn a_checkpoint_follows_after_a_number_of_records() {
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.checkpoint_records = 10;
    options.checkpoint_interval = Duration::from_secs(3600);
    let journal = AuditJournal::open(options).unwrap();
    for at in 0..25 {
        append(&journal, begin(&format!("c{at}"))).unwrap();
    }
    assert_eq!(marks(&scratch, journal.initial_chain()), [2, 13, 24]);
    journal.close();
    assert_eq!(
        marks(&scratch, journal.initial_chain()),
        [2, 13, 24, 30],
        "and at the end"
    );
}

#[test]
fn a_checkpoint_follows_after_a_time_if_something_was_written() {
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.checkpoint_interval = Duration::from_millis(50);
    let journal = AuditJournal::open(options).unwrap();
    append(&journal, begin("c")).unwrap();
    let start = Instant::now();
    while marks(&scratch, journal.initial_chain()).len() < 2 {
        assert!(start.elapsed() < crate::kit::BOUND, "no checkpoint came");
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        marks(&scratch, journal.initial_chain()).len() <= 2,
        "nothing was written since"
    );
}

// T67: every end is missed, back to the last checkpoint of the second place.
#[test]
fn a_cut_end_is_found_by_the_second_place() {
    let scratch = Scratch::new();
    let mut options = small(&scratch);
    options.checkpoint_records = 4;
    options.segment_bytes = 1 << 20;
    let journal = AuditJournal::open(options).unwrap();
    for at in 0..10 {
        append(&journal, begin(&format!("c{at}"))).unwrap();
        append(&journal, end(&format!("c{at}"))).unwrap();
    }
    let chain = journal.initial_chain().to_owned();
    journal.close();
    let file = segments(&scratch, &chain).remove(0);
    let lines = scratch.lines(&chain);
    let last = check(&scratch).chains[0].mirrored.unwrap();
    let (mut found, mut innocent) = (0, 0);
    for keep in 1..=lines.len() {
        fs::write(&file, lines[..keep].join("\n") + "\n").unwrap();
        let bad = check(&scratch).chains.remove(0).first_fault;
        if keep as u64 >= last {
            assert_eq!(bad, None);
            innocent += 1;
        } else {
            assert_eq!(
                bad.unwrap().fault,
                RecordFault::Cut { kept: last },
                "{keep}"
            );
            found += 1;
        }
    }
    fs::remove_dir_all(scratch.0.join(&chain)).unwrap();
    let report = check(&scratch);
    assert_eq!(
        report.chains[0].first_fault.as_ref().unwrap().fault,
        RecordFault::Cut { kept: last }
    );
    println!(
        "T67: {found} cut ends and a removed chain found, {innocent} after the last checkpoint not"
    );
}

#[test]
fn a_start_does_not_continue_a_chain_whose_end_was_cut_off() {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    append(&journal, end("c1")).unwrap();
    let chain = journal.initial_chain().to_owned();
    journal.close();
    let file = segments(&scratch, &chain).remove(0);
    let lines = scratch.lines(&chain);
    fs::write(&file, lines[..2].join("\n") + "\n").unwrap();
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    assert_ne!(journal.initial_chain(), chain);
}

// Who has the key, and not the second place, is found by the second place.
#[test]
fn a_chain_made_anew_with_the_key_is_found_by_the_second_place() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let journal = AuditJournal::open(small(&one)).unwrap();
    append(&journal, begin("c1")).unwrap();
    let chain = journal.initial_chain().to_owned();
    journal.close();
    // The same name and key, other records.
    fs::create_dir_all(two.0.join(&chain)).unwrap();
    two.put_key(&fs::read(one.0.join("checkpoint.key")).unwrap());
    let journal = two.open();
    assert_eq!(journal.initial_chain(), chain);
    append(&journal, begin("c2")).unwrap();
    journal.close();
    let mut check = AuditCheck::new(&two.0);
    check.mirrors.push(one.elsewhere());
    let bad = check.run().unwrap().chains.remove(0).first_fault.unwrap();
    assert_eq!((bad.seq, bad.fault), (1, RecordFault::Forked));
}

#[test]
fn the_key_counts_that_was_given() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let journal = one.open();
    append(&journal, begin("c1")).unwrap();
    drop(journal);
    let mut check = AuditCheck::new(&one.0);
    check.keys.push(public_key(&one.0, &FileDisk).unwrap());
    assert!(check.run().unwrap().is_intact());
    check.keys = vec![public_key(&two.0, &FileDisk).unwrap()];
    let bad = check.run().unwrap().chains.remove(0).first_fault.unwrap();
    assert_eq!(
        bad.fault,
        RecordFault::Signature("it is signed with another key than the expected one")
    );
}

#[test]
fn a_second_place_that_fails_is_told_and_made_up_for() {
    if !std::path::Path::new("/dev/full").exists() {
        return eprintln!("skipped: there is no /dev/full here");
    }
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.checkpoint_mirror = Some("/dev/full".into());
    options.checkpoint_records = 1;
    let journal = AuditJournal::open(options).unwrap();
    block_on(journal.append(begin("c1"))).unwrap();
    let trouble = journal.mirror_error().unwrap();
    assert!(trouble.contains("No space left"), "{trouble}");
}

#[test]
fn a_torn_line_in_the_second_place_is_no_accusation() {
    let scratch = Scratch::new();
    drop(AuditJournal::open(small(&scratch)).unwrap());
    let place = fs::read_dir(scratch.elsewhere())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut text = fs::read_to_string(&place).unwrap();
    text.push_str("{\"at\":17");
    fs::write(&place, text).unwrap();
    drop(AuditJournal::open(small(&scratch)).unwrap());
    let report = check(&scratch);
    assert!(
        report.is_intact() && report.unreadable_lines == 1,
        "{report}"
    );
    assert!(report.chains[0].mirrored.unwrap() > 2);
}
