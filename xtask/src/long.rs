//! The rows of the table of attacks with their full counts: the tests of every day try fewer.

use crate::run::{cargo, must};

/// The variable of a row, and how much it asks for.
const COUNTS: [(&str, &str); 7] = [
    ("TOOLGATE_T07", "100000"),
    ("TOOLGATE_T10", "10000000"),
    ("TOOLGATE_T29", "1000000"),
    ("TOOLGATE_T31", "10000"),
    ("TOOLGATE_T40", "100000"),
    ("TOOLGATE_T44", "1000000"),
    ("TOOLGATE_T76", "1000"),
];

/// Runs them, and shows their figures.
pub(crate) fn rows() -> Result<(), String> {
    let mut run = cargo();
    run.args(["test", "--workspace", "--locked", "--", "--nocapture"]);
    run.args(COUNTS.map(|(row, _)| row.trim_start_matches("TOOLGATE_").to_lowercase() + "_"));
    must(run.envs(COUNTS))
}
