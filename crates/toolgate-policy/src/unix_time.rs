//! Times in Unix milliseconds, as rows and records have them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Converts a time to Unix milliseconds; 0 for a time before 1970.
pub(crate) fn to_unix_millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of Unix milliseconds; `None` if it is too late for the system.
pub(crate) fn from_unix_millis(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
