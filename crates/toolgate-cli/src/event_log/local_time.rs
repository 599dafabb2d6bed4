//! Local time of day.

use crate::timestamp::millis;
use std::time::SystemTime;

/// Seconds for which a UTC offset is used again. Time zones change their offset at multiples of it.
const OFFSET_PERIOD_SECONDS: i64 = 900;
const SECONDS_PER_DAY: i64 = 86_400;

/// Local clock, which remembers the current UTC offset.
#[derive(Debug, Default)]
pub(crate) struct LocalClock {
    /// Period of the offset, and the offset in seconds.
    known: Option<(i64, i64)>,
}

impl LocalClock {
    /// Returns the minute of the local day, from 0 to 1439.
    pub(crate) fn minute_of_day(&mut self, at: SystemTime) -> u32 {
        let minute = self.local_seconds(at).rem_euclid(SECONDS_PER_DAY) / 60;
        u32::try_from(minute).unwrap_or_default()
    }

    /// Formats the local time of day as `18:00:59`.
    pub(super) fn time_of_day(&mut self, at: SystemTime) -> String {
        time_of_day(self.local_seconds(at))
    }

    /// Returns the seconds since 1970 in local time.
    fn local_seconds(&mut self, at: SystemTime) -> i64 {
        let seconds = i64::try_from(millis(at) / 1000).unwrap_or_default();
        let period = seconds / OFFSET_PERIOD_SECONDS;
        let offset = match self.known {
            Some((known, offset)) if known == period => offset,
            _ => utc_offset(seconds).unwrap_or_default(),
        };
        self.known = Some((period, offset));
        seconds + offset
    }
}

fn time_of_day(seconds: i64) -> String {
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Returns the seconds by which the local time is ahead of UTC. The standard library does not know the time zone, and
/// SQLite, which the index of the audit log uses, does.
fn utc_offset(seconds: i64) -> Option<i64> {
    let query = "SELECT CAST(strftime('%s', ?1, 'unixepoch', 'localtime') AS INTEGER) - ?1";
    let database = rusqlite::Connection::open_in_memory().ok()?;
    database.query_row(query, [seconds], |row| row.get(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_the_time_of_day() {
        assert_eq!(time_of_day(0), "00:00:00");
        assert_eq!(time_of_day(-1), "23:59:59");
        assert_eq!(time_of_day(86_400 + 3_661), "01:01:01");
    }

    #[test]
    fn the_offset_is_that_of_a_time_zone() {
        let offset = utc_offset(1_700_000_000).unwrap();
        assert!(
            offset.abs() <= 14 * 3600 && offset % OFFSET_PERIOD_SECONDS == 0,
            "{offset}"
        );
    }
}
