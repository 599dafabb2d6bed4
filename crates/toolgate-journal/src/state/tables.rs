//! In-memory tables of all entries.

use super::{ChangedKeys, StateRow, line::StateChange};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of changes that are remembered for [`StateTables::changes_since`].
const MAX_REMEMBERED_CHANGES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct StateTables {
    /// Number of changes in this process. Versions of rows do not serve for this: they may repeat when a file is replaced.
    change_count: u64,
    /// Newest changes.
    remembered: VecDeque<RememberedChange>,
    /// Number of the newest change that is not remembered.
    forgotten_count: u64,
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
    number: u64,
    table: String,
    key: String,
}

impl StateTables {
    /// Replaces all rows by those of a file. Whoever knows earlier changes has to read the tables as a whole.
    pub(super) fn replace(&mut self, changes: impl IntoIterator<Item = (StateChange, u64)>) {
        let change_count = self.change_count + 1;
        *self = StateTables {
            change_count,
            ..StateTables::default()
        };
        for (change, line) in changes {
            self.apply(change, line);
        }
        self.remembered.clear();
        self.forgotten_count = self.change_count;
    }

    pub(super) fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        let is_known = |count: &u64| (self.forgotten_count..=self.change_count).contains(count);
        let keys = count.filter(is_known).map(|count| {
            let changes = self.remembered.iter().rev();
            let changes = changes.take_while(|change| change.number > count);
            let of_table = changes.filter(|change| change.table == table);
            of_table.map(|change| change.key.clone()).collect()
        });
        ChangedKeys {
            count: self.change_count,
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
            self.forgotten_count = oldest.number;
        }
        self.change_count += 1;
        self.remembered.push_back(RememberedChange {
            number: self.change_count,
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
