//! `toolgate doctor`: checks of the config, the servers and the gateways, each with what to do.
//!
//! Each check is a function in a file of its own. A new one is a line in [`CHECKS`].

mod bundle;
mod certificate;
mod clock;
mod config;
mod data;
mod gateways;
mod hooks;
mod hosts;
mod keyring;
mod listen;
mod programs;
mod redaction;
mod report;
mod secrets;
mod servers;

use super::{CommandError, DataLocation, Result, print};
use crate::{args::DoctorOptions, cli::output::print_json, config::Config};
pub(crate) use report::DoctorOutput;
use report::Reporter;
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Result of a check.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckState {
    /// Nothing to do.
    Ok,
    /// Works, but deserves attention.
    Warning,
    /// Does not work.
    Problem,
}

/// One line of the report.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct CheckResult {
    /// Name of the check.
    check: &'static str,
    /// Checked thing, such as a server; empty if the check has one result.
    subject: String,
    state: CheckState,
    /// Finding, with what to do.
    message: String,
    /// Further lines, such as the last lines of a server's stderr.
    lines: Vec<String>,
}

impl CheckResult {
    fn new(state: CheckState, subject: &str, message: impl Into<String>) -> CheckResult {
        CheckResult {
            check: "",
            subject: subject.to_owned(),
            state,
            message: message.into(),
            lines: Vec::new(),
        }
    }

    pub(super) fn ok(subject: &str, message: impl Into<String>) -> CheckResult {
        CheckResult::new(CheckState::Ok, subject, message)
    }

    pub(super) fn warning(subject: &str, message: impl Into<String>) -> CheckResult {
        CheckResult::new(CheckState::Warning, subject, message)
    }

    pub(super) fn problem(subject: &str, message: impl Into<String>) -> CheckResult {
        CheckResult::new(CheckState::Problem, subject, message)
    }

    pub(super) fn with_lines(mut self, lines: Vec<String>) -> CheckResult {
        self.lines = lines;
        self
    }
}

/// Input of the checks.
pub(super) struct DoctorContext {
    /// Config file; `None` for the built-in demo server.
    pub(super) file: Option<PathBuf>,
    /// Config, or why it cannot be used.
    pub(super) config: std::result::Result<Config, String>,
    /// Data directory, or why it is unknown.
    pub(super) data: std::result::Result<PathBuf, String>,
    /// True if the servers may be started.
    pub(super) starts_servers: bool,
}

impl DoctorContext {
    fn new(place: &DataLocation<'_>, wanted: &DoctorOptions) -> DoctorContext {
        let text = |error: CommandError| match error {
            CommandError::Usage(text) | CommandError::Failure(text) => text,
        };
        let file = place.config.map(Path::to_owned);
        DoctorContext {
            file: file.or_else(crate::config::paths::default_config),
            config: place.config().map_err(text),
            data: place.data().map_err(text),
            starts_servers: !wanted.no_start,
        }
    }
}

/// A check: its name and its function.
type DoctorCheck = (&'static str, fn(&DoctorContext) -> Vec<CheckResult>);

/// All checks, in the order of the report.
const CHECKS: &[DoctorCheck] = &[
    ("config", config::check),
    ("program", programs::check),
    ("secret", secrets::check),
    ("keyring", keyring::check),
    ("data", data::check),
    ("clock", clock::check),
    ("listen", listen::check),
    ("tls", certificate::check),
    ("gateway", gateways::check),
    ("host", hosts::check),
    ("hook", hooks::check),
    ("server", servers::check),
];

/// Runs the checks. Exit code 1 if one of them found a problem.
pub(super) fn run(place: &DataLocation<'_>, wanted: &DoctorOptions) -> Result<ExitCode> {
    let context = DoctorContext::new(place, wanted);
    let mut reporter = Reporter::new(wanted.json.json);
    for (name, check) in CHECKS {
        for result in check(&context) {
            reporter.add(CheckResult {
                check: name,
                ..result
            })?;
        }
    }
    match wanted.json.json {
        true => print_json(&reporter.output(&context))?,
        false => print(&reporter.summary())?,
    };
    if let Some(file) = &wanted.bundle {
        let file = bundle::write(file.as_deref(), &context, &reporter)?;
        eprintln!(
            "the report is in {}; read it before you share it",
            file.display()
        );
    }
    Ok(match reporter.worst() {
        CheckState::Problem => ExitCode::FAILURE,
        CheckState::Ok | CheckState::Warning => ExitCode::SUCCESS,
    })
}
