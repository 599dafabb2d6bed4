//! Limits of a store, and the copy of its tables in memory, which its writer updates.

use crate::{StoreError, change::StoreChange, clock_row, tables::StoreTables};
use serde_json::Value;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::watch;
use toolgate_policy::StateClock;

/// Limits of the state store: number and size of entries, and queue length.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreLimits {
    /// Maximum number of entries in all state tables together.
    pub max_rows: usize,
    /// Maximum size of one entry with its key, in bytes.
    pub max_row_bytes: usize,
    /// Maximum number of changes that wait for the disk or the database.
    pub max_queue: usize,
}

impl Default for StoreLimits {
    /// Returns 100,000 entries of 1 MiB, and a queue of 1,024.
    fn default() -> StoreLimits {
        StoreLimits {
            max_rows: 100_000,
            max_row_bytes: 1024 * 1024,
            max_queue: 1024,
        }
    }
}

impl StoreLimits {
    pub(crate) fn check_size(&self, key: &str, value: Option<&Value>) -> Result<(), StoreError> {
        let size = key.len() + value.map_or(0, |value| value.to_string().len());
        match size > self.max_row_bytes {
            true => Err(StoreError::Full(format!(
                "an entry of the state is {size} bytes long, but the limit is {}; store less data in it",
                self.max_row_bytes
            ))),
            false => Ok(()),
        }
    }

    /// Checks whether one more entry fits beside this number of entries.
    pub(crate) fn check_rows(&self, rows: usize) -> Result<(), StoreError> {
        match rows >= self.max_rows {
            true => Err(StoreError::Full(format!(
                "the state already has {} entries, which is the limit; delete entries that are no longer needed",
                self.max_rows
            ))),
            false => Ok(()),
        }
    }
}

/// State that the writer shares with callers.
#[derive(Debug, Default)]
pub(crate) struct StoreShared {
    pub(crate) tables: RwLock<StoreTables>,
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) failed: OnceLock<Arc<str>>,
    pub(crate) clock: Arc<StateClock>,
}

impl StoreShared {
    pub(crate) fn tables(&self) -> RwLockReadGuard<'_, StoreTables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies changes to the copy in memory, or replaces it if these are all entries.
    pub(crate) fn publish(&self, are_all: bool, changes: Vec<StoreChange>) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        for change in &changes {
            if let (clock_row::TABLE, Some(time)) = (change.table.as_str(), &change.value) {
                clock_row::merge_row(&self.clock, time);
            }
        }
        match are_all {
            true => tables.replace(changes),
            false => changes.into_iter().for_each(|change| tables.apply(change)),
        }
        drop(tables);
        self.changed.send_modify(|n| *n += 1);
    }
}
