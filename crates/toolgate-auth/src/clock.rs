//! System clock in the unit of token claims.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
