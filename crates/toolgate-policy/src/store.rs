//! Storage of state that outlives a call: approvals, grants, pins, freezes.

use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Error, Kind, OperatorDetail, Refusal};
use toolgate_journal::state::State;
pub use toolgate_journal::state::{Clock, Expect, Row, Written};

/// Key-value store for state that outlives a call: tables of JSON values by key.
///
/// The gateway's store is in its data directory, shared by all its processes. A program of your own uses [`Memory`]
/// by default.
pub trait Store: Send + Sync + 'static {
    /// Returns all entries of a table, by key. Entries of other processes appear within about a second.
    fn entries(&self, table: &str) -> Vec<Row>;

    /// Returns the keys of a table with their versions, so that changes can be detected without reading the values.
    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        let rows = self.entries(table).into_iter();
        rows.map(|row| (row.key, row.version)).collect()
    }

    /// Returns one entry of a table.
    fn row(&self, table: &str, key: &str) -> Option<Row> {
        self.entries(table).into_iter().find(|row| row.key == key)
    }

    /// Writes or removes an entry, and resolves when the change outlives this process. It takes effect even if the
    /// future is dropped. [`Expect`] makes it conditional, so that it happens at most once.
    ///
    /// # Errors
    /// The change is not stored; anything that depends on it must not happen.
    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: Expect,
    ) -> BoxFuture<'static, Result<Written, Error>>;

    /// Returns a counter of changes, including those of other processes.
    fn changed(&self) -> watch::Receiver<u64>;

    /// Returns the clock by which all entries expire. It is monotonic even if the system clock is set back.
    fn clock(&self) -> &Arc<Clock>;
}

impl Store for State {
    fn entries(&self, table: &str) -> Vec<Row> {
        State::entries(self, table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        State::versions(self, table)
    }

    fn row(&self, table: &str, key: &str) -> Option<Row> {
        State::row(self, table, key)
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: Expect,
    ) -> BoxFuture<'static, Result<Written, Error>> {
        let written = State::write(self, table, key, value, expect);
        Box::pin(async move {
            written.await.map_err(|cause| {
                let text = format!("refused, because the change cannot be stored: {cause}");
                let detail = OperatorDetail::new(cause.detail());
                Error::new(Kind::Refused(Refusal::Record), text)
                    .because(cause)
                    .with_detail(detail)
            })
        })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        State::changed(self)
    }

    fn clock(&self) -> &Arc<Clock> {
        State::clock(self)
    }
}

/// An in-memory store that ends with the process: for programs without an operator, and for tests.
#[derive(Debug, Default)]
pub struct Memory {
    rows: Mutex<Rows>,
    changed: watch::Sender<u64>,
    clock: Arc<Clock>,
}

#[derive(Debug, Default)]
struct Rows {
    version: u64,
    rows: Vec<(String, Row)>,
}

impl Rows {
    fn write(&mut self, table: &str, key: &str, value: Option<Value>, expect: Expect) -> Written {
        let of = |(t, row): &(String, Row)| t == table && row.key == key;
        let at = self.rows.iter().position(of);
        let there = at.map(|at| self.rows[at].1.version);
        let fits = match expect {
            Expect::Any => true,
            Expect::Absent => there.is_none(),
            Expect::Version(version) => there == Some(version),
        };
        if !fits {
            return Written::Conflict;
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
                Row {
                    key,
                    value,
                    version,
                },
            )
        }));
        Written::Done(version)
    }
}

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Memory {
        Memory::default()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn entries(&self, table: &str) -> Vec<Row> {
        let rows = self.rows();
        let of = rows.rows.iter().filter(|(t, _)| t == table);
        let mut found: Vec<Row> = of.map(|(_, row)| row.clone()).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    fn row(&self, table: &str, key: &str) -> Option<Row> {
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
        expect: Expect,
    ) -> BoxFuture<'static, Result<Written, Error>> {
        let written = self.rows().write(table, key, value, expect);
        if let Written::Done(_) = written {
            self.changed.send_modify(|n| *n += 1);
        }
        Box::pin(async move { Ok(written) })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn once(store: &dyn Store) {
        let mut changed = store.changed();
        changed.mark_unchanged();
        let put = |value, expect| store.write("grants", "g-1", value, expect);
        let Written::Done(first) = put(Some(json!(1)), Expect::Absent).await.unwrap() else {
            panic!("it was not there");
        };
        assert!(changed.has_changed().unwrap());
        assert_eq!(
            put(Some(json!(2)), Expect::Absent).await.unwrap(),
            Written::Conflict
        );
        assert_eq!(store.entries("grants")[0].value, json!(1));
        assert_eq!(store.versions("grants"), [("g-1".to_owned(), first)]);
        assert_eq!(store.row("grants", "g-1"), store.entries("grants").pop());
        assert_eq!(
            (store.row("grants", "g"), store.row("pins", "g-1")),
            (None, None)
        );
        assert_eq!(store.entries("pins"), []);
        let second = put(Some(json!(2)), Expect::Version(first)).await.unwrap();
        assert!(matches!(second, Written::Done(n) if n > first));
        assert_eq!(
            put(None, Expect::Version(first)).await.unwrap(),
            Written::Conflict
        );
        put(None, Expect::Any).await.unwrap();
        assert_eq!(store.entries("grants"), []);
    }

    #[tokio::test]
    async fn both_stores_decide_alike() {
        once(&Memory::new()).await;
        let dir = std::env::temp_dir().join(format!("toolgate-store-{}", std::process::id()));
        once(&State::open(&dir, Default::default()).unwrap()).await;
        std::fs::remove_dir_all(dir).unwrap();
    }
}
