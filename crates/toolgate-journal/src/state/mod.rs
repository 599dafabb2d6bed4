//! What must outlive a process and is no evidence: approvals, grants, pins. Tables of JSON values in one file.
//!
//! All processes of a folder share it: each write takes the lock of the folder, reads what others wrote, and is on the
//! disk when it resolves. [`Expect`] decides races, so that what may be used once is used once.
//!
//! ```text
//! DIR/state.lock     locked (flock) by whoever writes
//! DIR/state.jsonl    one change a line; the last one of a key counts
//! ```
//!
//! A line is `{"n":VERSION,"t":TABLE,"k":KEY,"v":VALUE,"h":"..."}`. Without `v` the key was removed. `h` is the beginning
//! of the SHA-256 of what stands before it: it finds a torn end and a damaged disk. It is no protection against whoever
//! can write the file; that is what the record is for.

mod clock;
mod file;
mod line;
mod tables;
mod writer;

pub use clock::Clock;

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
use tables::Tables;
use tokio::sync::{oneshot, watch};
use writer::{Message, Writer};

/// One entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name in the table.
    pub key: String,
    /// What stands there.
    pub value: Value,
    /// Which change wrote it; grows with each change of the folder.
    pub version: u64,
}

/// What must be so for a write to happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// The key is not there.
    Absent,
    /// The key is there, as this change wrote it.
    Version(u64),
}

/// What became of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Written {
    /// It is on the disk; its version.
    Done(u64),
    /// It was not as expected, and nothing was written.
    Conflict,
}

/// How much fits.
#[derive(Clone, Copy, Debug)]
pub struct StateLimits {
    /// Entries of all tables.
    pub rows: usize,
    /// Bytes of one entry, with its key.
    pub row_bytes: usize,
    /// Changes that may wait for the disk.
    pub queue: usize,
}

impl Default for StateLimits {
    /// 100,000 entries of 1 MiB, and a queue of 1,024.
    fn default() -> StateLimits {
        StateLimits {
            rows: 100_000,
            row_bytes: 1024 * 1024,
            queue: 1024,
        }
    }
}

/// Why the state was not read or written.
///
/// Its `Display` has no path: it may reach a caller. [`StateError::detail`] is for the operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StateError {
    /// A file could not be used.
    File {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// Which one.
        path: PathBuf,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// A line in the middle of the file is not what was written there.
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// A limit would be passed; nothing was written.
    Full(String),
    /// Too many changes wait for the disk; nothing was written.
    Overloaded,
    /// A write could not be made durable, now or earlier. Nothing more is written by this process.
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
    /// Returns what happened with paths and what the system said, and what to do: for the operator only.
    pub fn detail(&self) -> String {
        match self {
            StateError::File { doing, path, cause } => format!(
                "cannot {doing} {}: {cause}; check the folder, its owner and its mode",
                path.display()
            ),
            StateError::Damaged { path, line } => format!(
                "{} is damaged in line {line}; put back a copy, or move the file away to begin without what it holds: grants, pins and approvals, or the results of tasks",
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
                f.write_str("too many changes wait for the disk; try again later")
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

/// What the writer and its callers both see.
#[derive(Debug, Default)]
struct Shared {
    tables: RwLock<Tables>,
    changed: watch::Sender<u64>,
    failed: OnceLock<Arc<str>>,
    clock: Arc<Clock>,
}

impl Shared {
    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tables of a folder. Dropping it writes what waits.
#[derive(Debug)]
pub struct State {
    shared: Arc<Shared>,
    limits: StateLimits,
    queue: Option<SyncSender<Message>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl State {
    /// Reads the tables of a folder, which is made with mode 0700 if it is not there. Blocks; call it before serving.
    ///
    /// # Errors
    /// The files cannot be used, or a line in them is damaged.
    pub fn open(dir: impl Into<PathBuf>, limits: StateLimits) -> Result<State, StateError> {
        let shared = Arc::new(Shared::default());
        let writer = Writer::open(dir.into(), shared.clone(), limits)?;
        let (queue, inbox) = sync_channel(limits.queue.max(1));
        let home = writer.dir().to_owned();
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|e| StateError::file("start the writer of", &home, e))?;
        Ok(State {
            shared,
            limits,
            queue: Some(queue),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// All entries of a table by key; what other processes wrote is among them within a second.
    pub fn entries(&self, table: &str) -> Vec<Row> {
        self.shared.tables().entries(table)
    }

    /// The keys of a table and the versions of their entries, without the values.
    pub fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.shared.tables().versions(table)
    }

    /// One entry of a table.
    pub fn row(&self, table: &str, key: &str) -> Option<Row> {
        self.shared.tables().row(table, key).cloned()
    }

    /// Writes an entry, or removes it, and resolves once that is on the disk. It happens even if the future is dropped.
    ///
    /// # Errors
    /// It does not fit, too many wait, or the disk failed.
    pub fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: Expect,
    ) -> impl Future<Output = Result<Written, StateError>> + Send + use<> {
        let (waiter, answer) = oneshot::channel();
        let sent = self.send(table, key, value, expect, waiter);
        async move {
            sent?;
            let stopped = || Err(StateError::Failed("the writer stopped".into()));
            answer.await.unwrap_or_else(|_| stopped())
        }
    }

    /// The clock of the folder, by which everything in it expires.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.shared.clock
    }

    /// Counts the changes, those of other processes too.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    fn send(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: Expect,
        waiter: oneshot::Sender<Result<Written, StateError>>,
    ) -> Result<(), StateError> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(StateError::Failed(reason.clone()));
        }
        let size = key.len() + value.as_ref().map_or(0, |value| value.to_string().len());
        if size > self.limits.row_bytes {
            return Err(StateError::Full(format!(
                "an entry of {size} bytes is longer than the {} that one may have",
                self.limits.row_bytes
            )));
        }
        let message = Message {
            table: table.to_owned(),
            key: key.to_owned(),
            value,
            expect,
            waiter,
        };
        let queue = self.queue.as_ref();
        let queue = queue.ok_or_else(|| StateError::Failed("it is closed".into()))?;
        queue.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => StateError::Overloaded,
            TrySendError::Disconnected(_) => StateError::Failed("the writer stopped".into()),
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.queue.take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // Its panic has reached everybody who waited.
            let _ = thread.join();
        }
    }
}
