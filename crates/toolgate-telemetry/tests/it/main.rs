//! Metrics and spans beside the conventions, the reference page and the official messages.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests count as tests"
)]

mod conventions;
mod otlp;
mod reference_page;
