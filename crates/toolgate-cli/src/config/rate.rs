//! Rate limits: `30/min`, `5/s`, `100/h`.

use super::reader::inline_schema;
use schemars::json_schema;
use serde::Deserialize;
use std::{fmt, time::Duration};

/// Rate limit: a count for each period.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct RateSetting {
    /// Calls in one period, from 1 to 1,000,000.
    pub(crate) count: u32,
    /// Period: a second, a minute or an hour.
    pub(crate) period: Duration,
}

/// Maximum count of a rate.
const MAX_RATE_COUNT: u32 = 1_000_000;

impl RateSetting {
    /// Returns a rate for each minute.
    pub(crate) const fn per_minute(count: u32) -> RateSetting {
        RateSetting {
            count,
            period: Duration::from_secs(60),
        }
    }

    /// Parses a rate: a count, `/`, and `s`, `min` or `h`.
    ///
    /// # Errors
    /// The text has another form, or the count is 0 or above a million; the message says what to write.
    pub(crate) fn parse(text: &str) -> Result<RateSetting, String> {
        let wrong =
            || format!("is {text:?}; write a count, \"/\" and s, min or h, such as \"30/min\"");
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let seconds = match unit.trim_start_matches(' ') {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        let count = count.trim_end_matches(' ');
        if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        match count.parse() {
            Ok(count @ 1..=MAX_RATE_COUNT) => Ok(RateSetting {
                count,
                period: Duration::from_secs(seconds),
            }),
            _ => Err(format!(
                "is {text:?}; write a count from 1 to {MAX_RATE_COUNT}, such as \"30/min\""
            )),
        }
    }
}

impl TryFrom<String> for RateSetting {
    type Error = String;

    fn try_from(text: String) -> Result<RateSetting, String> {
        RateSetting::parse(&text)
    }
}

inline_schema!(RateSetting, |_| json_schema!({
    "type": "string",
    "title": "rate",
    "pattern": "^[0-9]+ */ *(s|min|h)$",
    "examples": ["30/min"],
}));

impl fmt::Display for RateSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.period.as_secs() {
            1 => "s",
            60 => "min",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for text in ["5/s", "30/min", "100/h", "1000000/h"] {
            assert_eq!(RateSetting::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            RateSetting::parse("30 / min").unwrap(),
            RateSetting::per_minute(30)
        );
        assert_eq!(
            RateSetting::parse("5/s").unwrap().period,
            Duration::from_secs(1)
        );
    }

    #[test]
    fn refuses() {
        for text in [
            "",
            "30",
            "30/",
            "/min",
            "30/minute",
            "30\t/min",
            " 30/min",
            "-1/s",
            "+1/s",
            "1.5/s",
            "0/s",
            "1000001/s",
            "99999999999/s",
        ] {
            assert!(RateSetting::parse(text).is_err(), "{text:?}");
        }
    }
}
