//! In-memory tables of all entries.

use super::{ChangedKeys, StateRow, line::StateChange};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of changes that are remembered for [`StateTables::changes_since`].
const MAX_REMEMBERED_CHANGES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct StateTables {
    /// Newest changes, by their versions.
    remembered: VecDeque<RememberedChange>,
    /// Version of the newest change that is not remembered.
    forgotten_version: u64,
    tables: HashMap<String, BTreeMap<String, StoredRow>>,
    /// Number of entries in all tables.
    pub(super) row_count: usize,
    /// Size of their lines in bytes.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct StoredRow {
    row: StateRow,
    /// Size of its line in bytes.
    line: u64,
}

#[derive(Debug)]
struct RememberedChange {
    version: u64,
    table: String,
    key: String,
}

impl StateTables {
    /// Forgets all changes up to a version, after the tables were read from a file in another order.
    pub(super) fn forget_changes(&mut self, version: u64) {
        self.remembered.clear();
        self.forgotten_version = version;
    }

    pub(super) fn changes_since(&self, table: &str, version: Option<u64>) -> ChangedKeys {
        let newest = self.remembered.back().map(|change| change.version);
        let newest = newest.unwrap_or(self.forgotten_version);
        let is_known = |since: &u64| (self.forgotten_version..=newest).contains(since);
        let keys = version.filter(is_known).map(|since| {
            let changes = self.remembered.iter().rev();
            let changes = changes.take_while(|change| change.version > since);
            let of_table = changes.filter(|change| change.table == table);
            of_table.map(|change| change.key.clone()).collect()
        });
        ChangedKeys {
            version: newest,
            keys,
        }
    }

    pub(super) fn row(&self, table: &str, key: &str) -> Option<&StateRow> {
        Some(&self.tables.get(table)?.get(key)?.row)
    }

    pub(super) fn entries(&self, table: &str) -> Vec<StateRow> {
        let rows = self
            .tables
            .get(table)
            .into_iter()
            .flat_map(BTreeMap::values);
        rows.map(|held| held.row.clone()).collect()
    }

    pub(super) fn versions(&self, table: &str) -> Vec<(String, u64)> {
        let rows = self.tables.get(table).into_iter().flatten();
        rows.map(|(key, held)| (key.clone(), held.row.version))
            .collect()
    }

    /// Applies a change whose line has a size in bytes.
    pub(super) fn apply(&mut self, change: StateChange, line: u64) {
        let StateChange {
            version,
            table,
            key,
            value,
        } = change;
        if self.remembered.len() == MAX_REMEMBERED_CHANGES
            && let Some(oldest) = self.remembered.pop_front()
        {
            self.forgotten_version = oldest.version;
        }
        self.remembered.push_back(RememberedChange {
            version,
            table: table.clone(),
            key: key.clone(),
        });
        let rows = self.tables.entry(table).or_default();
        let before = match value {
            Some(value) => {
                self.row_count += 1;
                self.bytes += line;
                let row = StateRow {
                    key: key.clone(),
                    value,
                    version,
                };
                rows.insert(key, StoredRow { row, line })
            }
            None => rows.remove(&key),
        };
        self.row_count -= usize::from(before.is_some());
        self.bytes -= before.map_or(0, |held| held.line);
    }

    /// Returns the compacted file with exactly these entries.
    pub(super) fn compacted(&self) -> String {
        let mut text = String::new();
        for (table, rows) in &self.tables {
            for StoredRow { row, .. } in rows.values() {
                let (version, value) = (row.version, Some(row.value.clone()));
                let (table, key) = (table.clone(), row.key.clone());
                StateChange {
                    version,
                    table,
                    key,
                    value,
                }
                .append_line(&mut text);
            }
        }
        text
    }
}
