//! The duties together, over a scripted service.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod approval_interleavings;
mod approval_schedules;
mod approvals;
mod authenticator;
mod binding;
mod cleaning;
mod conditions;
mod contents;
mod limits;
mod passkey_attacks;
mod passkeys;
mod pins;
mod pipeline_fixture;
mod placeholders;
mod policy_table;
mod prompt_arguments;
mod questions;
mod resources;
mod rules;
mod schemas;
mod secrets;
mod small_stack;
mod trace;
mod tracing_recorder;
mod url_readings;
mod waits;
