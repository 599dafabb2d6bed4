//! Power cuts: what was not synced is lost, cut or full of zeros.

use crate::kit::{FaultyDisk, Scratch, append, begin};
use proptest::prelude::*;
use std::fs;
use toolgate_journal::AuditJournal;

/// A segment as it was on its way to the disk, how much of it was synced, and how many records were answered.
struct Snapshot {
    chain: String,
    bytes: Vec<u8>,
    key: Vec<u8>,
    synced: usize,
    answered: u64,
}

fn snapshot() -> Snapshot {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    let mut answered = 0;
    for at in 0..5 {
        answered = append(&journal, begin(&format!("c{at}"))).unwrap().seq;
    }
    disk.take_log();
    disk.hold(true);
    journal
        .enqueue(begin("lost").with("args", "x".repeat(9000)))
        .unwrap();
    disk.wait_for_sync();
    let chain = journal.initial_chain().to_owned();
    let bytes = fs::read(scratch.segment(&chain)).unwrap();
    let synced = usize::try_from(disk.synced()).unwrap();
    assert!(synced < bytes.len(), "something was on its way");
    disk.hold(false);
    Snapshot {
        chain,
        bytes,
        key: fs::read(scratch.0.join("checkpoint.key")).unwrap(),
        synced,
        answered,
    }
}

/// Returns a possible state after the cut: a shorter file, and pages of zeros in its unsynced part.
fn after_the_cut(shot: &Snapshot, length: Option<usize>, zeros: &[(usize, usize)]) -> Vec<u8> {
    let unsynced = shot.bytes.len() - shot.synced;
    let length = length.map_or(unsynced, |length| length % unsynced);
    let mut bytes = shot.bytes[..shot.synced + length].to_vec();
    for (from, count) in zeros {
        bytes
            .iter_mut()
            .skip(shot.synced + from)
            .take(*count)
            .for_each(|byte| *byte = 0);
    }
    bytes
}

#[test]
fn answered_records_survive_a_power_cut() {
    let shot = snapshot();
    let zeros = prop::collection::vec((0..9000_usize, 1..5000_usize), 0..3);
    let config = ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(length in any::<Option<usize>>(), zeros in zeros)| {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.0.join(&shot.chain)).unwrap();
        fs::write(scratch.segment(&shot.chain), after_the_cut(&shot, length, &zeros)).unwrap();
        scratch.put_key(&shot.key);
        let journal = scratch.open();
        prop_assert_eq!(journal.initial_chain(), &shot.chain);
        drop(journal);
        let report = scratch.verify();
        prop_assert!(report.is_intact(), "{}", report);
        let lines = scratch.lines(&shot.chain);
        for seq in 3..=shot.answered {
            prop_assert!(lines[seq as usize - 1].contains(&format!("\"call\":\"c{}\"", seq - 3)), "record {seq}");
        }
    });
}
