//! In-memory tables of all entries.

use super::{Row, line::Change};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: HashMap<String, BTreeMap<String, Held>>,
    /// Number of entries in all tables.
    pub(super) rows: usize,
    /// Size of their lines in bytes.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Held {
    row: Row,
    /// Size of its line in bytes.
    line: u64,
}

impl Tables {
    pub(super) fn row(&self, table: &str, key: &str) -> Option<&Row> {
        Some(&self.tables.get(table)?.get(key)?.row)
    }

    pub(super) fn entries(&self, table: &str) -> Vec<Row> {
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
    pub(super) fn apply(&mut self, change: Change, line: u64) {
        let Change {
            version,
            table,
            key,
            value,
        } = change;
        let rows = self.tables.entry(table).or_default();
        let before = match value {
            Some(value) => {
                self.rows += 1;
                self.bytes += line;
                let row = Row {
                    key: key.clone(),
                    value,
                    version,
                };
                rows.insert(key, Held { row, line })
            }
            None => rows.remove(&key),
        };
        self.rows -= usize::from(before.is_some());
        self.bytes -= before.map_or(0, |held| held.line);
    }

    /// Returns the compacted file with exactly these entries.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (table, rows) in &self.tables {
            for Held { row, .. } in rows.values() {
                let (version, value) = (row.version, Some(row.value.clone()));
                let (table, key) = (table.clone(), row.key.clone());
                Change {
                    version,
                    table,
                    key,
                    value,
                }
                .push(&mut text);
            }
        }
        text
    }
}
