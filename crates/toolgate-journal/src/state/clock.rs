//! The clock of a folder of state: never behind a time that any process of the folder saw.
//!
//! Approvals, grants and keys expire by it. Were they to expire by the system clock alone, setting that clock back would
//! make expired ones valid again. The clock goes on by the monotonic clock while the system clock is behind. The highest
//! time is a row of the state; within one boot of the machine, time counts while no process runs, too.

use crate::record::{BootTime, boot_id, boot_time};
use serde_json::{Value, json};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The table of the state that holds the highest time.
pub(super) const TABLE: &str = "clock";
/// The key of its only row.
pub(super) const KEY: &str = "highest";

/// A wall clock that never goes back.
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// let clock = toolgate_journal::state::Clock::default();
/// let hour = Duration::from_secs(3600);
/// clock.raise(SystemTime::now() + hour);
/// assert!(clock.now() > SystemTime::now() + hour / 2);
/// assert!(clock.ahead() > hour / 2);
/// ```
#[derive(Debug)]
pub struct Clock {
    /// The highest time that was seen, and when that was.
    highest: Mutex<(SystemTime, Instant)>,
}

impl Default for Clock {
    /// A clock that has seen no other time than now.
    fn default() -> Clock {
        Clock {
            highest: Mutex::new((system_time(), Instant::now())),
        }
    }
}

impl Clock {
    /// Returns the time: that of the system, or a later one if that was set back.
    pub fn now(&self) -> SystemTime {
        self.at_least(system_time())
    }

    /// Takes in a time that was seen elsewhere.
    pub fn raise(&self, seen: SystemTime) {
        self.at_least(seen);
    }

    /// Returns by how much the clock is ahead of the system clock.
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

    /// Returns the row that keeps the time of now.
    pub(super) fn row(&self) -> Value {
        let up = boot_time();
        json!({
            "ms": millis(self.now()),
            "boot": up.as_ref().map(|_| boot_id()),
            "up_ms": up.map(|BootTime(up)| u64::try_from(up.as_millis()).unwrap_or(0)),
        })
    }

    /// Takes in the time of a row, and what has passed since if the machine was not booted meanwhile.
    pub(super) fn take(&self, row: &Value) {
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

/// The time of the system clock. A build for tests can be started with that clock set otherwise.
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
    fn a_row_of_the_future_is_the_time_from_then_on() {
        let ahead = Clock::default();
        ahead.raise(SystemTime::now() + HOUR);
        let row = ahead.row();
        let clock = Clock::default();
        clock.take(&row);
        assert!(clock.now() >= ahead.now() - HOUR / 100);
        let before = clock.now();
        // A row of the past changes nothing.
        clock.take(&Clock::default().row());
        assert!(clock.now() >= before);
    }

    #[test]
    fn time_passes_while_nothing_runs() {
        let clock = Clock::default();
        let mut row = clock.row();
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
        clock.take(&row);
        assert!(millis(clock.now()) >= later + 10);
        // Of another boot, only the time counts.
        let other = Clock::default();
        row["boot"] = json!("other");
        row["up_ms"] = json!(0);
        other.take(&row);
        assert!(other.now() < SystemTime::now() + HOUR + HOUR / 2);
        // What cannot be read changes nothing.
        for bad in [json!(null), json!({"ms": "x"}), json!({"ms": u64::MAX})] {
            other.take(&bad);
        }
    }
}
