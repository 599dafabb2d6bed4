//! Options of the event log.

use crate::event_log::{EventLevel, EventLogSettings, LogFormat};
use clap::Args;
use std::path::PathBuf;

/// Options of what the gateway prints.
#[derive(Args, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LogOptions {
    /// Print only failures
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also print a line for each call: tool, caller, decision and duration
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Format of the printed events
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
    /// Append the events to this file instead of printing them; a rotated file is opened again
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
}

/// Options of `toolgate logs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogsOptions {
    /// Name of the server in the config
    pub(crate) server: String,
    /// Number of lines
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 100)]
    pub(crate) count: usize,
    /// Keep printing new lines
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print one JSON object per line; `toolgate schema` describes it
    #[arg(long)]
    pub(crate) json: bool,
}

impl LogOptions {
    /// Returns the settings of the event log.
    pub(crate) fn settings(&self) -> EventLogSettings {
        EventLogSettings {
            level: match (self.quiet, self.verbose) {
                (true, _) => EventLevel::Failure,
                (false, true) => EventLevel::Detail,
                (false, false) => EventLevel::Notice,
            },
            format: self.log_format,
            file: self.log_file.clone(),
        }
    }
}
