//! The duties together, over a scripted service.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod approvals;
mod binding;
mod both_tables;
mod cleaning;
mod conditions;
mod contents;
mod heard;
mod limits;
mod orders;
mod pins;
mod placeholders;
mod questions;
mod resources;
mod rules;
mod schemas;
mod secrets;
mod small_stack;
mod trace;
mod url_readings;
mod waits;
mod world;
