//! Report of the checks: a line for each result, or one JSON object.

use super::{CheckResult, CheckState, DoctorContext};
use crate::cli::{
    commands::{Result, print},
    output::{OutputTable, TableColumn},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use toolgate_core::{visible, visible_line};
use toolgate_protocol::plural::count_of;

/// Collects the results, and prints them as they come.
pub(super) struct Reporter {
    json: bool,
    results: Vec<CheckResult>,
}

impl Reporter {
    pub(super) fn new(json: bool) -> Reporter {
        Reporter {
            json,
            results: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, result: CheckResult) -> Result<()> {
        if !self.json {
            print(&table(&result).text())?;
        }
        self.results.push(result);
        Ok(())
    }

    pub(super) fn worst(&self) -> CheckState {
        let states = self.results.iter().map(|result| result.state);
        states.max().unwrap_or(CheckState::Ok)
    }

    /// Returns all results as text.
    pub(super) fn report(&self) -> String {
        let mut report: String = self
            .results
            .iter()
            .map(|result| table(result).plain_text())
            .collect();
        report.push_str(&self.summary());
        report
    }

    /// Returns the report as JSON.
    pub(super) fn output(&self, context: &DoctorContext) -> DoctorOutput {
        DoctorOutput {
            ok: self.worst() != CheckState::Problem,
            version: env!("CARGO_PKG_VERSION"),
            config: context.file.clone(),
            data: context.data.as_ref().ok().cloned(),
            checks: self.results.clone(),
        }
    }

    /// Returns the end of the text.
    pub(super) fn summary(&self) -> String {
        let count = |state| {
            self.results
                .iter()
                .filter(|result| result.state == state)
                .count() as u64
        };
        match (count(CheckState::Problem), count(CheckState::Warning)) {
            (0, 0) => "\nno problems\n".to_owned(),
            (0, warnings) => format!("\nno problems, {}\n", count_of(warnings, "warning")),
            (problems, 0) => format!("\n{}\n", count_of(problems, "problem")),
            (problems, warnings) => format!(
                "\n{}, {}\n",
                count_of(problems, "problem"),
                count_of(warnings, "warning")
            ),
        }
    }
}

/// Report of the checks.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct DoctorOutput {
    /// True if no check found a problem.
    ok: bool,
    /// Version of the program.
    version: &'static str,
    /// File of the config; `null` for the built-in demo server.
    config: Option<PathBuf>,
    /// Data directory; `null` if it is unknown.
    data: Option<PathBuf>,
    checks: Vec<CheckResult>,
}

fn table(result: &CheckResult) -> OutputTable {
    let state = match result.state {
        CheckState::Ok => "ok",
        CheckState::Warning => "warning",
        CheckState::Problem => "problem",
    };
    let subject = match result.subject.as_str() {
        "" => String::new(),
        subject => format!("{}: ", visible_line(subject)),
    };
    let mut text = format!("{subject}{}", visible(&result.message));
    for line in &result.lines {
        text.push_str(&format!("\n| {}", visible_line(line)));
    }
    let mut table = OutputTable::new(&[TableColumn::State, TableColumn::Whole, TableColumn::Wrap])
        .with_min_widths(&[7, 7]);
    table.add([state.to_owned(), result.check.to_owned(), text]);
    table
}
