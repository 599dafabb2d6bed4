//! Old segments go, and what is left still verifies.

use crate::kit::{Scratch, append, begin, end};
use crate::rotation::{check, segments, small};
use std::fs;
use std::time::Duration;
use toolgate_journal::verify::RecordFault;
use toolgate_journal::{AuditJournal, JournalOptions};

fn record(journal: &AuditJournal, calls: usize) {
    for at in 0..calls {
        append(journal, begin(&format!("c{at}"))).unwrap();
        append(journal, end(&format!("c{at}"))).unwrap();
    }
}

fn keeping(scratch: &Scratch) -> JournalOptions {
    let mut options = small(scratch);
    options.retain_bytes = Some(20_000);
    options
}

#[test]
fn the_oldest_segments_go_and_the_rest_verifies() {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(keeping(&scratch)).unwrap();
    record(&journal, 100);
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    let files = segments(&scratch, &chain);
    let bytes: u64 = files
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert!(bytes < 32_000, "{bytes} bytes in {} files", files.len());
    let report = check(&scratch);
    assert!(report.is_intact(), "{report}");
    let found = &report.chains[0];
    assert!(
        found.first_record > 100 && found.last_retired_segment > 10,
        "{report}"
    );
    assert_eq!(found.open_calls, []);
    // And the chain goes on, also with one more start.
    let journal = AuditJournal::open(keeping(&scratch)).unwrap();
    assert_eq!(journal.initial_chain(), chain);
    record(&journal, 20);
    drop(journal);
    assert!(check(&scratch).is_intact());
}

#[test]
fn a_segment_that_nobody_retired_is_missed() {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(keeping(&scratch)).unwrap();
    record(&journal, 100);
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    fs::remove_file(&segments(&scratch, &chain)[0]).unwrap();
    let bad = check(&scratch).chains.remove(0).first_fault.unwrap();
    let why =
        "earlier segments are missing, and no record says that they were deleted by retention";
    assert_eq!(bad.fault, RecordFault::Head(why));
}

// A crash between the record and the removal leaves the file; the next start removes it.
#[test]
fn a_retired_segment_that_is_still_there_is_no_fault() {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(small(&scratch)).unwrap();
    record(&journal, 60);
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    let first = segments(&scratch, &chain).remove(0);
    let text = fs::read(&first).unwrap();
    drop(AuditJournal::open(keeping(&scratch)).unwrap());
    let left = segments(&scratch, &chain);
    let before = left[0].with_file_name(format!("seg-{:08}.jsonl", number(&left[0]) - 1));
    assert!(!before.exists() && !first.exists());
    // Only the last that went can be put back without a gap; the first is one of them only if one went.
    fs::write(&first, text).unwrap();
    let gone_on = AuditJournal::open(keeping(&scratch)).unwrap();
    assert_eq!(gone_on.initial_chain(), chain);
    assert!(!first.exists());
    drop(gone_on);
    assert!(check(&scratch).is_intact(), "{}", check(&scratch));
}

fn number(file: &std::path::Path) -> u64 {
    let name = file.file_stem().unwrap().to_str().unwrap();
    name["seg-".len()..].parse().unwrap()
}

#[test]
fn a_hold_keeps_everything() {
    for by in ["setting", "file", "open call"] {
        let scratch = Scratch::new();
        let mut options = keeping(&scratch);
        options.suspend_retention = by == "setting";
        let journal = AuditJournal::open(options).unwrap();
        if by == "file" {
            fs::write(scratch.0.join("hold"), "").unwrap();
        }
        if by == "open call" {
            append(&journal, begin("long")).unwrap();
        }
        record(&journal, 60);
        let first = scratch.segment(journal.initial_chain());
        assert!(first.exists(), "{by}");
    }
}

#[test]
fn segments_go_by_age() {
    let scratch = Scratch::new();
    let mut options = small(&scratch);
    options.retain_age = Some(Duration::from_secs(3600));
    let journal = AuditJournal::open(options.clone()).unwrap();
    record(&journal, 40);
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    assert_eq!(
        number(&segments(&scratch, &chain)[0]),
        1,
        "nothing is that old"
    );
    options.retain_age = Some(Duration::ZERO);
    drop(AuditJournal::open(options).unwrap());
    assert_eq!(
        segments(&scratch, &chain).len(),
        1,
        "all but the one in use"
    );
    assert!(check(&scratch).is_intact());
}
