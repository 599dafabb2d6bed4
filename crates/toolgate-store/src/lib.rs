//! State store of the gateway in SQLite: approvals, grants, pins, API keys and freezes.
//!
//! [`DatabaseStore`] is a [`StateStore`](toolgate_policy::StateStore) over one database file. All processes of a
//! directory share it. A write is on disk when it resolves, and
//! [`WritePrecondition`](toolgate_policy::WritePrecondition) decides races, so that something single-use is used once.
//! Reads never touch the database: each process keeps the tables in memory, and follows the changes of others.
//!
//! ```text
//! DIR/state.sqlite            the database (with -wal and -shm while a process runs)
//! DIR/state.lock              locked (flock) while the directory is opened
//! DIR/state.jsonl.migrated    the file of an earlier version, kept as a backup after its migration
//! ```
//!
//! Each entry has a digest, which detects a damaged disk. It does not protect against an attacker who can write the
//! file; the audit log does.
//!
//! ```
//! # #[cfg(unix)]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};
//! use toolgate_store::{DatabaseStore, StoreLimits};
//! # let dir = std::env::temp_dir().join(format!("toolgate-store-doc-{}", std::process::id()));
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let store = DatabaseStore::open(&dir, StoreLimits::default())?;
//! let value = serde_json::json!({"uses": 1});
//! let first = store.write("grants", "g-1", Some(value.clone()), WritePrecondition::Absent).await?;
//! let second = store.write("grants", "g-1", Some(value), WritePrecondition::Absent).await?;
//! assert!(matches!(first, WriteOutcome::Done(_)));
//! assert_eq!(second, WriteOutcome::Conflict);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
#![cfg(unix)]

#[doc(hidden)]
#[path = "fuzz.rs"]
pub mod __fuzz;
mod change;
mod clock_row;
mod database;
mod directory;
mod error;
mod legacy;
mod legacy_line;
#[cfg(feature = "postgres")]
pub mod postgres;
mod queued_change;
mod shared;
mod store;
mod tables;
mod transfer;
mod writer;
mod writer_handle;

pub use error::StoreError;
pub use shared::StoreLimits;
pub use store::DatabaseStore;
pub use transfer::{StoreReport, StoreTable, check, clear, export, import, purge};
