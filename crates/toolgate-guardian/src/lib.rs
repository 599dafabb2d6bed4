//! Starts and ends child processes for the gateway, from a small process of its own.
//!
//! The network process never spawns. At its start it runs one *guardian*: the same binary with
//! the hidden word `__guardian`, joined to it by a socket pair. The guardian starts the children
//! (servers that speak over standard input and output), hands their pipes over, reports their
//! exits, and ends them in steps. At the end of the socket, however it came about, it ends
//! every child with all its descendants, then itself.
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
//! # What is held where
//!
//! A child is the leader of a process group of its own, and the group is ended as one. A
//! descendant that left the group (`setsid`) is found on Linux only: when the child is asked to
//! end while it still runs, and again when the guardian ends. One whose child exited by itself
//! before stays until the guardian ends. On other systems it is not found at all.

mod child;
mod environment;
mod error;
mod frame;
mod guardian;
mod keeper;
mod link;
mod message;
mod start;

pub use child::{Child, Exit, Steps};
pub use environment::{DEFAULT_ALLOW, environment};
pub use error::Error;
pub use guardian::{Guardian, Spawn};
pub use keeper::run_if_asked;

/// The hidden first argument that makes a process the guardian.
pub(crate) const WORD: &str = "__guardian";
