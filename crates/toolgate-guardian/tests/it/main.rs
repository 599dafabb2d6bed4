//! The guardian with real processes.
//!
//! No program is shipped for the tests: this binary runs itself again. With the hidden word as
//! its first argument the harness picks the test of that name, which becomes the guardian.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests count as tests"
)]

mod end;
mod gateway_dies;
mod help;
#[cfg(target_os = "linux")]
mod linux;
mod start;

use toolgate_guardian::run_if_asked;

/// Becomes the guardian when this binary is run as one; nothing in an ordinary run.
#[test]
fn __guardian() {
    if let Some(code) = run_if_asked() {
        assert_eq!(
            format!("{code:?}"),
            format!("{:?}", std::process::ExitCode::SUCCESS)
        );
        // The harness has nothing to add.
        std::process::exit(0);
    }
}
