//! Checkpoint schedule, and publication to the checkpoint mirror.

use crate::mirror::CheckpointMirror;
use crate::options::JournalOptions;
use crate::sign::CheckpointSigner;
use std::io;
use std::time::{Duration, Instant};

/// Checkpoint schedule of a writer.
#[derive(Debug)]
pub(crate) struct CheckpointSchedule {
    pub(crate) signer: CheckpointSigner,
    mirror: Option<CheckpointMirror>,
    /// Number of records since the last checkpoint.
    pub(crate) unsigned: u64,
    /// Forces a checkpoint regardless of the schedule.
    pub(crate) forced: bool,
    last_checkpoint: Instant,
    /// Newest checkpoint, until the checkpoint mirror has it.
    unpublished: Option<String>,
}

impl CheckpointSchedule {
    /// Creates a schedule without a previous checkpoint.
    pub(crate) fn new(signer: CheckpointSigner, place: Option<CheckpointMirror>) -> Self {
        Self {
            signer,
            mirror: place,
            unsigned: 0,
            forced: false,
            last_checkpoint: Instant::now(),
            unpublished: None,
        }
    }

    /// Returns whether a checkpoint is due after the records that are about to be written.
    pub(crate) fn is_due(&self, options: &JournalOptions) -> bool {
        self.is_due_after(0, options)
    }

    /// Returns whether a checkpoint is due after so many more records.
    pub(crate) fn is_due_after(&self, records: u64, options: &JournalOptions) -> bool {
        let unsigned = self.unsigned + records;
        let enough = unsigned >= options.checkpoint_records.max(1)
            || self.last_checkpoint.elapsed() >= options.checkpoint_interval;
        unsigned > 0 && (self.forced || enough)
    }

    /// Returns the time until the next checkpoint; `None` if all records are signed.
    pub(crate) fn due_in(&self, options: &JournalOptions) -> Option<Duration> {
        let left = || {
            options
                .checkpoint_interval
                .saturating_sub(self.last_checkpoint.elapsed())
        };
        (self.unsigned > 0).then(left)
    }

    /// Accounts for a checkpoint line that is about to be written, started at a time.
    pub(crate) fn record_checkpoint(&mut self, line: &str, at: Instant) {
        self.unsigned = 0;
        self.forced = false;
        self.last_checkpoint = at;
        self.unpublished = Some(line.to_owned());
    }

    /// Switches to the mirror file of a new chain.
    pub(crate) fn switch_mirror(&mut self, place: Option<CheckpointMirror>) {
        self.mirror = place;
        self.unpublished = None;
        self.unsigned = 0;
    }

    /// Appends the newest checkpoint to the checkpoint mirror; `None` if there is nothing to append. The next
    /// checkpoint covers one that could not be appended.
    pub(crate) fn publish(&mut self, failed: bool) -> Option<io::Result<()>> {
        let line = self.unpublished.take()?;
        // After a failure it is unknown whether the line is on disk.
        if failed {
            return None;
        }
        Some(self.mirror.as_mut()?.append(&line))
    }
}
