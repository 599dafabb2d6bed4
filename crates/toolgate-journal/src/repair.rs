//! Repair after a disk failure, without a restart.
//!
//! A full disk leaves no wrong data: once there is space, the repair reads the segment back, cuts off a torn write,
//! seals it and starts the next one. After a failed sync the contents of the disk are unknown, so the chain ends. A new
//! chain names the last record of the old one and closes its calls.

use crate::abandoned::AbandonedChain;
use crate::chain::{self, LockedChain};
use crate::disk::open_private;
use crate::entry::{AuditEntry, AuditEvent, ValidatedEntry};
use crate::error::Error;
use crate::failure::FailureCause;
use crate::mirror::CheckpointMirror;
use crate::notice;
use crate::record::{ChainTip, utc_us};
use crate::recover::{self, TakeoverAttempt};
use crate::segment_contents::{OpenCalls, SegmentContents};
use crate::terms::introduce;
use crate::writer::JournalWriter;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Free space in bytes that a repair needs.
const REPAIR_SPACE_BYTES: usize = 256 * 1024;

/// Maximum number of call ends that are stored for later.
const MAX_STORED_ENDS: usize = 8192;

impl JournalWriter {
    /// Stores the end of a call that could not be written: the call happened, whatever its caller was told.
    pub(crate) fn store_call_end(&mut self, record: ValidatedEntry) {
        let end = matches!(
            record.event(),
            AuditEvent::CALL_END | AuditEvent::CALL_UNKNOWN
        );
        if end && self.unwritten_ends.len() < MAX_STORED_ENDS {
            self.unwritten_ends.push(record);
        }
    }

    /// Attempts a repair. After a failed attempt, entries are still rejected until the next one.
    pub(crate) fn repair(&mut self) {
        let (Some(trouble), Some(reason)) = (self.failure, self.shared.failed()) else {
            return;
        };
        if trouble == FailureCause::Displaced && self.restore_folder().is_err() {
            return;
        }
        if check_space(&self.chain.dir).is_err() {
            return;
        }
        self.failure = None;
        let gone_on = match trouble {
            FailureCause::DiskFull => self.resume_chain(&reason),
            FailureCause::FileUnusable => self.start_new_chain(&reason),
            FailureCause::Displaced => match self.restore_segment(&reason) {
                Err(e) if FailureCause::of(&e) == FailureCause::DiskFull => {
                    Err(Error::Failed(reason.clone()))
                }
                Err(e) => self.abandon_displaced(&format!("{reason}; {e}")),
                Ok(()) => self.resume_chain(&reason),
            },
        };
        match gone_on {
            Ok(()) => self.shared.set_failed(None),
            Err(_) => self.failure = self.failure.or(Some(trouble)),
        }
        self.publish();
    }

    /// Reads the segment back, cuts off a torn write, records the recovery, and starts the next segment.
    fn resume_chain(&mut self, reason: &str) -> Result<(), Error> {
        let options = &self.options;
        let (disk, place) = (options.disk.as_ref(), options.checkpoint_mirror.as_deref());
        let key = &self.checkpoints.signer.public;
        let attempt = recover::take_over(&self.chain, disk, key, place)?;
        let TakeoverAttempt::Ready(found) = attempt else {
            return self.start_new_chain(reason);
        };
        let found = *found;
        self.tip = found.tip;
        self.segment = found.segment;
        self.contents = found.contents;
        self.open_calls = found.open_calls;
        if found.sealed {
            self.begin_segment()?;
        }
        let recovered = AuditEntry::new(AuditEvent::RECOVERED)
            .with("bytes", found.torn_bytes)
            .with("calls", 0)
            .with("cause", reason);
        self.write_introduced(recovered)?;
        self.write_stored_ends(true)?;
        self.rotate()?;
        self.write(std::iter::empty()).map(drop)
    }

    /// Starts another chain if the records of a displaced segment could not be written back.
    fn abandon_displaced(&mut self, reason: &str) -> Result<(), Error> {
        // Recording continues even without the notice; the next chain states the reason as well.
        let _ = notice::write_notice(&self.options.dir, &self.chain.id, reason);
        self.start_new_chain(reason)
    }

    /// Abandons the chain and starts another one, in which its open calls continue.
    fn start_new_chain(&mut self, reason: &str) -> Result<(), Error> {
        let disk = self.options.disk.clone();
        let chain = LockedChain::create(&self.options.dir, disk.as_ref())?;
        let place = self.options.checkpoint_mirror.as_deref();
        let place = place.map(|place| CheckpointMirror::open(place, &chain.id, disk.as_ref()));
        self.checkpoints.switch_mirror(place.transpose()?);
        self.segment = recover::open_first(&chain, disk.as_ref())?;
        self.tip = ChainTip::new(&chain.id, 1, None);
        self.contents = SegmentContents::new(1, utc_us());
        self.open_calls = OpenCalls::default();
        let before = std::mem::replace(&mut self.chain, chain);
        // A chain that was started here and failed at once has no calls of its own.
        let key = &self.checkpoints.signer.public;
        let left = match self.abandoned.take() {
            Some(left) => {
                chain::mark_closed(&before.dir);
                left
            }
            None => AbandonedChain::read(before, key),
        };
        let gone_on = self.continue_after(&left, reason);
        match gone_on {
            Ok(()) => left.mark_closed(),
            Err(_) => self.abandoned = Some(left),
        }
        gone_on
    }

    fn continue_after(&mut self, left: &AbandonedChain, reason: &str) -> Result<(), Error> {
        self.write_introduced(left.genesis().with("cause", reason))?;
        let limit = crate::options::MAX_RECORD_BYTES;
        let begins = left
            .reopened_calls()
            .map(|entry| ValidatedEntry::serialize(entry, limit));
        let begins: Vec<ValidatedEntry> = begins.collect::<Result<_, _>>()?;
        for chunk in begins.chunks(self.options.max_batch_records.max(1)) {
            self.write(chunk.iter())?;
        }
        self.write_stored_ends(false)
    }

    fn write_introduced(&mut self, entry: AuditEntry) -> Result<(), Error> {
        let entry = introduce(entry, &self.options, &self.mac_key)
            .with("checkpoint_key", self.checkpoints.signer.public.as_str());
        let record = ValidatedEntry::serialize(entry, crate::options::MAX_RECORD_BYTES)?;
        self.checkpoints.forced = true;
        self.write(std::iter::once(&record)).map(drop)
    }

    /// Writes the stored call ends; in the same chain only those that are still missing.
    fn write_stored_ends(&mut self, same_chain: bool) -> Result<(), Error> {
        let mut owed = std::mem::take(&mut self.unwritten_ends);
        if same_chain {
            owed.retain(|record| self.open_calls.has(record));
        }
        let chunks = owed.chunks(self.options.max_batch_records.max(1));
        let mut written = Ok(());
        for chunk in chunks {
            written = written.and_then(|()| self.write(chunk.iter()).map(drop));
        }
        if written.is_err() {
            self.unwritten_ends = owed;
        }
        written
    }
}

/// Returns whether enough data can be written and synced.
fn check_space(dir: &Path) -> io::Result<()> {
    let path = dir.join("room");
    let _ = fs::remove_file(&path);
    let tried = open_private(&path, true).and_then(|mut file| {
        file.write_all(&[b'.'; REPAIR_SPACE_BYTES])?;
        file.sync_data()
    });
    let _ = fs::remove_file(&path);
    tried
}
