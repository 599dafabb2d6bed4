//! The journal from outside, on real folders and on disks that fail.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy knows no helpers of tests in an integration test"
)]

mod caller_commits;
mod chains;
mod checkpoints;
mod durability;
mod failure;
mod form;
mod kill;
mod kit;
mod power;
mod reading;
mod recovery;
mod repair;
mod retention;
mod rotation;
mod tamper;
mod unsigned;
