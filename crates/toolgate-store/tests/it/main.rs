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
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_outage;
mod state;
mod transfer;
