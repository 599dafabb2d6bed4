//! Row of the state that stores the highest time of a [`StateClock`].

use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_journal::boot::{BootTime, boot_id, boot_time};
use toolgate_policy::StateClock;

/// Table of the state that stores the highest time.
pub(crate) const TABLE: &str = "clock";
/// Key of the only row of that table.
pub(crate) const KEY: &str = "highest";

/// Returns the row that stores the current time.
pub(crate) fn to_row(clock: &StateClock) -> Value {
    let up = boot_time();
    json!({
        "ms": millis(clock.now()),
        "boot": up.as_ref().map(|_| boot_id()),
        "up_ms": up.map(|BootTime(up)| u64::try_from(up.as_millis()).unwrap_or(0)),
    })
}

/// Advances the clock to the time of a row, plus the time since then if the machine was not rebooted.
pub(crate) fn merge_row(clock: &StateClock, row: &Value) {
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
        clock.raise(time);
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
        let row = to_row(&ahead);
        let clock = StateClock::default();
        merge_row(&clock, &row);
        assert!(clock.now() >= ahead.now() - HOUR / 100);
        let before = clock.now();
        // A row of the past changes nothing.
        merge_row(&clock, &to_row(&StateClock::default()));
        assert!(clock.now() >= before);
    }

    #[test]
    fn a_stored_time_is_never_behind() {
        let clock = StateClock::default();
        let whole = Duration::from_millis(millis(SystemTime::now() + HOUR));
        let time = UNIX_EPOCH + whole + Duration::from_nanos(1);
        let mut row = to_row(&clock);
        row["ms"] = json!(millis(time));
        // In another boot, no time passes that could make up for the rest of a millisecond.
        row["boot"] = json!("other");
        let other = StateClock::default();
        merge_row(&other, &row);
        assert!(other.now() >= time);
    }

    #[test]
    fn counts_time_while_no_process_runs() {
        let clock = StateClock::default();
        let mut row = to_row(&clock);
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
        merge_row(&clock, &row);
        assert!(millis(clock.now()) >= later + 10);
        // In another boot, only the stored time counts.
        let other = StateClock::default();
        row["boot"] = json!("other");
        row["up_ms"] = json!(0);
        merge_row(&other, &row);
        assert!(other.now() < SystemTime::now() + HOUR + HOUR / 2);
        // A malformed row changes nothing.
        for bad in [json!(null), json!({"ms": "x"}), json!({"ms": u64::MAX})] {
            merge_row(&other, &bad);
        }
    }
}
