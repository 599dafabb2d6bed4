//! Timestamps and their formats.

use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since the Unix epoch.
pub(crate) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the microseconds since the Unix epoch, as in the audit log.
pub(crate) fn micros(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// Formats milliseconds since the Unix epoch as `2027-01-31 18:00 UTC`.
pub(crate) fn format_timestamp(millis: &Value) -> String {
    let minutes = millis.as_u64().unwrap_or(0) / 60_000;
    let (date, minutes) = (format_date(minutes / 1440), minutes % 1440);
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{date} {hour:02}:{minute:02} UTC")
}

/// Formats a time as `2027-01-31T18:00:59.123Z` (RFC 3339).
pub(crate) fn format_rfc3339(at: SystemTime) -> String {
    let millis = millis(at);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (date, second) = (format_date(seconds / 86_400), seconds % 86_400);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{date}T{hour:02}:{minute:02}:{:02}.{millis:03}Z",
        second % 60
    )
}

/// Formats a number of days since the Unix epoch as `2027-01-31`.
fn format_date(mut day: u64) -> String {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) && year < 9999 {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stamps() {
        for (seconds, text) in [
            (0_u64, "1970-01-01 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_801_418_400, "2027-01-31 18:00 UTC"),
            (1_830_297_599, "2027-12-31 23:59 UTC"),
        ] {
            assert_eq!(format_timestamp(&json!(seconds * 1000)), text);
        }
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_801_418_459_007);
        assert_eq!(format_rfc3339(at), "2027-01-31T18:00:59.007Z");
    }
}
