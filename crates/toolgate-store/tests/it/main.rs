//! The state store on real files.
#![cfg(unix)]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy knows no helpers of tests in an integration test"
)]

mod alike;
mod kill;
mod kit;
mod legacy;
mod state;
mod transfer;
