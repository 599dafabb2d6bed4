//! `toolgate keys`: the callers that show a key.

use super::decide::{date, span};
use clap::Subcommand;
use std::time::{Duration, SystemTime};

/// What is to be done with the keys of callers.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key and print it, this once
    ///
    /// Its caller is called key:NAME in rules, in the record and in the console.
    Create {
        /// Whom it is for: 1 to 64 letters, digits, '.', '_', '-' and '@'
        name: String,
        /// For how long it opens, such as 12h or 90d; without it, until it is revoked
        #[arg(long, value_name = "TIME", conflicts_with = "until", value_parser = span)]
        expires: Option<Duration>,
        /// Until the end of this day, or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
        #[arg(long, value_name = "DATE", value_parser = date)]
        until: Option<SystemTime>,
    },
    /// List the keys, without the keys themselves
    List,
    /// Withdraw a key: what it opened ends at once
    Revoke {
        /// Whose it is, as `toolgate keys list` shows it
        name: String,
    },
}
