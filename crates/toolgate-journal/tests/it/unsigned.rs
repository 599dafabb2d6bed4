//! The unsigned end of a chain: how long it may be, and what a start, a verifier and a running writer find.

use crate::kit::{Scratch, append, begin, end};
use crate::rotation::{segments, small};
use ring::digest;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use toolgate_journal::verify::{
    AuditCheck, AuditReport, AuditVerdict, MissingEvidence, RecordFault,
};
use toolgate_journal::{AuditJournal, JournalHealth, JournalOptions, acknowledge, notices};

/// Makes every record from `from` on anew without the key: another caller, no checkpoints.
fn forge(file: &Path, from: usize) {
    let text = fs::read_to_string(file).unwrap();
    let mut records: Vec<serde_json::Map<String, serde_json::Value>> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let tail = records.split_off(from - 1);
    let tail = tail
        .into_iter()
        .filter(|record| record["ev"] != "checkpoint");
    for mut record in tail {
        let last = records.last().unwrap();
        let seq = last["seq"].as_u64().unwrap() + 1;
        record.insert("prev".to_owned(), last["h"].clone());
        record.insert("seq".to_owned(), seq.into());
        record.insert("caller".to_owned(), "mallory".into());
        record.remove("h");
        let body = serde_json::to_string(&record).unwrap();
        let body = format!("toolgate-journal-record-v1\n{body}");
        let hash = digest::digest(&digest::SHA256, body.as_bytes());
        let hash: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        record.insert("h".to_owned(), hash.into());
        records.push(record);
    }
    let lines = records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n");
    fs::write(file, lines.collect::<String>()).unwrap();
}

fn options(scratch: &Scratch) -> JournalOptions {
    let mut options = small(scratch);
    options.segment_bytes = 1 << 20;
    options.checkpoint_records = 10;
    options.max_batch_records = 4;
    options.checkpoint_interval = Duration::from_secs(3600);
    options
}

/// A closed log of `calls` calls, and the file of its records.
fn log(scratch: &Scratch, calls: usize) -> (String, std::path::PathBuf) {
    let journal = AuditJournal::open(options(scratch)).unwrap();
    for at in 0..calls {
        append(&journal, begin(&format!("c{at}"))).unwrap();
        append(&journal, end(&format!("c{at}"))).unwrap();
    }
    let chain = journal.initial_chain().to_owned();
    journal.close();
    let file = segments(scratch, &chain).remove(0);
    (chain, file)
}

fn check(scratch: &Scratch) -> AuditReport {
    AuditCheck::new(&scratch.0).run().unwrap()
}

#[test]
fn a_forged_end_longer_than_the_stated_bounds_is_broken() {
    let scratch = Scratch::new();
    let (_, file) = log(&scratch, 60);
    assert_eq!(check(&scratch).verdict(), AuditVerdict::Intact);
    forge(&file, 4);
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    let report = check(&scratch);
    assert_eq!(report.verdict(), AuditVerdict::Broken, "{report}");
    let bad = report.chains[0].first_fault.as_ref().unwrap();
    assert_eq!(bad.fault, RecordFault::Unsigned);
}

#[test]
fn a_forged_end_within_the_bounds_is_named_as_unsigned() {
    let scratch = Scratch::new();
    let (_, file) = log(&scratch, 20);
    forge(&file, 4);
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    let report = check(&scratch);
    // The chain names its mirror, and the mirror is gone.
    assert_eq!(report.verdict(), AuditVerdict::CannotTell, "{report}");
    assert!(
        report.to_string().contains("signed up to record 1"),
        "{report}"
    );
    assert!(
        report.to_string().contains("40 records after the last"),
        "{report}"
    );
}

#[test]
fn records_later_than_the_stated_seconds_need_a_checkpoint() {
    let scratch = Scratch::new();
    let mut options = options(&scratch);
    options.checkpoint_interval = Duration::from_millis(900);
    options.checkpoint_records = 1000;
    options.max_batch_records = 2;
    let journal = AuditJournal::open(options).unwrap();
    let start = Instant::now();
    let mut at = 0;
    while start.elapsed() < Duration::from_millis(4500) {
        append(&journal, begin(&format!("c{at}"))).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        at += 1;
    }
    let chain = journal.initial_chain().to_owned();
    journal.close();
    assert_eq!(check(&scratch).verdict(), AuditVerdict::Intact);
    forge(&segments(&scratch, &chain).remove(0), 4);
    let bad = AuditCheck::new(&scratch.0)
        .run()
        .unwrap()
        .chains
        .remove(0)
        .first_fault;
    assert!(bad.is_some());
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    let bad = check(&scratch).chains.remove(0).first_fault.unwrap();
    assert_eq!(bad.fault, RecordFault::Unsigned);
}

#[test]
fn a_mirror_without_a_line_for_a_chain_that_names_it_leaves_a_doubt() {
    let scratch = Scratch::new();
    let (chain, _) = log(&scratch, 3);
    fs::remove_file(scratch.elsewhere().join(format!("{chain}.jsonl"))).unwrap();
    let report = check(&scratch);
    assert_eq!(report.verdict(), AuditVerdict::CannotTell);
    assert!(matches!(
        report.chains[0].missing_evidence[..],
        [MissingEvidence::NoMirror { named: Some(_) }]
    ));
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    assert_eq!(check(&scratch).verdict(), AuditVerdict::CannotTell);
}

#[test]
fn an_exchanged_mac_key_is_broken_and_the_next_start_says_so() {
    let scratch = Scratch::new();
    log(&scratch, 3);
    fs::write(scratch.0.join("mac.key"), "ab".repeat(32)).unwrap();
    let report = check(&scratch);
    assert_eq!(report.mac_key_exchanged, Some(true));
    assert_eq!(report.verdict(), AuditVerdict::Broken);
    let journal = AuditJournal::open(options(&scratch)).unwrap();
    assert_eq!(journal.notices().unwrap()[0].subject, "mac.key");
    journal.close();
    assert_eq!(check(&scratch).verdict(), AuditVerdict::Intact);
}

#[test]
fn a_start_over_a_cut_log_names_it_in_the_next_chain_until_it_is_acknowledged() {
    let scratch = Scratch::new();
    let (chain, file) = log(&scratch, 10);
    let lines: Vec<String> = scratch.lines(&chain);
    fs::write(&file, lines[..5].join("\n") + "\n").unwrap();
    let journal = AuditJournal::open(options(&scratch)).unwrap();
    let next = journal.initial_chain().to_owned();
    assert_ne!(next, chain);
    let genesis = scratch.lines(&next).remove(0);
    assert!(
        genesis.contains(&format!("\"after\":\"{chain}\"")),
        "{genesis}"
    );
    assert!(genesis.contains("\"after_seq\":5"), "{genesis}");
    assert!(genesis.contains("the end was cut off"), "{genesis}");
    journal.close();
    let open = notices(&scratch.0).unwrap();
    assert_eq!((open.len(), &open[0].subject), (1, &chain));
    acknowledge(&scratch.0, &open[0]).unwrap();
    let journal = AuditJournal::open(options(&scratch)).unwrap();
    assert_eq!(journal.initial_chain(), next, "it is reported once");
    assert!(journal.notices().unwrap().is_empty());
}

#[test]
fn a_start_without_a_chain_that_the_mirror_covers_names_it_in_the_next_chain() {
    let scratch = Scratch::new();
    let (chain, _) = log(&scratch, 3);
    fs::remove_dir_all(scratch.0.join(&chain)).unwrap();
    let journal = AuditJournal::open(options(&scratch)).unwrap();
    let genesis = scratch.lines(journal.initial_chain()).remove(0);
    assert!(
        genesis.contains(&format!("\"after\":\"{chain}\"")),
        "{genesis}"
    );
    assert_eq!(journal.notices().unwrap()[0].subject, chain);
}

#[test]
fn a_start_over_a_forged_end_does_not_sign_it() {
    let scratch = Scratch::new();
    let (chain, file) = log(&scratch, 60);
    forge(&file, 4);
    fs::remove_dir_all(scratch.elsewhere()).unwrap();
    let journal = AuditJournal::open(options(&scratch)).unwrap();
    assert_ne!(journal.initial_chain(), chain);
    assert_eq!(journal.notices().unwrap()[0].subject, chain);
}

/// Displaces the segment of a running writer; all that was answered is in the log afterwards.
fn displaced(displace: impl Fn(&Path)) -> (Scratch, AuditReport) {
    let scratch = Scratch::new();
    let mut options = options(&scratch);
    options.checkpoint_records = 3;
    options.repair_interval = Duration::from_millis(10);
    let journal = AuditJournal::open(options).unwrap();
    append(&journal, begin("before")).unwrap();
    displace(&segments(&scratch, journal.initial_chain()).remove(0));
    let (mut answered, mut refused) = (vec!["before".to_owned()], 0);
    let start = Instant::now();
    for at in 0.. {
        match append(&journal, begin(&format!("c{at}"))) {
            Ok(_) if refused > 0 => break,
            Ok(_) => answered.push(format!("c{at}")),
            Err(_) => refused += 1,
        }
        assert!(start.elapsed() < crate::kit::BOUND, "it never went on");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(journal.health(), JournalHealth::Healthy);
    assert_eq!(journal.notices().unwrap().len(), 1);
    journal.close();
    let report = check(&scratch);
    let text: String = report
        .chains
        .iter()
        .flat_map(|chain| segments(&scratch, &chain.chain))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    for call in answered {
        assert!(
            text.contains(&format!("\"call\":\"{call}\"")),
            "{call} is lost"
        );
    }
    (scratch, report)
}

#[test]
fn a_renamed_deleted_or_replaced_segment_is_found_and_written_back() {
    let rename = |file: &Path| fs::rename(file, file.with_extension("away")).unwrap();
    let delete = |file: &Path| fs::remove_file(file).unwrap();
    let replace = |file: &Path| {
        rename(file);
        fs::write(file, "another\n").unwrap();
    };
    let folder = |file: &Path| fs::remove_dir_all(file.parent().unwrap()).unwrap();
    let all: [&dyn Fn(&Path); 4] = [&rename, &delete, &replace, &folder];
    for displace in all {
        let (_scratch, report) = displaced(displace);
        assert_eq!(report.verdict(), AuditVerdict::Intact, "{report}");
    }
}

#[test]
fn a_segment_that_another_program_wrote_to_ends_the_chain() {
    let append = |file: &Path| {
        let mut text = fs::read_to_string(file).unwrap();
        text.push_str("{\"a\":1}\n");
        fs::write(file, text).unwrap();
    };
    let (scratch, report) = displaced(append);
    assert_eq!(report.chains.len(), 2, "{report}");
    assert_eq!(report.verdict(), AuditVerdict::Broken);
    let genesis = scratch.lines(&report.chains[1].chain).remove(0);
    assert!(
        genesis.contains("was changed by another program"),
        "{genesis}"
    );
}
