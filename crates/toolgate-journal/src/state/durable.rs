//! The store of the state in a directory.

use super::{
    ChangedKeys, StateClock, StateRow, WriteOutcome, WritePrecondition,
    tables::StateTables,
    writer::{QueuedChange, StateWriter},
};
use crate::failure::{WRITER_ENDED, remedy};
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

use tokio::sync::{oneshot, watch};

/// Limits of the durable state: number and size of entries, and queue length.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StateLimits {
    /// Maximum number of entries in all state tables together.
    pub max_rows: usize,
    /// Maximum size of one entry with its key, in bytes.
    pub max_row_bytes: usize,
    /// Maximum number of changes that wait for the disk.
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

/// Error of the durable state store.
///
/// `Display` contains no path, since it may reach a caller. [`StateError::detail`] is for the operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StateError {
    /// A state file could not be opened, read or written.
    File {
        /// File operation that failed, as a verb phrase.
        doing: &'static str,
        /// Path of the state file.
        path: PathBuf,
        /// Error of the operating system.
        cause: Arc<io::Error>,
    },
    /// A line in the middle of the state file is corrupt.
    Damaged {
        /// Path of the corrupt state file.
        path: PathBuf,
        /// Number of the corrupt line, from 1.
        line: usize,
    },
    /// A limit of the state would be exceeded; nothing was written.
    Full(String),
    /// Too many changes wait for the disk; nothing was written.
    Overloaded,
    /// A write could not be made durable, now or earlier. This process writes nothing more.
    Failed(Arc<str>),
}

impl StateError {
    pub(super) fn file(doing: &'static str, path: &Path, cause: io::Error) -> StateError {
        StateError::File {
            doing,
            path: path.to_owned(),
            cause: Arc::new(cause),
        }
    }
}

impl StateError {
    /// Returns the error text for the operator, with paths, the error of the operating system, and the remedy.
    pub fn detail(&self) -> String {
        match self {
            StateError::File { doing, path, cause } => format!(
                "cannot {doing} {}: {cause}{}",
                path.display(),
                remedy(cause)
            ),
            StateError::Damaged { path, line } => format!(
                "{} is damaged in line {line}; restore a copy, or move the file away to start without its contents (such as keys, grants, pins and approvals, or the results of tasks)",
                path.display()
            ),
            StateError::Failed(reason) if **reason == *WRITER_ENDED => {
                format!("the state cannot be written, because {reason}; restart the program")
            }
            StateError::Failed(reason) => format!(
                "the state cannot be written ({reason}); free space on the disk or repair it, then restart the program"
            ),
            StateError::Full(_) | StateError::Overloaded => self.to_string(),
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::File { .. } => f.write_str(
                "the files of the state cannot be used; the operator has to repair them",
            ),
            StateError::Failed(_) => {
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
pub(super) struct StateShared {
    pub(super) tables: RwLock<StateTables>,
    pub(super) changed: watch::Sender<u64>,
    pub(super) failed: OnceLock<Arc<str>>,
    pub(super) clock: Arc<StateClock>,
}

impl StateShared {
    pub(super) fn tables(&self) -> RwLockReadGuard<'_, StateTables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Durable key-value tables of JSON entries in a directory, shared by its processes. Dropping it writes the queued
/// changes.
#[derive(Debug)]
pub struct DurableState {
    shared: Arc<StateShared>,
    limits: StateLimits,
    queue: Option<SyncSender<QueuedChange>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl DurableState {
    /// Opens the state of a directory and reads its tables. Blocks; call it before serving.
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
            .map_err(|e| StateError::file("start the writer thread for", &home, e))?;
        Ok(DurableState {
            shared,
            limits,
            queue: Some(queue),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns all entries of a state table, sorted by key. Changes of other processes appear within a second.
    pub fn entries(&self, table: &str) -> Vec<StateRow> {
        self.shared.tables().entries(table)
    }

    /// Returns the keys of a state table and the versions of their entries, without the values.
    pub fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.shared.tables().versions(table)
    }

    /// Returns the keys of a state table whose entries changed, or were removed, since an earlier answer with this count.
    pub fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        self.shared.tables().changes_since(table, count)
    }

    /// Returns the entry of a state table with this key.
    pub fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.shared.tables().row(table, key).cloned()
    }

    /// Writes or removes an entry of a state table, and resolves once the change is on disk. It happens even if the
    /// future is dropped.
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
            let stopped = || Err(StateError::Failed(WRITER_ENDED.into()));
            answer.await.unwrap_or_else(|_| stopped())
        }
    }

    /// Returns the monotonic wall clock of the state directory, by which entries expire.
    pub fn clock(&self) -> &Arc<StateClock> {
        &self.shared.clock
    }

    /// Returns a counter that grows with each change of the state, including those of other processes.
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
                "an entry of the state is {size} bytes long, but the limit is {}; store less data in it",
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
            TrySendError::Disconnected(_) => StateError::Failed(WRITER_ENDED.into()),
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
