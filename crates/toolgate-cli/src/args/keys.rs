//! `toolgate keys`: API keys of callers.

use super::{
    JsonOption,
    decisions::{date, span},
};
use clap::{Args, Subcommand};
use std::time::{Duration, SystemTime};

/// Commands of `toolgate keys`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create an API key and print it; it is shown only once
    ///
    /// The name of its caller in rules, audit records and the console is key:NAME. Without --expires or --until, the
    /// key is valid until you revoke it.
    Create {
        /// Name of the caller: 1 to 64 letters, digits, '.', '_', '-' and '@'
        #[arg(value_parser = new_name)]
        name: String,
        /// Group of the caller, for group:NAME in rules; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        #[command(flatten)]
        end: KeyExpiry,
    },
    /// Replace the API key of a name and print the new one; it is shown only once
    ///
    /// Rules, approvals and credentials of key:NAME stay valid. At once, or after --keep-old, new requests with the old
    /// key are rejected and its notification streams are closed. Running and pending calls complete; to cancel them as
    /// well, use `toolgate keys revoke`. Unless you pass --expires or --until, the new key inherits the old expiry.
    Rotate {
        /// Name of the key, as `toolgate keys list` shows it
        name: String,
        /// Accept the old key for this time, such as 1h, but not longer than the new key; by default it is rejected at
        /// once
        #[arg(long, value_name = "TIME", value_parser = span)]
        keep_old: Option<Duration>,
        #[command(flatten)]
        end: KeyExpiry,
    },
    /// Extend the validity of an API key
    Extend {
        /// Name of the key, as `toolgate keys list` shows it
        name: String,
        #[command(flatten)]
        end: RequiredKeyExpiry,
    },
    /// List the API keys, without their values
    List(JsonOption),
    /// Revoke an API key and end its sessions, streams and calls at once
    Revoke {
        /// Name of the key, as `toolgate keys list` shows it
        name: String,
    },
}

/// Optional expiry of an API key.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyExpiry {
    /// Valid for this time, such as 12h or 90d
    #[arg(long, value_name = "TIME", conflicts_with = "until", value_parser = span)]
    expires: Option<Duration>,
    /// Valid until the end of this day or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<SystemTime>,
}

/// Required expiry of an API key.
#[derive(Args, Clone, Debug)]
#[group(required = true)]
pub(crate) struct RequiredKeyExpiry {
    /// Valid for this time from now on, such as 12h or 90d
    #[arg(long, value_name = "TIME", conflicts_with = "until", value_parser = span)]
    expires: Option<Duration>,
    /// Valid until the end of this day or until this time (UTC): 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<SystemTime>,
}

impl KeyExpiry {
    /// Returns the expiry, if given.
    pub(crate) fn expiry(&self) -> Option<SystemTime> {
        time(self.expires, self.until)
    }
}

impl RequiredKeyExpiry {
    /// Returns the expiry; `None` if it is too far away.
    pub(crate) fn expiry(&self) -> Option<SystemTime> {
        time(self.expires, self.until)
    }
}

/// Checks the name of a new key, which has no `key:` prefix.
fn new_name(text: &str) -> Result<String, String> {
    match text.strip_prefix("key:") {
        Some(name) => Err(format!(
            "the prefix key: is added automatically; write {name:?}"
        )),
        None => Ok(text.to_owned()),
    }
}

/// Returns the expiry. A time beyond the range of the clock counts as none.
fn time(expires: Option<Duration>, until: Option<SystemTime>) -> Option<SystemTime> {
    let span = expires.map(|span| SystemTime::now().checked_add(span));
    span.flatten().or(until)
}
