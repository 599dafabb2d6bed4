//! Hours of the day, such as `22:00-07:00`.

use super::reader::inline_schema;
use schemars::json_schema;
use serde::Deserialize;

/// Minutes of a day.
const MINUTES_PER_DAY: u32 = 24 * 60;

/// Hours of each day, from one time of day to another, which may be on the next day.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct DailyHours {
    /// First minute of the day.
    from: u32,
    /// First minute after the hours.
    until: u32,
}

impl DailyHours {
    /// Returns whether a minute of the day is in the hours.
    pub(crate) fn contains(&self, minute: u32) -> bool {
        match self.from < self.until {
            true => (self.from..self.until).contains(&minute),
            false => minute >= self.from || minute < self.until,
        }
    }

    /// Returns the minutes from a minute of the day in the hours to their end.
    pub(crate) fn minutes_left(&self, minute: u32) -> u32 {
        (self.until + MINUTES_PER_DAY - minute) % MINUTES_PER_DAY
    }
}

impl TryFrom<String> for DailyHours {
    type Error = String;

    fn try_from(text: String) -> Result<DailyHours, String> {
        let wrong = || {
            format!(
                "is {text:?}; write two different times of day from 00:00 to 24:00, such as \"22:00-07:00\""
            )
        };
        let minute = |time: &str| {
            let (hour, minute) = time.split_once(':')?;
            let number = |text: &str| {
                let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| text.parse::<u32>().ok()).flatten()
            };
            let (hour, minute) = (number(hour)?, number(minute)?);
            let all = hour * 60 + minute;
            (minute < 60 && all <= MINUTES_PER_DAY).then_some(all)
        };
        let (from, until) = text.split_once('-').ok_or_else(wrong)?;
        let (from, until) = minute(from).zip(minute(until)).ok_or_else(wrong)?;
        match from % MINUTES_PER_DAY == until % MINUTES_PER_DAY
            && (from, until) != (0, MINUTES_PER_DAY)
        {
            true => Err(wrong()),
            false => Ok(DailyHours {
                from: from % MINUTES_PER_DAY,
                until,
            }),
        }
    }
}

inline_schema!(DailyHours, |_| json_schema!({
    "type": "string",
    "title": "hours",
    "pattern": "^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$",
    "examples": ["22:00-07:00"],
}));

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(text: &str) -> DailyHours {
        DailyHours::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn hours_may_end_on_the_next_day() {
        let (night, day) = (hours("22:00-07:00"), hours("08:00-17:30"));
        let at = |hour: u32, minute: u32| hour * 60 + minute;
        for (minute, in_night, in_day) in [
            (at(0, 0), true, false),
            (at(6, 59), true, false),
            (at(7, 0), false, false),
            (at(8, 0), false, true),
            (at(17, 29), false, true),
            (at(17, 30), false, false),
            (at(22, 0), true, false),
        ] {
            assert_eq!(night.contains(minute), in_night, "{minute}");
            assert_eq!(day.contains(minute), in_day, "{minute}");
        }
        assert_eq!(night.minutes_left(at(23, 0)), 8 * 60);
        assert_eq!(night.minutes_left(at(6, 59)), 1);
        assert!((0..1440).all(|minute| hours("00:00-24:00").contains(minute)));
        assert!(hours("18:00-24:00").contains(at(23, 59)));
    }

    #[test]
    fn refuses_other_texts() {
        for text in [
            "",
            "22-07",
            "22:00",
            "25:00-07:00",
            "22:60-07:00",
            "07:00-07:00",
            "7:00-8:00",
            "24:00-00:00",
        ] {
            assert!(DailyHours::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
