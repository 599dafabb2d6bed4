//! Supervision of child processes by a small process of its own, the *guardian*.
//!
//! The network process never spawns children. At its start it runs one guardian: the same binary with the hidden
//! argument `__guardian`, connected by a socket pair. The guardian starts the children (stdio servers), passes their
//! pipes to the gateway, reports their exits, and ends them in steps. When the socket closes for any reason, the
//! guardian ends every child with all its descendants, then itself.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     // First of all: this process may be the guardian.
//!     if let Some(code) = toolgate_guardian::run_if_asked() {
//!         return code;
//!     }
//!     // `Guardian::start()` comes next, before any listener opens.
//!     std::process::ExitCode::SUCCESS
//! }
//! ```
//!
//! # Process groups and descendants
//!
//! Each child leads a process group of its own, which is ended as a whole. A descendant that left the group (`setsid`)
//! is found on Linux only: when the child is ended while it still runs, and when the guardian ends. If the child exited
//! by itself before, such a descendant stays until the guardian ends. Other systems do not find it at all.

mod child;
mod environment;
mod error;
mod frame;
mod guardian;
mod lifecycle;
mod link;
mod message;
mod start;
mod supervisor;

pub use child::ChildProcess;
pub use environment::{DEFAULT_ALLOWLIST, environment};
pub use error::Error;
pub use guardian::{Guardian, SpawnCommand};
pub use lifecycle::{ChildExit, ShutdownSteps};
pub use supervisor::{explain_start_error, run_if_asked};

/// Hidden first argument that makes a process the guardian.
pub(crate) const GUARDIAN_ARGUMENT: &str = "__guardian";
