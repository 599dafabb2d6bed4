//! Terms of a chain, and whether its unsigned end complies with them.

use super::record_line::RecordLine;
use super::report::RecordFault;
use std::path::PathBuf;

/// Additional records that crashes may leave: seals, and starts that ended before their checkpoint.
const UNSIGNED_SLACK: u64 = 64;

/// Upper bound of the records that a journal writes without a checkpoint, whatever its settings.
const MAX_UNSIGNED: u64 = 100_000;

/// Terms stated by a `genesis`, a `recovered`, or the checkpoint at the start of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainTerms {
    /// Bounds of the unsigned end; `None` in logs of older versions.
    pub(crate) bounds: Option<UnsignedBounds>,
    /// Checkpoint mirror.
    pub(crate) mirror: Option<PathBuf>,
    /// Digest of `mac.key`, or its first digits.
    pub(crate) mac_key: Option<String>,
}

/// Bounds of the unsigned end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedBounds {
    /// Maximum number of records in one write.
    batch: u64,
    /// Number of records after which a checkpoint follows.
    records: u64,
    /// Time in microseconds after which a checkpoint follows.
    micros: u64,
}

impl UnsignedBounds {
    fn max_records(self) -> u64 {
        let most = self.records.saturating_add(self.batch);
        most.saturating_add(UNSIGNED_SLACK)
    }
}

impl ChainTerms {
    /// Parses the terms of a record.
    pub(super) fn parse(record: &RecordLine) -> Self {
        let bounds = || {
            Some(UnsignedBounds {
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

/// Unsigned end: the records since the last checkpoint, and the terms of the chain.
#[derive(Debug, Default)]
pub(super) struct UnsignedEnd {
    /// Number of records since the last checkpoint.
    pub(super) records: u64,
    /// Terms that were stated last.
    pub(super) stated: Option<ChainTerms>,
    /// Terms that a checkpoint covers.
    signed: Option<ChainTerms>,
    /// True if records of an older version may be among them.
    old: bool,
    /// Monotonic time of the last checkpoint or start.
    since: u64,
    /// Records later than the bounds allow: their number, the first and the last time.
    late: (u64, u64, u64),
}

impl UnsignedEnd {
    /// Accounts for a record or a checkpoint.
    pub(super) fn update(&mut self, event: &str, record: &RecordLine, first_of_segment: bool) {
        let mono = record.number("mono").unwrap_or(0);
        let checkpoint = event == "checkpoint";
        let starts = matches!(event, "genesis" | "recovered");
        if starts || (checkpoint && first_of_segment) {
            let terms = ChainTerms::parse(record);
            // Older versions state no terms at the start of a segment.
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

    /// Verifies that a checkpoint comes in time. It signs the terms that were stated before it.
    pub(super) fn check_signed(&mut self) -> Result<(), RecordFault> {
        let stated = self.stated.as_ref().and_then(|terms| terms.bounds);
        let most = [self.bounds(), stated].into_iter().flatten();
        let most = most.map(UnsignedBounds::max_records).max();
        let most = most.filter(|_| !self.old).unwrap_or(MAX_UNSIGNED);
        if self.records > most {
            return Err(RecordFault::Unsigned);
        }
        self.signed.clone_from(&self.stated);
        self.old = stated.is_none();
        Ok(())
    }

    /// Returns whether the unsigned end is longer than the bounds allow.
    pub(super) fn is_too_long(&self) -> bool {
        let Some(bounds) = self.bounds() else {
            return self.records > MAX_UNSIGNED;
        };
        // One write may be late: the one whose checkpoint a crash cut off.
        let (late, first, last) = self.late;
        let two_writes = late > bounds.batch || last - first > bounds.micros;
        self.records > bounds.max_records() || two_writes
    }

    /// Returns whether no signed terms bound the unsigned end.
    pub(super) fn is_unbounded(&self) -> bool {
        self.records > 0 && self.bounds().is_none()
    }

    fn bounds(&self) -> Option<UnsignedBounds> {
        self.signed.as_ref().and_then(|terms| terms.bounds)
    }
}
