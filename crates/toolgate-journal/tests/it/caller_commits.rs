//! On a quick disk, callers write and sync their entries themselves; on a slow one, only the writer thread does.

use crate::kit::{BOUND, Scratch, append, begin, end};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use toolgate_journal::verify::AuditVerdict;
use toolgate_journal::{
    AuditEntry, AuditEvent, AuditJournal, FileDisk, JournalOptions, OpenSegment, SegmentDisk,
    Urgency,
};

/// Real files whose syncs take a set time and note their thread.
#[derive(Clone, Debug, Default)]
struct TimedDisk {
    sync_micros: Arc<AtomicU64>,
    syncs: Arc<Mutex<Vec<ThreadId>>>,
}

struct TimedSegment(Box<dyn OpenSegment>, TimedDisk);

impl TimedDisk {
    fn open(&self, scratch: &Scratch) -> AuditJournal {
        let mut options = JournalOptions::new(&scratch.0);
        options.disk = Arc::new(self.clone());
        AuditJournal::open(options).unwrap()
    }

    /// Returns the threads that synced since the last time.
    fn take(&self) -> Vec<ThreadId> {
        std::mem::take(&mut *self.syncs.lock().unwrap())
    }
}

impl SegmentDisk for TimedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(TimedSegment(FileDisk.create(path)?, self.clone())))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>> {
        let resumed = FileDisk.resume(path, length)?;
        Ok(Box::new(TimedSegment(resumed, self.clone())))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        FileDisk.sync_dir(path)
    }
}

impl OpenSegment for TimedSegment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        let (begin, time) = (Instant::now(), self.1.sync_micros.load(Relaxed));
        while begin.elapsed() < Duration::from_micros(time) {
            thread::yield_now();
        }
        self.1.syncs.lock().unwrap().push(thread::current().id());
        Ok(())
    }
}

/// Appends entries until this thread syncs one itself.
fn wait_for_quick_commits(journal: &AuditJournal, disk: &TimedDisk) {
    let (own, deadline) = (thread::current().id(), Instant::now() + BOUND);
    loop {
        disk.take();
        append(journal, AuditEntry::new(AuditEvent::DENY)).unwrap();
        if disk.take() == [own] {
            return;
        }
        assert!(Instant::now() < deadline, "the caller never syncs");
    }
}

#[test]
fn the_caller_syncs_a_quick_disk() {
    let (scratch, disk) = (Scratch::new(), TimedDisk::default());
    let journal = disk.open(&scratch);
    wait_for_quick_commits(&journal, &disk);
    journal.close();
    assert_eq!(scratch.verify().verdict(), AuditVerdict::Intact);
}

#[test]
fn only_the_writer_thread_syncs_a_slow_disk() {
    let (scratch, disk) = (Scratch::new(), TimedDisk::default());
    disk.sync_micros.store(200, Relaxed);
    let journal = disk.open(&scratch);
    disk.take();
    for at in 0..100 {
        append(&journal, begin(&format!("c{at}"))).unwrap();
    }
    let own = thread::current().id();
    let syncs = disk.take();
    assert!(syncs.len() >= 100 && !syncs.contains(&own));
}

#[test]
fn a_disk_that_becomes_slow_delays_one_caller() {
    let (scratch, disk) = (Scratch::new(), TimedDisk::default());
    let journal = disk.open(&scratch);
    wait_for_quick_commits(&journal, &disk);
    disk.sync_micros.store(20_000, Relaxed);
    append(&journal, AuditEntry::new(AuditEvent::DENY)).unwrap();
    disk.take();
    let own = thread::current().id();
    for at in 0..20 {
        append(&journal, begin(&format!("c{at}"))).unwrap();
    }
    let syncs = disk.take();
    assert!(syncs.len() >= 20 && !syncs.contains(&own));
}

#[test]
fn an_entry_whose_caller_does_not_wait_is_still_written() {
    let (scratch, disk) = (Scratch::new(), TimedDisk::default());
    let journal = disk.open(&scratch);
    wait_for_quick_commits(&journal, &disk);
    drop(journal.append(begin("dropped")));
    let kept = journal.append(begin("kept"));
    let deadline = Instant::now() + BOUND;
    while scratch.calls(journal.initial_chain()) < 2 {
        assert!(Instant::now() < deadline, "the entries are not written");
        thread::yield_now();
    }
    drop(kept);
}

#[test]
fn callers_on_many_threads_keep_the_order_of_their_entries() {
    let (scratch, disk) = (Scratch::new(), TimedDisk::default());
    let journal = Arc::new(disk.open(&scratch));
    wait_for_quick_commits(&journal, &disk);
    thread::scope(|scope| {
        for caller in 0..8 {
            let journal = &journal;
            scope.spawn(move || {
                for at in 0..100 {
                    let call = format!("c{caller}-{at}");
                    drop(journal.try_append(begin(&call), Urgency::CanWait).unwrap());
                    append(journal, end(&call)).unwrap();
                }
            });
        }
    });
    journal.close();
    assert_eq!(scratch.verify().verdict(), AuditVerdict::Intact);
    let lines = scratch.lines(journal.initial_chain());
    for caller in 0..8 {
        for at in 0..100 {
            let call = format!("\"call\":\"c{caller}-{at}\"");
            let of_call = lines.iter().filter(|line| line.contains(&call));
            let events: Vec<bool> = of_call.map(|line| line.contains("call.begin")).collect();
            assert_eq!(events, [true, false], "{call}");
        }
    }
}
