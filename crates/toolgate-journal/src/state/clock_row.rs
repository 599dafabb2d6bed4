//! Row of the state that stores the highest time of a [`StateClock`].

use super::StateClock;
use crate::boot::{BootTime, boot_id, boot_time};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Table of the state that stores the highest time.
pub(super) const TABLE: &str = "clock";
/// Key of the only row of that table.
pub(super) const KEY: &str = "highest";

impl StateClock {
    /// Returns the row that stores the current time.
    pub(super) fn to_row(&self) -> Value {
        let up = boot_time();
        json!({
            "ms": millis(self.now()),
            "boot": up.as_ref().map(|_| boot_id()),
            "up_ms": up.map(|BootTime(up)| u64::try_from(up.as_millis()).unwrap_or(0)),
        })
    }

    /// Advances the clock to the time of a row, plus the time since then if the machine was not rebooted.
    pub(super) fn merge_row(&self, row: &Value) {
        let number = |key: &str| {
            row.get(key)
                .and_then(Value::as_u64)
                .map(Duration::from_millis)
        };
        let Some(time) = number("ms") else {
            return;
        };
        let same_boot = row.get("boot").and_then(Value::as_str) == Some(boot_id().as_str());
        let up = boot_time().filter(|_| same_boot);
        let passed = up
            .zip(number("up_ms"))
            .and_then(|(BootTime(up), then)| up.checked_sub(then));
        if let Some(time) = UNIX_EPOCH.checked_add(time + passed.unwrap_or_default()) {
            self.raise(time);
        }
    }
}

/// Returns the milliseconds since the Unix epoch, rounded up, so that the stored time is never behind.
fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn adopts_a_time_in_the_future() {
        let ahead = StateClock::default();
        ahead.raise(SystemTime::now() + HOUR);
        let row = ahead.to_row();
        let clock = StateClock::default();
        clock.merge_row(&row);
        assert!(clock.now() >= ahead.now() - HOUR / 100);
        let before = clock.now();
        // A row of the past changes nothing.
        clock.merge_row(&StateClock::default().to_row());
        assert!(clock.now() >= before);
    }

    #[test]
    fn a_stored_time_is_never_behind() {
        let clock = StateClock::default();
        let whole = Duration::from_millis(millis(SystemTime::now() + HOUR));
        let time = UNIX_EPOCH + whole + Duration::from_nanos(1);
        let mut row = clock.to_row();
        row["ms"] = json!(millis(time));
        // In another boot, no time passes that could make up for the rest of a millisecond.
        row["boot"] = json!("other");
        let other = StateClock::default();
        other.merge_row(&row);
        assert!(other.now() >= time);
    }

    #[test]
    fn counts_time_while_no_process_runs() {
        let clock = StateClock::default();
        let mut row = clock.to_row();
        let Some(up) = row["up_ms"].as_u64() else {
            return;
        };
        let Some(earlier) = up.checked_sub(10) else {
            return;
        };
        // The same boot, ten milliseconds earlier, at a time that is an hour ahead.
        let later = millis(SystemTime::now() + HOUR);
        row["up_ms"] = json!(earlier);
        row["ms"] = json!(later);
        clock.merge_row(&row);
        assert!(millis(clock.now()) >= later + 10);
        // In another boot, only the stored time counts.
        let other = StateClock::default();
        row["boot"] = json!("other");
        row["up_ms"] = json!(0);
        other.merge_row(&row);
        assert!(other.now() < SystemTime::now() + HOUR + HOUR / 2);
        // A malformed row changes nothing.
        for bad in [json!(null), json!({"ms": "x"}), json!({"ms": u64::MAX})] {
            other.merge_row(&bad);
        }
    }
}
