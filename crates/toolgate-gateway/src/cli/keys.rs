//! `toolgate keys`: the callers that show a key.

use super::decide::{date, span};
use clap::{Args, Subcommand};
use std::time::{Duration, SystemTime};

/// What is to be done with the keys of callers.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key and print it, this once
    ///
    /// Its caller is called key:NAME in rules, in the record and in the console. Without an end it opens until it is
    /// revoked.
    Create {
        /// Whom it is for: 1 to 64 letters, digits, '.', '_', '-' and '@'
        #[arg(value_parser = new_name)]
        name: String,
        #[command(flatten)]
        end: End,
    },
    /// Make another key for a name that has one, and print it, this once
    ///
    /// Rules, approvals and sign-ins of key:NAME stay. The old key opens nothing new, and the streams end on which its
    /// client hears what changes; calls that run or wait for a person go on to their answers. To stop those, too, use
    /// `toolgate keys revoke`. The new key ends when the old one would have, unless another end is given.
    Rotate {
        /// Whose it is, as `toolgate keys list` shows it
        name: String,
        /// For how long the old key opens yet, such as 1h, and no longer than the new one; without it, it opens nothing new from now on
        #[arg(long, value_name = "TIME", value_parser = span)]
        keep_old: Option<Duration>,
        #[command(flatten)]
        end: End,
    },
    /// Put off when a key ends
    Extend {
        /// Whose it is, as `toolgate keys list` shows it
        name: String,
        #[command(flatten)]
        end: NewEnd,
    },
    /// List the keys, without the keys themselves
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Withdraw a key: what it opened ends at once
    Revoke {
        /// Whose it is, as `toolgate keys list` shows it
        name: String,
    },
}

/// When a key ends.
#[derive(Args, Clone, Debug)]
pub(crate) struct End {
    /// For how long it opens, such as 12h or 90d
    #[arg(long, value_name = "TIME", conflicts_with = "until", value_parser = span)]
    expires: Option<Duration>,
    /// Until the end of this day, or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<SystemTime>,
}

/// The same, where one has to be given.
#[derive(Args, Clone, Debug)]
#[group(required = true)]
pub(crate) struct NewEnd {
    /// For how long it opens from now on, such as 12h or 90d
    #[arg(long, value_name = "TIME", conflicts_with = "until", value_parser = span)]
    expires: Option<Duration>,
    /// Until the end of this day, or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<SystemTime>,
}

impl End {
    /// The time, where one is given.
    pub(crate) fn time(&self) -> Option<SystemTime> {
        time(self.expires, self.until)
    }
}

impl NewEnd {
    /// The time.
    pub(crate) fn time(&self) -> Option<SystemTime> {
        time(self.expires, self.until)
    }
}

/// A name as it is made: it is not yet that of a caller.
fn new_name(text: &str) -> Result<String, String> {
    match text.strip_prefix("key:") {
        Some(name) => Err(format!(
            "the name is given without key: in front, which its caller gets; write {name:?}"
        )),
        None => Ok(text.to_owned()),
    }
}

/// What is too far away for the clock has no end.
fn time(expires: Option<Duration>, until: Option<SystemTime>) -> Option<SystemTime> {
    let span = expires.map(|span| SystemTime::now().checked_add(span));
    span.flatten().or(until)
}
