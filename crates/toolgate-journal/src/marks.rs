//! Checkpoint schedule, and publication to the checkpoint mirror.

use crate::options::JournalOptions;
use crate::place::CheckpointMirror;
use crate::sign::CheckpointSigner;
use std::io;
use std::time::{Duration, Instant};

/// Checkpoint schedule of a writer.
#[derive(Debug)]
pub(crate) struct CheckpointSchedule {
    pub(crate) signer: CheckpointSigner,
    place: Option<CheckpointMirror>,
    /// Number of records since the last checkpoint.
    pub(crate) unsigned: u64,
    /// Forces a checkpoint regardless of the schedule.
    pub(crate) wanted: bool,
    since: Instant,
    /// Newest checkpoint, until the checkpoint mirror has it.
    untold: Option<String>,
}

impl CheckpointSchedule {
    /// Creates a schedule without a previous checkpoint.
    pub(crate) fn new(signer: CheckpointSigner, place: Option<CheckpointMirror>) -> Self {
        Self {
            signer,
            place,
            unsigned: 0,
            wanted: false,
            since: Instant::now(),
            untold: None,
        }
    }

    /// Returns whether a checkpoint is due after the records that are about to be written.
    pub(crate) fn is_due(&self, options: &JournalOptions) -> bool {
        let enough = self.unsigned >= options.checkpoint_records.max(1)
            || self.since.elapsed() >= options.checkpoint_every;
        self.unsigned > 0 && (self.wanted || enough)
    }

    /// Returns the time until the next checkpoint; `None` if all records are signed.
    pub(crate) fn due_in(&self, options: &JournalOptions) -> Option<Duration> {
        let left = || {
            options
                .checkpoint_every
                .saturating_sub(self.since.elapsed())
        };
        (self.unsigned > 0).then(left)
    }

    /// Accounts for a checkpoint line that is about to be written, started at a time.
    pub(crate) fn signed(&mut self, line: &str, at: Instant) {
        self.unsigned = 0;
        self.wanted = false;
        self.since = at;
        self.untold = Some(line.to_owned());
    }

    /// Switches to the mirror file of a new chain.
    pub(crate) fn moved(&mut self, place: Option<CheckpointMirror>) {
        self.place = place;
        self.untold = None;
        self.unsigned = 0;
    }

    /// Appends the newest checkpoint to the checkpoint mirror; `None` if there is nothing to append. The next
    /// checkpoint covers one that could not be appended.
    pub(crate) fn publish(&mut self, failed: bool) -> Option<io::Result<()>> {
        let line = self.untold.take()?;
        // After a failure it is unknown whether the line is on disk.
        if failed {
            return None;
        }
        Some(self.place.as_mut()?.append(&line))
    }
}
