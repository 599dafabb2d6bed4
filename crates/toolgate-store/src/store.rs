//! The store of a directory: reads from memory, writes through the writer thread.

use crate::{
    StoreError,
    database::DATABASE,
    error::WRITER_ENDED,
    legacy,
    queued_change::{self, PlannedChange, QueuedChange},
    shared::{StoreLimits, StoreShared},
    writer::StoreWriter,
    writer_handle::WriterHandle,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread,
};
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Error};
use toolgate_policy::{
    ChangedKeys, StateClock, StateRow, StateStore, WriteOutcome, WritePrecondition,
};

/// State store in a SQLite database (WAL mode), shared by all processes of a directory. Dropping it writes the queued
/// changes.
#[derive(Debug)]
pub struct DatabaseStore {
    shared: Arc<StoreShared>,
    limits: StoreLimits,
    writer: WriterHandle<SyncSender<QueuedChange>>,
}

impl DatabaseStore {
    /// Opens the state store of a directory and reads its tables. Creates the database if there is none, and moves the
    /// entries of a state file of an earlier version into it. Blocks; call it before serving.
    ///
    /// # Errors
    /// The files cannot be used, or they are damaged.
    pub fn open(dir: impl Into<PathBuf>, limits: StoreLimits) -> Result<DatabaseStore, StoreError> {
        let shared = Arc::new(StoreShared::default());
        let writer = StoreWriter::open(&dir.into(), shared.clone(), limits)?;
        let (queue, inbox) = sync_channel(limits.max_queue.max(1));
        let home = writer.path().to_owned();
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|e| StoreError::file("start the writer thread for", &home, e))?;
        Ok(DatabaseStore {
            shared,
            limits,
            writer: WriterHandle::new(queue, thread),
        })
    }

    /// Returns whether a directory has a state store, also one of an earlier version.
    pub fn exists(dir: &Path) -> bool {
        dir.join(DATABASE).exists() || legacy::exists(dir)
    }

    fn send(&self, queued: QueuedChange) -> Result<(), StoreError> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(StoreError::Failed(reason.clone()));
        }
        let PlannedChange { key, value, .. } = &queued.planned;
        self.limits.check_size(key, value.as_ref())?;
        self.writer
            .queue()?
            .try_send(queued)
            .map_err(|error| match error {
                TrySendError::Full(_) => StoreError::Overloaded,
                TrySendError::Disconnected(_) => StoreError::Failed(WRITER_ENDED.into()),
            })
    }
}

impl StateStore for DatabaseStore {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        self.shared.tables().entries(table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.shared.tables().versions(table)
    }

    fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        self.shared.tables().changes_since(table, count)
    }

    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.shared.tables().row(table, key).cloned()
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        precondition: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        queued_change::write((table, key), value, precondition, |queued| {
            self.send(queued)
        })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    fn failure(&self) -> Option<String> {
        self.shared.failed.get().map(|reason| reason.to_string())
    }

    fn clock(&self) -> &Arc<StateClock> {
        &self.shared.clock
    }

    fn close(&self) {
        self.writer.close();
    }
}
