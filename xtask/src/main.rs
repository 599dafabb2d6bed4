//! The project's chores: `cargo xtask check` before a commit, `cargo xtask test` before a submission.
//!
//! Only the standard library is used, so that the chores start in seconds on a fresh machine.
#![allow(
    clippy::print_stdout,
    reason = "a chore's report is what was asked for"
)]

mod first_use;
mod install;
mod report;
mod run;
mod steps;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask check | test | install
  check    format, clippy and unit tests: for every commit
  test     everything: check, licences, documents, all tests, the real clients and servers
  install  only puts the real clients and servers into the target folder";

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let mut report = report::Report::new();
    match chore.as_str() {
        "check" => steps::check(&mut report),
        "test" => steps::test(&mut report),
        "install" => steps::install(&mut report),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    report.finish()
}
