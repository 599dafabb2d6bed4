//! Monotonic wall clock of a state directory: never behind a time that any process of the directory saw.
//!
//! Approvals, grants and API keys expire by it. With the system clock alone, setting that clock back would make expired
//! ones valid again. While the system clock is behind, this clock advances by the monotonic clock. The state stores the
//! highest time. Within one boot of the machine, time also advances while no process runs.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

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
