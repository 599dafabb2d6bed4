//! Decisions on the command line: approvals, grants and freezes.

use super::{JsonOption, object};
use clap::{Args, Command, FromArgMatches, Subcommand};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Options of `toolgate inbox`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InboxOptions {
    /// Keep watching: a full-screen view, or lines if the output is not a terminal
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) output: JsonOption,
}

/// Options of `toolgate approve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApproveOptions {
    /// ID of the pending approval, as `toolgate inbox` shows it
    #[arg(value_name = "APPROVAL_ID")]
    pub(crate) id: String,
    /// Approve the call with these arguments instead (a JSON object)
    #[arg(long, value_name = "JSON", value_parser = object, conflicts_with = "remember")]
    pub(crate) edit: Option<String>,
    /// Also approve later calls of this tool by this caller
    #[arg(long)]
    pub(crate) remember: bool,
    /// Remember it for this time, such as 30m, 8h or 7d [default: 8h or as configured]
    #[arg(long = "for", value_name = "TIME", requires = "remember", conflicts_with = "until", value_parser = span)]
    pub(crate) lasts: Option<Duration>,
    /// Remember it until the end of this day or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "DATE", requires = "remember", value_parser = date)]
    pub(crate) until: Option<SystemTime>,
    /// Remember it for at most this number of calls
    #[arg(long, value_name = "N", requires = "remember", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) uses: Option<u64>,
    /// Remember it only for calls that match this CEL condition, such as 'args.path.startsWith("/srv/")'
    #[arg(long, value_name = "CEL", requires = "remember")]
    pub(crate) when: Option<String>,
    /// Remember it for all callers, not only this one
    #[arg(long, requires = "remember")]
    pub(crate) all_callers: bool,
}

impl ApproveOptions {
    /// Parses the options of `toolgate approve`, for a view that asks for them.
    ///
    /// # Errors
    /// The first line of the error of the command line.
    pub(crate) fn parse(words: &[String]) -> Result<ApproveOptions, String> {
        let command = Command::new("approve").no_binary_name(true);
        let matches = ApproveOptions::augment_args(command).try_get_matches_from(words);
        let options = matches.and_then(|matches| ApproveOptions::from_arg_matches(&matches));
        options.map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        })
    }
}

/// Commands of `toolgate grants`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List remembered approvals with their last use
    List(JsonOption),
    /// Revoke one remembered approval, or all
    Revoke {
        /// ID of the remembered approval, as `toolgate grants list` shows it
        #[arg(
            value_name = "GRANT_ID",
            required_unless_present = "all",
            conflicts_with = "all"
        )]
        id: Option<String>,
        /// Revoke all remembered approvals
        #[arg(long)]
        all: bool,
    },
}

/// Commands of `toolgate freeze`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FreezeCommand {
    /// Freeze all calls by a caller
    Caller {
        /// Name of the caller, as `toolgate calls` shows it
        #[arg(value_name = "CALLER")]
        name: String,
        /// Reason, which callers receive
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
    },
    /// Freeze all calls to a server
    Server {
        /// Name of the server in the config
        #[arg(value_name = "SERVER")]
        id: String,
        /// Reason, which callers receive
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
    },
    /// Freeze all calls
    All {
        /// Reason, which callers receive
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
    },
    /// List the active freezes
    List(JsonOption),
}

/// Commands of `toolgate thaw`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ThawCommand {
    /// Lift the freeze on a caller
    Caller {
        /// Name of the caller, as `toolgate freeze list` shows it
        #[arg(value_name = "CALLER")]
        name: String,
    },
    /// Lift the freeze on a server
    Server {
        /// Name of the server in the config
        #[arg(value_name = "SERVER")]
        id: String,
    },
    /// Lift the freeze on everything; freezes on single callers and servers stay
    All,
}

/// Target of a freeze or thaw, as the control protocol names it.
pub(crate) trait FreezeTarget {
    /// Returns `all`, `caller NAME` or `server ID`; `None` for the list command.
    fn target(&self) -> Option<String>;
}

impl FreezeTarget for FreezeCommand {
    fn target(&self) -> Option<String> {
        match self {
            FreezeCommand::Caller { name, .. } => Some(format!("caller {name}")),
            FreezeCommand::Server { id, .. } => Some(format!("server {id}")),
            FreezeCommand::All { .. } => Some("all".to_owned()),
            FreezeCommand::List(_) => None,
        }
    }
}

impl FreezeTarget for ThawCommand {
    fn target(&self) -> Option<String> {
        Some(match self {
            ThawCommand::Caller { name } => format!("caller {name}"),
            ThawCommand::Server { id } => format!("server {id}"),
            ThawCommand::All => "all".to_owned(),
        })
    }
}

impl FreezeCommand {
    /// Returns the reason of the freeze, if given.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            FreezeCommand::Caller { reason, .. }
            | FreezeCommand::Server { reason, .. }
            | FreezeCommand::All { reason } => reason.as_deref(),
            FreezeCommand::List(_) => None,
        }
    }
}

/// Maximum distance of a time from now: 100 years.
const MAX_TIME_SPAN: Duration = Duration::from_secs(36_525 * 24 * 3600);

/// Parses a duration such as `30m`, `8h` or `7d`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{text:?} is not a valid duration; write a whole number above 0 and m, h or d, such as 30m, 8h or 7d"
        )
    };
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    if count == 0 {
        return Err(wrong());
    }
    let span = count.checked_mul(unit).map(Duration::from_secs);
    let span = span.filter(|span| *span <= MAX_TIME_SPAN);
    span.ok_or_else(|| format!("{text:?} is longer than 100 years; write a shorter time"))
}

/// Parses `2027-01-31` (the end of the day) or `2027-01-31T18:00`, in UTC.
pub(super) fn date(text: &str) -> Result<SystemTime, String> {
    let wrong = || {
        format!(
            "{text:?} is not a valid date; write one such as 2027-01-31 or 2027-01-31T18:00 (UTC)"
        )
    };
    let (day, time) = match text.trim_end_matches('Z').split_once('T') {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let seconds = match time {
        None => 24 * 3600,
        Some(time) => minutes(time).ok_or_else(wrong)? * 60,
    };
    let since = days(day).ok_or_else(wrong)? * 24 * 3600 + seconds;
    let date = UNIX_EPOCH + Duration::from_secs(since);
    match date > SystemTime::now() + MAX_TIME_SPAN {
        true => Err(format!(
            "{text:?} is more than 100 years from now; write an earlier date"
        )),
        false => Ok(date),
    }
}

/// Returns the minutes since midnight of a time such as `18:00`.
fn minutes(time: &str) -> Option<u64> {
    let (hours, minutes) = time.split_once(':')?;
    let (hours, minutes) = (number(hours, 2, 0..=23)?, number(minutes, 2, 0..=59)?);
    Some(hours * 60 + minutes)
}

/// Returns the days from 1970-01-01 to a date.
fn days(day: &str) -> Option<u64> {
    let mut parts = day.split('-');
    let mut part = |digits, range| number(parts.next()?, digits, range);
    let (year, month, date) = (part(4, 1970..=9999)?, part(2, 1..=12)?, part(2, 1..=31)?);
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let length = |month: u64| match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if parts.next().is_some() || date > length(month) {
        return None;
    }
    let years: u64 = (1970..year).map(|y| 365 + u64::from(leap(y))).sum();
    let months: u64 = (1..month).map(length).sum();
    Some(years + months + date - 1)
}

fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    let number = plain.then(|| text.parse().ok())??;
    range.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        let at = date(text).ok()?;
        Some(at.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn dates() {
        assert_eq!(seconds("1970-01-01"), Some(86_400));
        assert_eq!(seconds("1970-01-01T00:01"), Some(60));
        assert_eq!(seconds("2000-03-01T00:00Z"), Some(951_868_800));
        assert_eq!(seconds("2027-01-31T18:00"), Some(1_801_418_400));
        for wrong in [
            "",
            "2027",
            "2027-02-29",
            "2027-13-01",
            "2027-1-1",
            "2027-01-31T24:00",
            "1969-12-31",
            "tomorrow",
            "9999-12-31",
            "2027-01-31T18",
            "2027-01-31-1",
            "+027-01-31",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans() {
        assert_eq!(span("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(span("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(span("36525d"), Ok(MAX_TIME_SPAN));
        for wrong in [
            "",
            "h",
            "0h",
            "-1h",
            "8",
            "8 h",
            "1.5h",
            "36526d",
            "99999999999d",
            "99999999999999999999d",
            "8\u{e9}",
        ] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
