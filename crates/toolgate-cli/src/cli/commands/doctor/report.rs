//! Report of the checks: a line for each result, or one JSON object.

use super::{CheckResult, CheckState, DoctorContext};
use crate::cli::commands::{Result, print};
use serde_json::json;
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
            print(&text(&result))?;
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
        let mut report: String = self.results.iter().map(text).collect();
        report.push_str(&self.summary());
        report
    }

    /// Returns the end of the output.
    pub(super) fn end(&self, context: &DoctorContext) -> String {
        if self.json {
            let report = json!({
                "ok": self.worst() != CheckState::Problem, "version": env!("CARGO_PKG_VERSION"),
                "config": context.file, "data": context.data.as_ref().ok(), "checks": self.results,
            });
            return format!("{report:#}\n");
        }
        self.summary()
    }

    fn summary(&self) -> String {
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

fn text(result: &CheckResult) -> String {
    let state = match result.state {
        CheckState::Ok => "ok",
        CheckState::Warning => "warning",
        CheckState::Problem => "problem",
    };
    let subject = match result.subject.as_str() {
        "" => String::new(),
        subject => format!("{}: ", visible_line(subject)),
    };
    let message = visible(&result.message).replace('\n', "\n                  ");
    let mut text = format!("{state:<8} {:<8} {subject}{message}\n", result.check);
    for line in &result.lines {
        text.push_str(&format!("                  | {}\n", visible_line(line)));
    }
    text
}
