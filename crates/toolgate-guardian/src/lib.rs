//! Supervision of child processes by a small process of its own, the *guardian*.
//!
//! The network process never spawns children. At its start it runs one guardian: the same binary with the hidden
//! argument `__guardian`, connected by a socket pair. The guardian starts the children (stdio servers), passes their
//! pipes to the gateway, reports their exits, and ends them in steps. When the socket closes for any reason, the
//! guardian ends every child with all its descendants, then itself.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     # #[cfg(unix)]
//!     // First of all: this process may be the guardian.
//!     if let Some(code) = toolgate_guardian::run_if_asked() {
//!         return code;
//!     }
//!     // `Guardian::start()` comes next, before any listener opens.
//!     std::process::ExitCode::SUCCESS
//! }
//! ```
//!
//! # Platforms
//!
//! The guardian needs Unix. On other systems the crate has only [`environment`] and [`DEFAULT_ALLOWLIST`].
//!
//! # Process groups and descendants
//!
//! Each child leads a process group of its own, which is ended as a whole. A descendant that left the group (`setsid`)
//! is found on Linux only: when the child is ended while it still runs, and when the guardian ends. If the child exited
//! by itself before, such a descendant stays until the guardian ends. Other systems do not find it at all.

#[cfg(unix)]
mod child;
mod environment;
#[cfg(unix)]
mod error;
#[cfg(unix)]
mod frame;
#[cfg(unix)]
mod guardian;
#[cfg(unix)]
mod lifecycle;
#[cfg(unix)]
mod link;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod start;
#[cfg(unix)]
mod supervisor;

#[cfg(unix)]
pub use child::ChildProcess;
pub use environment::{DEFAULT_ALLOWLIST, environment};
#[cfg(unix)]
pub use error::Error;
#[cfg(unix)]
pub use guardian::{Guardian, SpawnCommand};
#[cfg(unix)]
pub use lifecycle::{ChildExit, ShutdownSteps};
#[cfg(unix)]
pub use supervisor::{explain_start_error, find_program, run_if_asked};

#[cfg(unix)]
/// Hidden first argument that makes a process the guardian.
pub(crate) const GUARDIAN_ARGUMENT: &str = "__guardian";
