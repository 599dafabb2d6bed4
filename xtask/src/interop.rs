//! `cargo xtask interop`: the peers of every revision, with those of the Rust SDK, and the page that tells of them.

use std::fs;
use std::path::PathBuf;

use crate::first_call;
use crate::install;
use crate::published;
use crate::report::{Report, Tests};
use crate::run::{cargo, each_line, must, root};

/// Where the outcome is kept.
pub(crate) const PAGE: &str = "docs/interop.md";
/// What stands before the outcome in the page.
const MARK: &str = "```text\n";
/// What stands after it.
const END: &str = "\n```\n";

/// Builds the peers, runs all rows and writes the page.
pub(crate) fn all(report: &mut Report) {
    report.step("install", || match install::all() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(missing.join("; ")),
    });
    report.step("the peers of the Rust SDK", build);
    let (mut tests, mut rows) = (Tests::default(), Vec::new());
    report.step("all peers", || {
        let mut run = cargo();
        let only = ["--test", "it", "--", "revisions::", "same_features::"];
        run.args(["test", "--locked", "-p", "toolgate-cli"])
            .args(["--features", "rmcp"])
            .args(only);
        run.env("TOOLGATE_INTEROP", install::folder())
            .env("TOOLGATE_RMCP", folder().join("debug/toolgate-rmcp"));
        each_line(&mut run, |line| {
            tests.add_line(line);
            rows.extend(row(line));
        })
    });
    report.step("the page", || write(rows));
    report.step("from an import to the first call", first_call::after_import);
    report.step("the published servers", || published::all(&mut tests));
    report.tests(tests);
}

fn folder() -> PathBuf {
    install::folder().join("rmcp")
}

fn build() -> Result<(), String> {
    let steps: [&[&str]; 3] = [
        &["fmt", "--check"],
        &["clippy", "--locked", "--", "-D", "warnings"],
        &["build", "--locked"],
    ];
    for words in steps {
        let mut step = cargo();
        step.args(words).env("CARGO_TARGET_DIR", folder());
        must(step.current_dir(root().join("interop/rmcp")))?;
    }
    Ok(())
}

/// `test revisions::servers::of_2025_11_25 ... ok` as a line `ok  servers  of 2025-11-25`.
fn row(line: &str) -> Option<String> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (group, name) = match name.split_once("::")? {
        ("revisions", name) => name.split_once("::")?,
        ("same_features", name) => ("programs", name),
        _ => return None,
    };
    Some(format!("{outcome:<6} {group:<8} {}", words(name)))
}

/// The words of a name; numbers in a row are a date.
fn words(name: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let (mut text, mut before) = (String::new(), "");
    for word in name.split('_') {
        match before {
            "" => {}
            number if is_number(number) && is_number(word) => text.push('-'),
            _ => text.push(' '),
        }
        text.push_str(word);
        before = word;
    }
    text
}

fn write(mut rows: Vec<String>) -> Result<(), String> {
    if rows.is_empty() {
        return Err("there is no outcome to be written".to_owned());
    }
    rows.sort();
    let page = root().join(PAGE);
    let text = fs::read_to_string(&page).map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    let (before, after) = text
        .split_once(MARK)
        .ok_or_else(|| format!("{PAGE} has no place for the outcome"))?;
    let (_, after) = after
        .split_once(END)
        .ok_or_else(|| format!("{PAGE} does not end the outcome"))?;
    let text = format!("{before}{MARK}{}{END}{after}", rows.join("\n"));
    fs::write(&page, text).map_err(|error| format!("cannot write {PAGE}: {error}"))
}
