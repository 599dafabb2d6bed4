//! Outbox of urgent changes: they hold in this gateway while the database is away, and are written later.

use crate::{DatabaseStore, change::StoreChange, postgres::PostgresShared};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{BoxFuture, Error};
use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};

/// Table of the local store.
const OUTBOX_TABLE: &str = "outbox";
/// Version of an entry that only this gateway has. No entry of the database reaches it, so no precondition matches.
const LOCAL_VERSION: u64 = u64::MAX;

/// Table and key of an entry.
type EntryName = (String, String);

/// Urgent changes that the database does not have yet.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<BTreeMap<EntryName, Value>>,
    /// Keeps the changes over a restart.
    local: Option<DatabaseStore>,
}

impl Outbox {
    /// Reads the changes that an earlier process could not write.
    pub(crate) fn over(local: DatabaseStore) -> Outbox {
        let rows = local.entries(OUTBOX_TABLE).into_iter();
        let waiting = rows.filter_map(|row| {
            let text = |name: &str| Some(row.value.get(name)?.as_str()?.to_owned());
            Some((
                (text("table")?, text("key")?),
                row.value.get("value")?.clone(),
            ))
        });
        Outbox {
            waiting: Mutex::new(waiting.collect()),
            local: Some(local),
        }
    }

    /// Adds a change. Resolves when it outlives this process.
    pub(crate) fn keep(
        &self,
        table: &str,
        key: &str,
        value: &Value,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let name = (table.to_owned(), key.to_owned());
        self.lock().insert(name.clone(), value.clone());
        let row = json!({"table": table, "key": key, "value": value});
        self.write_local(&name, Some(row))
    }

    /// Closes the local store.
    pub(crate) fn close(&self) {
        if let Some(local) = &self.local {
            local.close();
        }
    }

    fn write_local(
        &self,
        (table, key): &EntryName,
        row: Option<Value>,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        match &self.local {
            Some(local) => {
                let id = format!("{}:{table}:{key}", table.len());
                local.write(OUTBOX_TABLE, &id, row, WritePrecondition::Any)
            }
            None => Box::pin(async { Ok(WriteOutcome::Done(LOCAL_VERSION)) }),
        }
    }

    /// Returns all changes that wait.
    pub(crate) fn waiting(&self) -> Vec<(EntryName, Value)> {
        let waiting = self.lock();
        let waiting = waiting.iter();
        waiting
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Removes a change that the database has now, unless a newer one took its place.
    pub(crate) fn remove(&self, name: &EntryName, written: &Value) {
        let mut waiting = self.lock();
        if waiting.get(name) == Some(written) {
            waiting.remove(name);
            // If it stays on disk, the next process writes it once more, with the same value.
            drop(self.write_local(name, None));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<EntryName, Value>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostgresShared {
    /// Updates the copy in memory. The changes of the outbox stay in force.
    pub(crate) fn publish(&self, are_all: bool, mut changes: Vec<StoreChange>) {
        for ((table, key), value) in self.outbox.waiting() {
            changes.retain(|change| (&change.table, &change.key) != (&table, &key));
            changes.push(StoreChange {
                version: LOCAL_VERSION,
                table,
                key,
                value: Some(value),
            });
        }
        self.copy.publish(are_all, changes);
    }
}
