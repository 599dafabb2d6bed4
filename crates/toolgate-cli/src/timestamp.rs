//! Formatting of timestamps.

use serde_json::Value;

/// Formats milliseconds since the Unix epoch as `2027-01-31 18:00 UTC`.
pub(crate) fn format_timestamp(millis: &Value) -> String {
    let minutes = millis.as_u64().unwrap_or(0) / 60_000;
    let (mut day, minutes) = (minutes / 1440, minutes % 1440);
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
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02} UTC", day + 1)
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
    }
}
