//! Terms of a chain, and the unsigned end that no checkpoint covers.

use crate::json::RecordValue;
use std::path::PathBuf;

/// Upper bound of the records without a checkpoint, whatever the settings.
const MAX_UNSIGNED: u64 = 100_000;

/// Additional records that crashes may leave: seals, and starts that ended before their checkpoint.
const UNSIGNED_SLACK: u64 = 64;

/// Terms stated by a `genesis`, a `recovered`, or the first checkpoint of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatedTerms {
    /// Maximum records until a checkpoint, records in one write, and microseconds until a checkpoint.
    limits: Option<(u64, u64, u64)>,
    pub(crate) mirror: Option<PathBuf>,
    pub(crate) mac_key: Option<String>,
}

impl StatedTerms {
    pub(crate) fn of(record: &RecordValue) -> StatedTerms {
        let limits = || {
            let micros = record.num("checkpoint_seconds")?.saturating_mul(1_000_000);
            let (most, batch) = (
                record.num("checkpoint_records")?,
                record.num("batch_records")?,
            );
            Some((most, batch, micros))
        };
        let key = record.str("mac_key").or_else(|| record.str("key_id"));
        StatedTerms {
            limits: limits(),
            mirror: record.str("checkpoint_mirror").map(PathBuf::from),
            mac_key: key.map(str::to_owned),
        }
    }

    /// Returns whether the version that wrote the record states terms about checkpoints.
    pub(crate) fn is_new(&self) -> bool {
        self.limits.is_some()
    }

    fn most(&self) -> Option<u64> {
        let (most, batch, _) = self.limits?;
        Some(most.saturating_add(batch).saturating_add(UNSIGNED_SLACK))
    }
}

/// Unsigned end: the records since the last checkpoint.
#[derive(Default)]
pub(crate) struct UnsignedTail {
    pub(crate) records: u64,
    pub(crate) stated: StatedTerms,
    /// Terms that a checkpoint covers.
    signed: StatedTerms,
    /// True if an older version wrote some of the records.
    old: bool,
    /// Monotonic time of the last checkpoint or start, and of each later record that is late.
    since: u64,
    late: Vec<u64>,
}

impl UnsignedTail {
    /// Accounts for a checkpoint. Returns whether it comes in time.
    pub(crate) fn sign(&mut self) -> bool {
        let most = self.signed.most().max(self.stated.most());
        let most = if self.old { None } else { most };
        let fits = self.records <= most.unwrap_or(MAX_UNSIGNED);
        self.signed = self.stated.clone();
        self.old = !self.stated.is_new();
        fits
    }

    /// Accounts for a record.
    pub(crate) fn add(&mut self, event: &str, record: &RecordValue, begins: bool) {
        let starts = event == "genesis" || event == "recovered";
        let stated = StatedTerms::of(record);
        if starts || (event == "checkpoint" && begins && stated.is_new()) {
            self.stated = stated;
        }
        let at = record.num("mono").unwrap_or(0);
        if starts || event == "checkpoint" {
            self.since = at;
            self.late.clear();
        } else if let Some((_, batch, micros)) = self.signed.limits
            && at > self.since.saturating_add(micros)
            && self.late.len() as u64 <= batch.min(MAX_UNSIGNED)
        {
            self.late.push(at);
        }
        self.records = if event == "checkpoint" {
            0
        } else {
            self.records + 1
        };
        self.old |= event == "recovered" && !self.signed.is_new();
    }

    /// Returns whether the unsigned end is longer than the terms allow.
    pub(crate) fn is_too_long(&self) -> bool {
        let Some((_, batch, micros)) = self.signed.limits else {
            return self.records > MAX_UNSIGNED;
        };
        let span = self.late.last().unwrap_or(&0) - self.late.first().unwrap_or(&0);
        let late = self.late.len() as u64 > batch || span > micros;
        late || self.records > self.signed.most().unwrap_or(MAX_UNSIGNED)
    }

    /// Returns whether no signed terms bound the unsigned end.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.records > 0 && !self.signed.is_new()
    }
}
