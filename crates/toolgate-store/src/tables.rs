//! In-memory tables of all entries.

use crate::{change::StoreChange, clock_row};
use std::collections::{BTreeMap, HashMap, VecDeque};
use toolgate_policy::{ChangedKeys, StateRow};

/// Number of changes that are remembered for [`StoreTables::changes_since`].
const MAX_REMEMBERED_CHANGES: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct StoreTables {
    /// Number of changes that this process has seen.
    change_count: u64,
    /// Newest changes.
    remembered: VecDeque<RememberedChange>,
    /// Number of the newest change that is not remembered.
    forgotten_count: u64,
    tables: HashMap<String, BTreeMap<String, StateRow>>,
    /// Number of entries in all tables.
    pub(crate) row_count: usize,
}

#[derive(Debug)]
struct RememberedChange {
    number: u64,
    table: String,
    key: String,
}

impl StoreTables {
    /// Replaces all rows. Whoever knows earlier changes has to read the tables as a whole.
    pub(crate) fn replace(&mut self, changes: impl IntoIterator<Item = StoreChange>) {
        let change_count = self.change_count + 1;
        *self = StoreTables {
            change_count,
            ..StoreTables::default()
        };
        for change in changes {
            self.apply(change);
        }
        self.remembered.clear();
        self.forgotten_count = self.change_count;
    }

    pub(crate) fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
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

    /// Returns the number of entries that count toward the limit.
    pub(crate) fn counted_rows(&self) -> usize {
        // The row of the clock does not count, since no caller added it.
        let clock = self.row(clock_row::TABLE, clock_row::KEY).is_some();
        self.row_count - usize::from(clock)
    }

    pub(crate) fn row(&self, table: &str, key: &str) -> Option<&StateRow> {
        self.tables.get(table)?.get(key)
    }

    pub(crate) fn entries(&self, table: &str) -> Vec<StateRow> {
        let rows = self
            .tables
            .get(table)
            .into_iter()
            .flat_map(BTreeMap::values);
        rows.cloned().collect()
    }

    pub(crate) fn versions(&self, table: &str) -> Vec<(String, u64)> {
        let rows = self.tables.get(table).into_iter().flatten();
        rows.map(|(key, row)| (key.clone(), row.version)).collect()
    }

    pub(crate) fn apply(&mut self, change: StoreChange) {
        let StoreChange {
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
                let row = StateRow {
                    key: key.clone(),
                    value,
                    version,
                };
                rows.insert(key, row)
            }
            None => rows.remove(&key),
        };
        self.row_count -= usize::from(before.is_some());
    }
}
