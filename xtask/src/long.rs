//! The rows of the table of attacks with their full counts: the tests of every day try fewer.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{cargo, must};

/// The variable of a row, and how much it asks for.
const COUNTS: [(&str, &str); 12] = [
    ("TOOLGATE_T07", "100000"),
    ("TOOLGATE_T10", "10000000"),
    ("TOOLGATE_T29", "1000000"),
    ("TOOLGATE_T31", "10000"),
    ("TOOLGATE_T40", "100000"),
    ("TOOLGATE_T44", "1000000"),
    ("TOOLGATE_T76", "1000"),
    ("TOOLGATE_S2", "200"),
    ("TOOLGATE_S4", "100"),
    ("TOOLGATE_S5", "20000"),
    ("TOOLGATE_S6", "102"),
    ("TOOLGATE_S8", "1000000"),
];

/// Mutated inputs for each fuzz target, and the seconds after which a target ends early.
const FUZZ_BOUNDS: [(&str, &str); 2] = [
    ("TOOLGATE_FUZZ_CASES", "1000000"),
    ("TOOLGATE_FUZZ_SECONDS", "60"),
];

/// Crates with fuzz tests of their own, whose names begin with `fuzz_`: the config readers, which are in a program, and the
/// fast path of the schema checker beside `jsonschema`.
const FUZZ_TESTS: [&[&str]; 2] = [
    &["-p", "toolgate-cli", "--bin", "toolgate"],
    &["-p", "toolgate-policy", "--lib"],
];

/// Runs the fuzz targets with a seed that differs from run to run. `TOOLGATE_FUZZ_SEED` repeats a run.
pub(crate) fn fuzz() -> Result<(), String> {
    let seed = env::var("TOOLGATE_FUZZ_SEED").unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_secs()).to_string()
    });
    println!("TOOLGATE_FUZZ_SEED={seed}");
    let mut targets = cargo();
    targets.args([
        "test",
        "--locked",
        "-p",
        "toolgate-fuzz",
        "--test",
        "targets",
    ]);
    targets.args(["--", "--nocapture"]);
    must(targets.envs(FUZZ_BOUNDS).env("TOOLGATE_FUZZ_SEED", &seed))?;
    for test in FUZZ_TESTS {
        let mut test_run = cargo();
        test_run.args(["test", "--locked"]).args(test);
        test_run.args(["fuzz_", "--", "--nocapture"]);
        must(test_run.envs(FUZZ_BOUNDS).env("TOOLGATE_FUZZ_SEED", &seed))?;
    }
    Ok(())
}

/// Runs them, and shows their figures.
pub(crate) fn rows() -> Result<(), String> {
    let mut run = cargo();
    run.args(["test", "--workspace", "--locked", "--", "--nocapture"]);
    run.args(COUNTS.map(|(row, _)| row.trim_start_matches("TOOLGATE_").to_lowercase() + "_"));
    must(run.envs(COUNTS))
}
