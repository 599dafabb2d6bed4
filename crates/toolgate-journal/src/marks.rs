//! When a checkpoint is due, and its way to the second place.

use crate::options::Options;
use crate::place::Place;
use crate::sign::Signer;
use std::io;
use std::time::{Duration, Instant};

/// The checkpoints of a writer.
#[derive(Debug)]
pub(crate) struct Marks {
    pub(crate) signer: Signer,
    place: Option<Place>,
    /// Records since the last checkpoint.
    pub(crate) unsigned: u64,
    /// A checkpoint is due whatever the numbers say.
    pub(crate) wanted: bool,
    since: Instant,
    /// The newest checkpoint, as long as the second place does not have it.
    untold: Option<String>,
}

impl Marks {
    /// No checkpoint yet; the first write ends with one.
    pub(crate) fn new(signer: Signer, place: Option<Place>) -> Self {
        Self {
            signer,
            place,
            unsigned: 0,
            wanted: false,
            since: Instant::now(),
            untold: None,
        }
    }

    /// Whether one is due after the records that are about to be written.
    pub(crate) fn is_due(&self, options: &Options) -> bool {
        let enough = self.unsigned >= options.checkpoint_records.max(1)
            || self.since.elapsed() >= options.checkpoint_every;
        self.unsigned > 0 && (self.wanted || enough)
    }

    /// How long until one is due; `None` if everything is signed.
    pub(crate) fn due_in(&self, options: &Options) -> Option<Duration> {
        let left = || {
            options
                .checkpoint_every
                .saturating_sub(self.since.elapsed())
        };
        (self.unsigned > 0).then(left)
    }

    /// A checkpoint is about to be written with this line; it was begun at that time.
    pub(crate) fn signed(&mut self, line: &str, at: Instant) {
        self.unsigned = 0;
        self.wanted = false;
        self.since = at;
        self.untold = Some(line.to_owned());
    }

    /// The chain is another one now, with a place of its own.
    pub(crate) fn moved(&mut self, place: Option<Place>) {
        self.place = place;
        self.untold = None;
        self.unsigned = 0;
    }

    /// Appends the newest checkpoint to the second place; `None` if there is nothing to tell. What does not arrive is
    /// covered by the next.
    pub(crate) fn publish(&mut self, failed: bool) -> Option<io::Result<()>> {
        let line = self.untold.take()?;
        // After a failure nobody knows whether the line is on the disk.
        if failed {
            return None;
        }
        Some(self.place.as_mut()?.append(&line))
    }
}
