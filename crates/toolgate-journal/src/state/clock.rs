//! Monotonic wall clock of a state directory: never behind a time that any process of the directory saw.
//!
//! Approvals, grants and API keys expire by it. With the system clock alone, setting that clock back would make expired
//! ones valid again. While the system clock is behind, this clock advances by the monotonic clock. The state stores the
//! highest time. Within one boot of the machine, time also advances while no process runs.

use crate::record::{BootTime, boot_id, boot_time};
use serde_json::{Value, json};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Table of the state that stores the highest time.
pub(super) const TABLE: &str = "clock";
/// Key of the only row of that table.
pub(super) const KEY: &str = "highest";

/// Wall clock of a state directory that never goes back, even if the system clock does.
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// let clock = toolgate_journal::state::StateClock::default();
/// let hour = Duration::from_secs(3600);
/// clock.raise(SystemTime::now() + hour);
/// assert!(clock.now() > SystemTime::now() + hour / 2);
/// assert!(clock.ahead() > hour / 2);
/// ```
#[derive(Debug)]
pub struct StateClock {
    /// Highest time seen, and the instant of that.
    highest: Mutex<(SystemTime, Instant)>,
}

impl Default for StateClock {
    /// Creates a clock at the current system time.
    fn default() -> StateClock {
        StateClock {
            highest: Mutex::new((system_time(), Instant::now())),
        }
    }
}

impl StateClock {
    /// Returns the current time of the monotonic wall clock.
    pub fn now(&self) -> SystemTime {
        self.at_least(system_time())
    }

    /// Advances the monotonic wall clock to a time that another process saw.
    pub fn raise(&self, seen: SystemTime) {
        self.at_least(seen);
    }

    /// Returns the time by which this clock is ahead of the system clock.
    pub fn ahead(&self) -> Duration {
        let now = self.now();
        now.duration_since(system_time()).unwrap_or_default()
    }

    fn at_least(&self, seen: SystemTime) -> SystemTime {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, when) = *highest;
        let now = Instant::now();
        let time = time + now.saturating_duration_since(when);
        *highest = (time.max(seen), now);
        highest.0
    }

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

/// Returns the time of the system clock. Debug builds can shift it for tests.
fn system_time() -> SystemTime {
    #[cfg(debug_assertions)]
    {
        static OFFSET: std::sync::OnceLock<Duration> = std::sync::OnceLock::new();
        SystemTime::now()
            + *OFFSET.get_or_init(|| {
                let seconds = std::env::var("TOOLGATE_TEST_CLOCK_AHEAD_SECONDS").ok();
                Duration::from_secs(seconds.and_then(|s| s.parse().ok()).unwrap_or(0))
            })
    }
    #[cfg(not(debug_assertions))]
    SystemTime::now()
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
