//! Disks that fail: the first failure is the last thing that is tried.

use crate::kit::{FaultyDisk, Op, Scratch, Write, append, begin, block_on, end};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use toolgate_journal::{
    AuditJournal, Error, FileDisk, JournalHealth, JournalOptions, OpenSegment, SegmentDisk,
};

/// The journal has failed, says so, and asks nothing more of the disk.
fn check_failed(journal: &AuditJournal, disk: &FaultyDisk) {
    disk.take_log();
    assert!(matches!(journal.health(), JournalHealth::Failed(_)));
    assert!(matches!(
        append(journal, begin("later")),
        Err(Error::Failed(_))
    ));
    assert!(matches!(
        journal.enqueue(begin("later")),
        Err(Error::Failed(_))
    ));
    assert_eq!(disk.take_log(), []);
}

#[test]
fn a_failed_sync_is_final() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    disk.take_log();
    disk.hold(true);
    let first = journal.append(begin("c2"));
    disk.wait_for_sync();
    disk.fail_sync(ErrorKind::Other);
    let waiters: Vec<_> = (0..10)
        .map(|at| journal.append(begin(&format!("d{at}"))))
        .collect();
    disk.hold(false);
    block_on(first).unwrap();
    for waiter in waiters {
        let error = block_on(waiter).unwrap_err();
        assert!(matches!(error, Error::Failed(_)));
        let text = error.to_string();
        assert!(
            text.starts_with("the audit log cannot be written (")
                && text.contains("resumes by itself"),
            "{text}"
        );
    }
    check_failed(&journal, &disk);
}

#[test]
fn a_chain_whose_sync_failed_is_never_continued() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.fail_sync(ErrorKind::Other);
    append(&journal, begin("c1")).unwrap_err();
    let failed = journal.initial_chain().to_owned();
    drop(journal);
    let next = scratch.open();
    assert_ne!(next.initial_chain(), failed);
    append(&next, begin("c2")).unwrap();
}

#[test]
fn a_full_disk_is_final_and_the_torn_record_is_set_aside() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    disk.plan([Write::Short(100), Write::Fail(ErrorKind::StorageFull)]);
    assert!(matches!(
        append(&journal, begin("c2")),
        Err(Error::Failed(_))
    ));
    check_failed(&journal, &disk);
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    let next = scratch.open();
    assert_eq!(next.initial_chain(), chain);
    append(&next, end("c9")).unwrap();
    let report = scratch.verify();
    assert!(report.is_intact(), "{report}");
    assert_eq!(report.chains[0].torn_bytes, 100);
}

#[test]
fn a_disk_that_takes_nothing_is_final() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.plan([Write::Short(0)]);
    assert!(matches!(
        append(&journal, begin("c1")),
        Err(Error::Failed(_))
    ));
    check_failed(&journal, &disk);
}

#[test]
fn short_and_interrupted_writes_are_continued() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.take_log();
    disk.plan([
        Write::Short(1),
        Write::Fail(ErrorKind::Interrupted),
        Write::Short(50),
    ]);
    append(&journal, begin("c1")).unwrap();
    let log = disk.take_log();
    assert!(matches!(
        log[..],
        [
            Op::Write(_),
            Op::Write(_),
            Op::Write(_),
            Op::Write(_),
            Op::Sync
        ]
    ));
    drop(journal);
    assert!(scratch.verify().is_intact());
}

// Every fault at every place: an answered record is in the log, and the log of the next start is sound.
#[test]
fn no_fault_loses_an_answered_record() {
    for at in 0..8 {
        for fault in 0..3 {
            let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
            let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
            let mut answered = Vec::new();
            for number in 0..8 {
                match fault {
                    _ if number != at => {}
                    0 => disk.plan([Write::Fail(ErrorKind::Other)]),
                    1 => disk.plan([Write::Short(77), Write::Fail(ErrorKind::StorageFull)]),
                    _ => disk.fail_sync(ErrorKind::Other),
                }
                answered.extend(append(&journal, begin(&format!("c{number}"))));
            }
            assert_eq!(answered.len(), at, "all before the fault, none after it");
            let chain = journal.initial_chain().to_owned();
            drop(journal);
            drop(scratch.open());
            let lines = scratch.lines(&chain);
            for receipt in &answered {
                let call = format!("\"call\":\"c{}\"", receipt.seq - 3);
                assert!(lines[receipt.seq as usize - 1].contains(&call));
            }
            let report = scratch.verify();
            assert!(report.is_intact(), "{report}");
        }
    }
}

/// Puts every segment on the device that is always full.
#[derive(Debug)]
struct FullDevice;

impl SegmentDisk for FullDevice {
    fn create(&self, _: &Path) -> io::Result<Box<dyn OpenSegment>> {
        let file: File = OpenOptions::new().append(true).open("/dev/full")?;
        Ok(Box::new(file))
    }

    fn resume(&self, path: &Path, _: u64) -> io::Result<Box<dyn OpenSegment>> {
        self.create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        FileDisk.sync_dir(path)
    }
}

#[test]
fn a_full_device_is_reported_by_its_name() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.disk = Arc::new(FullDevice);
    let error = AuditJournal::open(options).unwrap_err();
    assert!(matches!(error, Error::Failed(_)));
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
}
