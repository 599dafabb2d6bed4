//! Whole logins, and what is refused on the way.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod browser;
mod concurrent_refresh;
mod file_store;
mod finding;
mod hostile;
mod identification;
mod login;
mod own_store;
mod refusals;
mod registered;
mod renewal;
mod test_servers;
