//! One chain, one process; what the files look like to others.

use crate::kit::{Scratch, append, begin};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::thread;
use toolgate_journal::{AuditJournal, Error, JournalOptions};

#[test]
fn two_handles_never_share_a_chain() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.open(), scratch.open());
    assert_ne!(one.initial_chain(), two.initial_chain());
    let first = one.initial_chain().to_owned();
    drop(one);
    assert_eq!(scratch.open().initial_chain(), first);
    drop(two);
    assert!(scratch.verify().is_intact());
}

#[test]
fn handles_opened_at_once_never_share_a_chain_and_agree_on_the_key() {
    let scratch = Arc::new(Scratch::new());
    let start = |_| {
        let scratch = scratch.clone();
        thread::spawn(move || scratch.open())
    };
    let threads: Vec<_> = (0..16).map(start).collect();
    let journals: Vec<AuditJournal> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let chains: BTreeSet<&str> = journals.iter().map(AuditJournal::initial_chain).collect();
    let macs: BTreeSet<String> = journals
        .iter()
        .map(|journal| journal.keyed_digest(b"x"))
        .collect();
    assert_eq!((chains.len(), macs.len()), (16, 1));
    for journal in &journals {
        append(journal, begin("c")).unwrap();
    }
    assert!(scratch.verify().is_intact());
}

#[test]
fn nobody_else_can_read_the_files() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let home = scratch.0.join(journal.initial_chain());
    assert_eq!((mode(&scratch.0), mode(&home)), (0o700, 0o700));
    for path in [
        scratch.0.join("mac.key"),
        scratch.0.join("checkpoint.key"),
        home.join("lock"),
        scratch.segment(journal.initial_chain()),
    ] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(
        fs::read_dir(&scratch.0).unwrap().count(),
        3,
        "the keys and the chain, nothing left over"
    );
}

// The digest is plain HMAC-SHA-256: computed elsewhere with the same key.
#[test]
fn the_digest_is_hmac_sha256() {
    let scratch = Scratch::new();
    fs::create_dir(&scratch.0).unwrap();
    let key = scratch.0.join("mac.key");
    fs::write(&key, "0b".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let mac = scratch.open().keyed_digest(b"Hi There");
    assert_eq!(
        mac,
        "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7"
    );
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let key = scratch.0.join("mac.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let error = AuditJournal::open(JournalOptions::new(&scratch.0)).unwrap_err();
    assert!(
        matches!(error, Error::Open { .. }) && error.to_string().contains("0600"),
        "{error}"
    );
    fs::remove_file(&key).unwrap();
    fs::write(&key, "short").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(AuditJournal::open(JournalOptions::new(&scratch.0)).is_err());
}

#[test]
fn a_segment_is_never_written_through_a_link() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let chain = journal.initial_chain().to_owned();
    drop(journal);
    let (file, elsewhere) = (scratch.segment(&chain), scratch.0.join("elsewhere"));
    fs::rename(&file, &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(
        AuditJournal::open(JournalOptions::new(&scratch.0)),
        Err(Error::Open { .. })
    ));
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}
