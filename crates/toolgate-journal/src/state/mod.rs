//! Durable state that is not evidence: approvals, grants, pins. A key-value store of JSON tables in one file.
//!
//! All processes of a directory share it. Each write locks the directory, reads the changes of other processes, and is
//! on disk when it resolves. [`WritePrecondition`] decides races, so that something single-use is used once.
//!
//! ```text
//! DIR/state.lock     locked (flock) during a write
//! DIR/state.jsonl    one change per line; the last change of a key counts
//! ```
//!
//! A line is `{"n":VERSION,"t":TABLE,"k":KEY,"v":VALUE,"h":"..."}`. A line without `v` removes the key. `h` is a prefix
//! of the SHA-256 of the text before it, which detects torn writes and a damaged disk. It does not protect against an
//! attacker who can write the file; the audit log does.

mod clock;
#[cfg(all(feature = "files", unix))]
mod clock_row;
#[cfg(all(feature = "files", unix))]
mod durable;
#[cfg(all(feature = "files", unix))]
mod file;
#[cfg(all(feature = "files", unix))]
pub(crate) mod line;
mod row;
#[cfg(all(feature = "files", unix))]
mod tables;
#[cfg(all(feature = "files", unix))]
mod writer;

pub use clock::StateClock;
#[cfg(all(feature = "files", unix))]
pub use durable::{DurableState, StateError, StateLimits};
pub use row::{ChangedKeys, StateRow, WriteOutcome, WritePrecondition};
