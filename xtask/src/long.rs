//! Tests with their full counts: `cargo xtask test` tries fewer.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{cargo, must};

/// Part of the name of a test, the variable with its count, and the full count.
const COUNTS: [(&str, &str, &str); 16] = [
    ("t07_", "TOOLGATE_T07", "100000"),
    ("t10_", "TOOLGATE_T10", "10000000"),
    ("t29_", "TOOLGATE_T29", "1000000"),
    ("t31_", "TOOLGATE_T31", "10000"),
    ("t40_", "TOOLGATE_T40", "100000"),
    ("t44_", "TOOLGATE_T44", "1000000"),
    ("t76_", "TOOLGATE_T76", "1000"),
    (
        "a_killed_gateway_loses_no_answered_call",
        "TOOLGATE_GATEWAY_KILLS",
        "200",
    ),
    (
        "no_outage_of_postgresql_lets_a_call_pass_that_needs_a_person",
        "TOOLGATE_STORE_OUTAGES",
        "50",
    ),
    (
        "many_calls_tools_and_requests_leave_the_console_usable",
        "TOOLGATE_CONSOLE_LOAD",
        "1",
    ),
    (
        "memory_of_the_gateway_and_of_the_page_stays_flat",
        "TOOLGATE_CONSOLE_CALLS",
        "100000",
    ),
    (
        "a_freeze_reaches_all_gateways_soon",
        "TOOLGATE_FREEZES",
        "100",
    ),
    (
        "several_gateways_never_pass_more_than_one_alone",
        "TOOLGATE_RATE_ROUNDS",
        "20000",
    ),
    (
        "sessions_work_at_every_gateway_and_outlive_their_own",
        "TOOLGATE_SHARED_SESSIONS",
        "102",
    ),
    ("upgrade_loses_no_call", "TOOLGATE_UPGRADE_CALLS", "10000"),
    (
        "no_schedule_uses_an_approval_twice_or_without_a_person",
        "TOOLGATE_APPROVAL_SCHEDULES",
        "1000000",
    ),
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
    run.args(COUNTS.map(|(test, ..)| test));
    must(run.envs(COUNTS.map(|(_, variable, count)| (variable, count))))
}
