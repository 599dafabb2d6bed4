//! What a chain states about itself, and whether its unsigned end keeps to it.

use super::report::Fault;
use super::scan::Line;
use std::path::PathBuf;

/// Records that crashes may add to the bounds: seals, and starts that ended before their checkpoint.
const UNSIGNED_SLACK: u64 = 64;

/// More records than a journal ever writes without a checkpoint, whatever its settings.
const MAX_UNSIGNED: u64 = 100_000;

/// The statements of a `genesis`, of a `recovered`, or of the checkpoint that begins a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How many records may be unsigned, and for how many microseconds; `None` in logs of older versions.
    pub(crate) bounds: Option<Bounds>,
    /// The checkpoint mirror.
    pub(crate) mirror: Option<PathBuf>,
    /// The digest of `mac.key`, or its first digits.
    pub(crate) mac_key: Option<String>,
}

/// The bounds of the unsigned end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Records that one write holds at most.
    batch: u64,
    /// Records after which a checkpoint follows.
    records: u64,
    /// Time after which a checkpoint follows.
    micros: u64,
}

impl Bounds {
    fn most(self) -> u64 {
        let most = self.records.saturating_add(self.batch);
        most.saturating_add(UNSIGNED_SLACK)
    }
}

impl Terms {
    /// Reads the statements of a record.
    pub(super) fn read(record: &Line<'_>) -> Self {
        let bounds = || {
            Some(Bounds {
                batch: record.number("batch_records")?,
                records: record.number("checkpoint_records")?,
                micros: record
                    .number("checkpoint_seconds")?
                    .saturating_mul(1_000_000),
            })
        };
        Self {
            bounds: bounds(),
            mirror: record.text("checkpoint_mirror").map(PathBuf::from),
            mac_key: record.text("mac_key").or_else(|| record.text("key_id")),
        }
    }
}

/// The records since the last checkpoint, and what the chain states.
#[derive(Debug, Default)]
pub(super) struct Unsigned {
    /// How many there are.
    pub(super) records: u64,
    /// What was stated last.
    pub(super) stated: Option<Terms>,
    /// The same as far as a checkpoint covers it.
    signed: Option<Terms>,
    /// Records of an older version may be among them.
    old: bool,
    /// Monotonic time of the last checkpoint or start.
    since: u64,
    /// Records that came later than the bounds allow: how many, the first and the last time.
    late: (u64, u64, u64),
}

impl Unsigned {
    /// Counts a record that is no checkpoint, or the checkpoint itself.
    pub(super) fn follow(&mut self, event: &str, record: &Line<'_>, first_of_segment: bool) {
        let mono = record.number("mono").unwrap_or(0);
        let checkpoint = event == "checkpoint";
        let starts = matches!(event, "genesis" | "recovered");
        if starts || (checkpoint && first_of_segment) {
            let terms = Terms::read(record);
            // Older versions state nothing at the beginning of a segment.
            if starts || terms.bounds.is_some() {
                self.stated = Some(terms);
            }
        }
        if checkpoint || starts {
            (self.since, self.late) = (mono, (0, 0, 0));
        } else if mono
            > self
                .since
                .saturating_add(self.bounds().map_or(u64::MAX, |b| b.micros))
        {
            let (count, first, _) = self.late;
            let first = if count == 0 { mono } else { first };
            self.late = (count + 1, first, mono);
        }
        if checkpoint {
            self.records = 0;
        } else {
            self.records += 1;
        }
        self.old |= event == "recovered" && self.bounds().is_none();
    }

    /// Whether a checkpoint comes in time. What was stated before it is signed from here on.
    pub(super) fn sign(&mut self) -> Result<(), Fault> {
        let stated = self.stated.as_ref().and_then(|terms| terms.bounds);
        let most = [self.bounds(), stated].into_iter().flatten();
        let most = most.map(Bounds::most).max();
        let most = most.filter(|_| !self.old).unwrap_or(MAX_UNSIGNED);
        if self.records > most {
            return Err(Fault::Unsigned);
        }
        self.signed.clone_from(&self.stated);
        self.old = stated.is_none();
        Ok(())
    }

    /// Whether the end is longer than it can be.
    pub(super) fn is_too_long(&self) -> bool {
        let Some(bounds) = self.bounds() else {
            return self.records > MAX_UNSIGNED;
        };
        // One write may be late: the one whose checkpoint a crash cut off.
        let (late, first, last) = self.late;
        let two_writes = late > bounds.batch || last - first > bounds.micros;
        self.records > bounds.most() || two_writes
    }

    /// Whether nothing that is signed says how long the end may be.
    pub(super) fn is_unbounded(&self) -> bool {
        self.records > 0 && self.bounds().is_none()
    }

    fn bounds(&self) -> Option<Bounds> {
        self.signed.as_ref().and_then(|terms| terms.bounds)
    }
}
