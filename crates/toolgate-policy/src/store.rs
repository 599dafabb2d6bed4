//! Storage of state that outlives a call: approvals, grants, pins, freezes.

use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Error};
pub use toolgate_journal::state::{
    ChangedKeys, StateClock, StateRow, WriteOutcome, WritePrecondition,
};

/// Key-value store for state that outlives a call (approvals, pins, API keys): tables of JSON values by key.
///
/// The gateway's store is in its data directory, shared by all its processes. A program of your own uses [`MemoryStateStore`]
/// by default.
pub trait StateStore: Send + Sync + 'static {
    /// Returns all entries of a table of the store, by key. Entries of other processes appear within about a second.
    fn entries(&self, table: &str) -> Vec<StateRow>;

    /// Returns the keys of a table of the store with their versions. With them changes can be detected without reading
    /// the values.
    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        let rows = self.entries(table).into_iter();
        rows.map(|row| (row.key, row.version)).collect()
    }

    /// Returns the keys of a table of the store whose entries changed, or were removed, since an earlier answer with this
    /// count. The default knows no changes, so that the table is read as a whole.
    fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        let _ = (table, count);
        ChangedKeys::default()
    }

    /// Returns the entry of a table of the store with this key.
    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.entries(table).into_iter().find(|row| row.key == key)
    }

    /// Writes or removes an entry of the store, and resolves when the change outlives this process. It takes effect
    /// even if the future is dropped. [`WritePrecondition`] makes it conditional, so that it happens at most once.
    ///
    /// # Errors
    /// The change is not stored; anything that depends on it must not happen.
    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        precondition: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>>;

    /// Writes an entry that must hold at once, such as a freeze. If a shared store is away, the entry holds in this
    /// process, and reaches the store later.
    ///
    /// # Errors
    /// The entry is not stored anywhere that outlives this process.
    fn write_urgent(
        &self,
        table: &str,
        key: &str,
        value: Value,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        self.write(table, key, Some(value), WritePrecondition::Any)
    }

    /// Returns the reason why the entries are too old to authenticate callers with. A store without a network never has
    /// one.
    fn stale_reason(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns a counter of changes of the store, including those of other processes, to wait for the next change.
    fn changed(&self) -> watch::Receiver<u64>;

    /// Returns the reason why the store cannot be written at present; `None` if it can. For the operator only: it may
    /// name files and addresses.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Closes the store: it writes the queued changes, and rejects later ones. Blocks until it has written them.
    fn close(&self) {}

    /// Returns the clock by which all entries of the store expire. It is monotonic even if the system clock is set
    /// back.
    fn clock(&self) -> &Arc<StateClock>;
}

/// In-memory state store that ends with the process: for programs without an operator, and for tests.
#[derive(Debug, Default)]
pub struct MemoryStateStore {
    rows: Mutex<MemoryRows>,
    changed: watch::Sender<u64>,
    clock: Arc<StateClock>,
}

#[derive(Debug, Default)]
struct MemoryRows {
    version: u64,
    rows: Vec<(String, StateRow)>,
}

impl MemoryRows {
    fn write(
        &mut self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> WriteOutcome {
        let of = |(t, row): &(String, StateRow)| t == table && row.key == key;
        let at = self.rows.iter().position(of);
        let there = at.map(|at| self.rows[at].1.version);
        let fits = match expect {
            WritePrecondition::Any => true,
            WritePrecondition::Absent => there.is_none(),
            WritePrecondition::Version(version) => there == Some(version),
        };
        if !fits {
            return WriteOutcome::Conflict;
        }
        self.version += 1;
        let version = self.version;
        if let Some(at) = at {
            self.rows.remove(at);
        }
        let key = key.to_owned();
        self.rows.extend(value.map(|value| {
            (
                table.to_owned(),
                StateRow {
                    key,
                    value,
                    version,
                },
            )
        }));
        WriteOutcome::Done(version)
    }
}

impl MemoryStateStore {
    /// Creates an empty in-memory state store.
    pub fn new() -> MemoryStateStore {
        MemoryStateStore::default()
    }

    fn rows(&self) -> MutexGuard<'_, MemoryRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for MemoryStateStore {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        let rows = self.rows();
        let of = rows.rows.iter().filter(|(t, _)| t == table);
        let mut found: Vec<StateRow> = of.map(|(_, row)| row.clone()).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        let rows = self.rows();
        let mut rows = rows.rows.iter();
        let found = rows.find(|(t, row)| t == table && row.key == key);
        found.map(|(_, row)| row.clone())
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let written = self.rows().write(table, key, value, expect);
        if let WriteOutcome::Done(_) = written {
            self.changed.send_modify(|n| *n += 1);
        }
        Box::pin(async move { Ok(written) })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn clock(&self) -> &Arc<StateClock> {
        &self.clock
    }
}
