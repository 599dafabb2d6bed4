//! State store in PostgreSQL, shared by gateways on several machines.
//!
//! Each gateway keeps all entries in memory, so reads and allowed calls never touch the database. A change is one
//! conditional statement in a transaction. Transactions take the counter of versions first, so changes have one order
//! for all gateways. `NOTIFY` announces each one, and a poll each second finds those whose notice was lost.
//!
//! ```text
//! toolgate.entries    the entries of each space (state, tasks), with the version of their last change
//! toolgate.changes    the newest changes: version, table and key
//! toolgate.counters   the version of the last change, and of the newest one that `changes` no longer has
//! toolgate.audit_copies, toolgate.audit_pieces   copies of the audit logs, which no gateway keeps in memory
//! toolgate.schema     the version of the schema, and the oldest version of the program's schema that may use it
//! ```

mod address;
mod audit_copies;
mod messages;
mod outbox;
mod pipeline;
mod schema;
mod session;
mod status;
mod tls;
mod transfer;
mod worker;

pub use address::PostgresAddress;
pub use audit_copies::{AuditCopies, AuditPiece, CopiedChain, CopiedSegments, RemovedCopies};
pub use messages::MessageSender;
pub use schema::migrate;
pub use status::StoreStatus;
pub use transfer::{
    check_shared, clear_shared, export_shared, has_shared_entries, import_shared, move_to_shared,
    purge_shared,
};

use crate::{
    DatabaseStore, StoreError, StoreLimits,
    queued_change::{self, PlannedChange, QueuedChange},
    shared::StoreShared,
    writer_handle::WriterHandle,
};
use messages::MessageQueues;
use outbox::Outbox;
use serde_json::Value;
use status::StatusCell;
use std::{path::PathBuf, sync::Arc, thread, time::Duration};
use tokio::sync::{broadcast, mpsc, watch};
use toolgate_core::{BoxFuture, Error};
use toolgate_policy::{
    ChangedKeys, StateClock, StateRow, StateStore, WriteOutcome, WritePrecondition,
};
use worker::PostgresWorker;

/// Space of the entries of the gateway: approvals, grants, keys, pins and freezes.
pub const STATE_SPACE: &str = "state";
/// Space of the tasks and their results.
pub const TASK_SPACE: &str = "tasks";

/// Options of a [`PostgresStore`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Address of the database, with the user and the password.
    pub address: PostgresAddress,
    /// Space of the entries: [`STATE_SPACE`] or [`TASK_SPACE`].
    pub space: &'static str,
    /// Limits of entries and of the queue.
    pub limits: StoreLimits,
    /// Maximum time of a transaction. Without an answer, the database counts as away. Default: 2 s.
    pub timeout: Duration,
    /// Age of the last copy above which it no longer authenticates callers. Default: 10 s.
    pub stale_after: Duration,
    /// Directory in which urgent changes wait for the database. `None` for a store that has none.
    pub outbox: Option<PathBuf>,
}

impl PostgresOptions {
    /// Creates options with the default limits.
    pub fn new(address: PostgresAddress, space: &'static str) -> PostgresOptions {
        PostgresOptions {
            address,
            space,
            limits: StoreLimits::default(),
            timeout: Duration::from_secs(2),
            stale_after: Duration::from_secs(10),
            outbox: None,
        }
    }
}

/// State that the worker shares with callers.
pub(crate) struct PostgresShared {
    pub(crate) copy: StoreShared,
    pub(crate) status: StatusCell,
    pub(crate) outbox: Outbox,
}

/// State store in PostgreSQL, shared by several gateways. Dropping it writes the queued changes.
pub struct PostgresStore {
    shared: Arc<PostgresShared>,
    limits: StoreLimits,
    writer: WriterHandle<mpsc::Sender<QueuedChange>>,
    sender: MessageSender,
    incoming: broadcast::Sender<String>,
}

impl PostgresStore {
    /// Connects to the database, raises its schema if necessary, and reads the entries of a space. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Away`] if the database cannot be reached now. All other errors need the operator.
    pub fn open(options: PostgresOptions) -> Result<PostgresStore, StoreError> {
        let outbox = match &options.outbox {
            None => Outbox::default(),
            Some(dir) => Outbox::over(DatabaseStore::open(dir, StoreLimits::default())?),
        };
        let limits = options.limits;
        let shared = Arc::new(PostgresShared {
            copy: StoreShared::default(),
            status: StatusCell::new(options.stale_after),
            outbox,
        });
        let (queue, inbox) = mpsc::channel(limits.max_queue.max(1));
        let (opened, first) = std::sync::mpsc::sync_channel(1);
        let messages = MessageQueues::new();
        let (sender, incoming) = (messages.sender.clone(), messages.incoming.clone());
        let worker = PostgresWorker::new(options, shared.clone(), messages);
        let thread = thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || worker.run(inbox, &opened))
            .map_err(|e| StoreError::Away(format!("its thread cannot be started: {e}").into()))?;
        match first.recv() {
            Ok(Ok(())) => Ok(PostgresStore {
                shared,
                limits,
                writer: WriterHandle::new(queue, thread),
                sender,
                incoming,
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::Failed(crate::error::WRITER_ENDED.into())),
        }
    }

    /// Returns the status of the database, with a notice of each change.
    pub fn status(&self) -> watch::Receiver<StoreStatus> {
        self.shared.status.subscribe()
    }

    /// Returns the sender of short messages to all gateways.
    pub fn message_sender(&self) -> MessageSender {
        self.sender.clone()
    }

    /// Returns the messages of all gateways from now on.
    pub fn messages(&self) -> broadcast::Receiver<String> {
        self.incoming.subscribe()
    }

    fn send(&self, queued: QueuedChange) -> Result<(), StoreError> {
        // Refused at once: nobody waits for a database that does not answer.
        if let Some(reason) = self.shared.status.outage() {
            return Err(StoreError::Away(reason));
        }
        let PlannedChange {
            table, key, value, ..
        } = &queued.planned;
        self.limits.check_size(key, value.as_ref())?;
        if table.contains('\0') || key.contains('\0') {
            return Err(StoreError::Refused(
                "the name of an entry contains the character NUL, which PostgreSQL cannot store"
                    .to_owned(),
            ));
        }
        self.writer
            .queue()?
            .try_send(queued)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => {
                    StoreError::Failed(crate::error::WRITER_ENDED.into())
                }
            })
    }
}

impl StateStore for PostgresStore {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        self.shared.copy.tables().entries(table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.shared.copy.tables().versions(table)
    }

    fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        self.shared.copy.tables().changes_since(table, count)
    }

    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.shared.copy.tables().row(table, key).cloned()
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

    fn write_urgent(
        &self,
        table: &str,
        key: &str,
        value: Value,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let written = self.write(table, key, Some(value.clone()), WritePrecondition::Any);
        let shared = self.shared.clone();
        let (table, key) = (table.to_owned(), key.to_owned());
        Box::pin(async move {
            match written.await {
                Err(error) if shared.status.outage().is_some() => {
                    let kept = shared.outbox.keep(&table, &key, &value);
                    // An outbox that cannot be written still holds the change in memory.
                    shared.publish(false, Vec::new());
                    kept.await.map_err(|_| error)
                }
                written => written,
            }
        })
    }

    fn stale_reason(&self) -> Option<Arc<str>> {
        self.shared.status.stale_reason()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.shared.copy.changed.subscribe()
    }

    fn clock(&self) -> &Arc<StateClock> {
        &self.shared.copy.clock
    }

    fn failure(&self) -> Option<String> {
        self.shared.status.outage().map(|reason| reason.to_string())
    }

    fn close(&self) {
        self.writer.close();
        self.shared.outbox.close();
    }
}
