//! All entries, by table and key.

use super::{Row, line::Change};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: HashMap<String, BTreeMap<String, Row>>,
    /// Entries of all tables.
    pub(super) rows: usize,
}

impl Tables {
    pub(super) fn row(&self, table: &str, key: &str) -> Option<&Row> {
        self.tables.get(table)?.get(key)
    }

    pub(super) fn entries(&self, table: &str) -> Vec<Row> {
        let rows = self.tables.get(table).map(|rows| rows.values().cloned());
        rows.map(Iterator::collect).unwrap_or_default()
    }

    pub(super) fn versions(&self, table: &str) -> Vec<(String, u64)> {
        let rows = self.tables.get(table).into_iter().flatten();
        rows.map(|(key, row)| (key.clone(), row.version)).collect()
    }

    pub(super) fn apply(&mut self, change: Change) {
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
                rows.insert(
                    key.clone(),
                    Row {
                        key,
                        value,
                        version,
                    },
                )
            }
            None => rows.remove(&key),
        };
        self.rows -= usize::from(before.is_some());
    }

    /// The file that has just these entries.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (table, rows) in &self.tables {
            for row in rows.values() {
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
