//! What passed, what failed, what was skipped and why; the last lines of every chore.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// True where nothing may be skipped.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Collects the outcome of every step.
pub(crate) struct Report {
    began: Instant,
    steps: Vec<(String, Duration, Result<(), String>)>,
    skips: Vec<String>,
    tests: Tests,
}

/// Counts from the closing lines of the test runner.
#[derive(Default)]
pub(crate) struct Tests {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) ignored: u32,
}

impl Tests {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`; other lines change nothing.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            let mut words = part.split(' ');
            let count = words
                .next()
                .and_then(|word| word.parse::<u32>().ok())
                .unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                Some("ignored") => self.ignored += count,
                _ => {}
            }
        }
    }
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            steps: Vec::new(),
            skips: Vec::new(),
            tests: Tests::default(),
        }
    }

    /// Runs one step, says how it went, and goes on with the next whatever came of it.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<(), String>) {
        println!("\n== {name}");
        let began = Instant::now();
        let outcome = work();
        let took = began.elapsed();
        match &outcome {
            Ok(()) => println!("== {name}: fine ({} s)", took.as_secs()),
            Err(why) => println!("== {name}: FAILED: {why} ({} s)", took.as_secs()),
        }
        self.steps.push((name.to_owned(), took, outcome));
    }

    /// Notes that something was not done. With `CI` set the whole run fails for it.
    pub(crate) fn skip(&mut self, what: &str) {
        if !self.skips.iter().any(|known| known == what) {
            self.skips.push(what.to_owned());
        }
    }

    pub(crate) fn tests(&mut self, tests: Tests) {
        self.tests = tests;
    }

    /// Prints the summary and gives the exit code.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n== summary after {} s", self.began.elapsed().as_secs());
        for (name, took, outcome) in &self.steps {
            let word = if outcome.is_ok() { "fine  " } else { "FAILED" };
            println!("  {word} {:>5} s  {name}", took.as_secs());
        }
        println!(
            "left out: known advisories (the RustSec database is not in a package registry; run `cargo deny check advisories` where it can be fetched)"
        );
        println!(
            "skipped: {}",
            if self.skips.is_empty() { "nothing" } else { "" }
        );
        for skip in &self.skips {
            println!("  {skip}");
        }
        let broken = self
            .steps
            .iter()
            .filter(|(_, _, outcome)| outcome.is_err())
            .count();
        let skips_fail = in_ci() && (!self.skips.is_empty() || self.tests.ignored > 0);
        if skips_fail {
            println!("with CI set, a skip is a failure");
        }
        // Steps count beside the tests, so that a red clippy is not hidden behind green tests.
        let passed = self.tests.passed as usize + self.steps.len() - broken;
        let failed = self.tests.failed as usize + broken;
        println!(
            "\n{passed} passed, {failed} failed, {} skipped",
            self.skips.len() + self.tests.ignored as usize
        );
        if failed == 0 && !skips_fail {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tests;

    #[test]
    fn closing_lines_of_the_test_runner_are_added_up() {
        let mut tests = Tests::default();
        tests.add_line("running 5 tests");
        tests.add_line("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tests.add_line(
            "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!((tests.passed, tests.failed, tests.ignored), (5, 4, 1));
    }
}
