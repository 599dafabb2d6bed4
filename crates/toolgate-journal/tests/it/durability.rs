//! An answer comes after the sync; many answers share one.

use crate::kit::{FaultyDisk, Op, Scratch, append, begin, block_on, end};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use toolgate_journal::{
    AuditEntry, AuditEvent, AuditJournal, Error, JournalHealth, JournalOptions, Urgency,
};

#[test]
fn append_resolves_only_after_the_sync() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.take_log();
    disk.hold(true);
    let mut future = pin!(journal.append(begin("c1")));
    disk.wait_for_sync();
    assert!(matches!(disk.take_log()[..], [Op::Write(_), Op::Sync]));
    assert!(
        scratch.lines(journal.initial_chain())[2].contains(r#""call":"c1""#),
        "written before the sync"
    );
    let mut context = Context::from_waker(Waker::noop());
    assert!(
        future.as_mut().poll(&mut context).is_pending(),
        "answered before the sync returned"
    );
    disk.hold(false);
    let receipt = block_on(future).unwrap();
    assert_eq!(
        (receipt.chain.as_ref(), receipt.seq),
        (journal.initial_chain(), 3)
    );
}

#[test]
fn waiters_share_a_sync() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.take_log();
    disk.hold(true);
    let first = journal.append(begin("c0"));
    disk.wait_for_sync();
    let rest: Vec<_> = (1..=300)
        .map(|at| journal.append(begin(&format!("c{at}"))))
        .collect();
    disk.hold(false);
    assert_eq!(block_on(first).unwrap().seq, 3);
    for (at, future) in rest.into_iter().enumerate() {
        assert_eq!(block_on(future).unwrap().seq, at as u64 + 4);
    }
    // One alone, then 256, then the remaining 44.
    let log = disk.take_log();
    assert_eq!(
        log.iter().filter(|op| **op == Op::Sync).count(),
        3,
        "{log:?}"
    );
    assert_eq!(log.len(), 6, "{log:?}");
}

#[test]
fn a_dropped_future_is_still_recorded() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    drop(journal.append(begin("c1")));
    journal.enqueue(end("c1")).unwrap();
    journal.close();
    assert_eq!(scratch.lines(journal.initial_chain()).len(), 5);
}

#[test]
fn an_entry_that_can_wait_is_written_with_the_next_urgent_one() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    disk.hold(true);
    let first = journal.append(begin("c0"));
    disk.wait_for_sync();
    disk.take_log();
    let waiting = journal.try_append(begin("c1"), Urgency::CanWait).unwrap();
    let urgent = journal.append(end("c1"));
    disk.hold(false);
    for future in [block_on(first), block_on(waiting), block_on(urgent)] {
        future.unwrap();
    }
    let writes = disk.take_log();
    let writes = writes.iter().filter(|op| matches!(op, Op::Write(_)));
    assert_eq!(writes.count(), 1);
}

#[test]
fn an_entry_that_can_wait_needs_no_other_one() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for at in 0..3 {
        let begin = begin(&format!("c{at}"));
        block_on(journal.try_append(begin, Urgency::CanWait).unwrap()).unwrap();
    }
    assert_eq!(scratch.calls(journal.initial_chain()), 3);
}

#[test]
fn a_full_queue_refuses_at_once_and_drops_nothing() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let mut options = disk.options(&scratch);
    options.max_queue_entries = 4;
    let journal = AuditJournal::open(options).unwrap();
    disk.take_log();
    disk.hold(true);
    let mut accepted = vec![journal.append(begin("c0"))];
    disk.wait_for_sync();
    accepted.extend((1..=4).map(|at| journal.append(begin(&format!("c{at}")))));
    assert!(matches!(journal.enqueue(end("c0")), Err(Error::Overloaded)));
    let refused = pin!(journal.append(end("c0")));
    let answer = refused.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(answer, Poll::Ready(Err(Error::Overloaded))));
    disk.hold(false);
    for future in accepted {
        block_on(future).unwrap();
    }
    append(&journal, end("c0")).unwrap();
    assert_eq!(journal.health(), JournalHealth::Healthy);
    assert_eq!(scratch.verify().chains[0].records, 8);
}

#[test]
fn queued_bytes_have_a_limit() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let mut options = disk.options(&scratch);
    options.max_queue_bytes = 10_000;
    let journal = AuditJournal::open(options).unwrap();
    disk.take_log();
    disk.hold(true);
    let first = journal.append(begin("c0"));
    disk.wait_for_sync();
    let big = || AuditEntry::new(AuditEvent::DENY).with("text", "x".repeat(6000));
    journal.enqueue(big()).unwrap();
    assert!(matches!(journal.enqueue(big()), Err(Error::Overloaded)));
    disk.hold(false);
    block_on(first).unwrap();
    append(&journal, begin("c1")).unwrap();
    journal.enqueue(big()).unwrap();
}

#[test]
fn close_writes_what_is_queued() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    for at in 0..1000 {
        journal.enqueue(begin(&format!("c{at}"))).unwrap();
    }
    journal.close();
    assert_eq!(disk.take_log().last(), Some(&Op::Sync));
    assert_eq!(journal.health(), JournalHealth::Closed);
    assert!(matches!(
        append(&journal, begin("late")),
        Err(Error::Closed)
    ));
    assert_eq!(scratch.calls(journal.initial_chain()), 1000);
}

// Figures for people; nothing is asserted about them.
#[test]
fn throughput() {
    let scratch = Scratch::new();
    let journal = AuditJournal::open(JournalOptions::new(&scratch.0)).unwrap();
    for (records, at_once) in [(100, 1), (8000, 256)] {
        let start = Instant::now();
        for _ in 0..records / at_once {
            let futures: Vec<_> = (0..at_once).map(|_| journal.append(begin("c"))).collect();
            for future in futures {
                block_on(future).unwrap();
            }
        }
        let each = start.elapsed() / records;
        eprintln!(
            "{at_once} at once: {each:?} a record, {:.0} records/s",
            1.0 / each.as_secs_f64()
        );
    }
}
