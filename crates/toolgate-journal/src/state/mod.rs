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
mod file;
pub(crate) mod line;
mod tables;
mod writer;

pub use clock::StateClock;

use serde_json::Value;
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};
use tables::StateTables;
use tokio::sync::{oneshot, watch};
use writer::{QueuedChange, StateWriter};

/// Entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRow {
    /// Key in the table.
    pub key: String,
    /// JSON value.
    pub value: Value,
    /// Version: number of the change that wrote it, which grows with each change in the directory.
    pub version: u64,
}

/// Precondition of a write (compare-and-set).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WritePrecondition {
    /// No precondition.
    Any,
    /// The key does not exist.
    Absent,
    /// The key exists with this version.
    Version(u64),
}

/// Result of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteOutcome {
    /// The change is on disk; with its version.
    Done(u64),
    /// The precondition failed, and nothing was written.
    Conflict,
}

/// Limits of the state.
#[derive(Clone, Copy, Debug)]
pub struct StateLimits {
    /// Maximum number of entries in all tables.
    pub max_rows: usize,
    /// Maximum size of an entry and its key in bytes.
    pub max_row_bytes: usize,
    /// Maximum number of changes that are queued for the disk.
    pub max_queue: usize,
}

impl Default for StateLimits {
    /// Returns 100,000 entries of 1 MiB, and a queue of 1,024.
    fn default() -> StateLimits {
        StateLimits {
            max_rows: 100_000,
            max_row_bytes: 1024 * 1024,
            max_queue: 1024,
        }
    }
}

/// Error of the state.
///
/// `Display` contains no path, since it may reach a caller. [`StateError::detail`] is for the operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StateError {
    /// A file could not be used.
    File {
        /// Attempted operation, as a verb phrase.
        doing: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the system.
        cause: Arc<io::Error>,
    },
    /// A line in the middle of the file is corrupt.
    Damaged {
        /// File.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// A limit would be exceeded; nothing was written.
    Full(String),
    /// Too many changes are queued; nothing was written.
    Overloaded,
    /// A write could not be made durable, now or earlier. This process writes nothing more.
    Failed(Arc<str>),
}

impl StateError {
    fn file(doing: &'static str, path: &Path, cause: io::Error) -> StateError {
        StateError::File {
            doing,
            path: path.to_owned(),
            cause: Arc::new(cause),
        }
    }
}

impl StateError {
    /// Returns the error with paths, the error of the system, and the remedy: for the operator only.
    pub fn detail(&self) -> String {
        match self {
            StateError::File { doing, path, cause } => format!(
                "cannot {doing} {}: {cause}; check the directory, its owner and its mode",
                path.display()
            ),
            StateError::Damaged { path, line } => format!(
                "{} is damaged in line {line}; restore a copy, or move the file away to start without its contents: grants, pins and approvals, or the results of tasks",
                path.display()
            ),
            StateError::Failed(reason) => {
                format!("the state cannot be written ({reason}); repair the disk, then restart")
            }
            StateError::Full(_) | StateError::Overloaded => self.to_string(),
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::File { .. } | StateError::Failed(_) => {
                f.write_str("the state cannot be written; the operator has to repair it")
            }
            StateError::Damaged { .. } => {
                f.write_str("the state is damaged; the operator has to repair it")
            }
            StateError::Full(text) => f.write_str(text),
            StateError::Overloaded => {
                f.write_str("too many changes are queued for the disk; try again later")
            }
        }
    }
}

impl std::error::Error for StateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StateError::File { cause, .. } => Some(cause.as_ref()),
            _ => None,
        }
    }
}

/// State that the writer shares with callers.
#[derive(Debug, Default)]
struct StateShared {
    tables: RwLock<StateTables>,
    changed: watch::Sender<u64>,
    failed: OnceLock<Arc<str>>,
    clock: Arc<StateClock>,
}

impl StateShared {
    fn tables(&self) -> RwLockReadGuard<'_, StateTables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Durable key-value tables of a directory. Dropping it writes the queued changes.
#[derive(Debug)]
pub struct DurableState {
    shared: Arc<StateShared>,
    limits: StateLimits,
    queue: Option<SyncSender<QueuedChange>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl DurableState {
    /// Reads the tables of a directory, which is created with mode 0700 if it does not exist. Blocks; call it before
    /// serving.
    ///
    /// # Errors
    /// The files cannot be used, or a line in them is damaged.
    pub fn open(dir: impl Into<PathBuf>, limits: StateLimits) -> Result<DurableState, StateError> {
        let shared = Arc::new(StateShared::default());
        let writer = StateWriter::open(dir.into(), shared.clone(), limits)?;
        let (queue, inbox) = sync_channel(limits.max_queue.max(1));
        let home = writer.dir().to_owned();
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|e| StateError::file("start the writer of", &home, e))?;
        Ok(DurableState {
            shared,
            limits,
            queue: Some(queue),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns all entries of a table by key. Changes of other processes appear within a second.
    pub fn entries(&self, table: &str) -> Vec<StateRow> {
        self.shared.tables().entries(table)
    }

    /// Returns the keys of a table and the versions of their entries, without the values.
    pub fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.shared.tables().versions(table)
    }

    /// Returns one entry of a table.
    pub fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.shared.tables().row(table, key).cloned()
    }

    /// Writes or removes an entry, and resolves once the change is on disk. It happens even if the future is dropped.
    ///
    /// # Errors
    /// The entry exceeds a limit, the queue is full, or the disk failed.
    pub fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> impl Future<Output = Result<WriteOutcome, StateError>> + Send + use<> {
        let (waiter, answer) = oneshot::channel();
        let sent = self.send(table, key, value, expect, waiter);
        async move {
            sent?;
            let stopped = || Err(StateError::Failed("its writer thread ended".into()));
            answer.await.unwrap_or_else(|_| stopped())
        }
    }

    /// Returns the clock of the directory, by which everything in it expires.
    pub fn clock(&self) -> &Arc<StateClock> {
        &self.shared.clock
    }

    /// Returns a counter of the changes, including those of other processes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    fn send(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
        waiter: oneshot::Sender<Result<WriteOutcome, StateError>>,
    ) -> Result<(), StateError> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(StateError::Failed(reason.clone()));
        }
        let size = key.len() + value.as_ref().map_or(0, |value| value.to_string().len());
        if size > self.limits.max_row_bytes {
            return Err(StateError::Full(format!(
                "an entry of {size} bytes exceeds the limit of {} bytes",
                self.limits.max_row_bytes
            )));
        }
        let message = QueuedChange {
            table: table.to_owned(),
            key: key.to_owned(),
            value,
            expect,
            waiter,
        };
        let queue = self.queue.as_ref();
        let queue = queue.ok_or_else(|| {
            StateError::Failed("it is closed, because the program is shutting down".into())
        })?;
        queue.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => StateError::Overloaded,
            TrySendError::Disconnected(_) => StateError::Failed("its writer thread ended".into()),
        })
    }
}

impl Drop for DurableState {
    fn drop(&mut self) {
        self.queue.take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the writer has already been reported to all waiters.
            let _ = thread.join();
        }
    }
}
