//! Pin table: the rows of all pins, in memory and in the store.

use super::{canonical::digest_of, row::PinRow};
use crate::{StateStore, WriteOutcome, WritePrecondition};
use foldhash::HashMap as FoldHashMap;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use toolgate_core::{ChangeCounters, Error, ItemKind};

/// Table of the store.
const PINS_TABLE: &str = "pins";
/// Maximum delay before writes of other processes are read.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

/// The pin table, cached in memory.
pub(super) struct PinTable {
    store: Arc<dyn StateStore>,
    changed: watch::Receiver<u64>,
    cache: Mutex<PinCache>,
    /// Counter of decisions that change lists.
    pub(super) stale: watch::Sender<ChangeCounters>,
}

#[derive(Default)]
struct PinCache {
    /// Rows by key; every call reads one.
    rows: FoldHashMap<String, CachedPinRow>,
    /// Number of rows by key prefix (server and identity).
    count: HashMap<String, usize>,
    /// Counter of changes of `rows`.
    generation: u64,
    /// Change counter of the store when it was last read, and the time of that read.
    last_read: Option<(u64, Instant)>,
    /// Flags that were already reported.
    reported: HashSet<String>,
}

/// Cached entry of the table.
struct CachedPinRow {
    version: u64,
    /// `None` if the entry is malformed.
    row: Option<PinRow>,
}

/// Returns the key prefix of a server with this identity.
pub(super) fn key_prefix(server: &str, identity: &str) -> String {
    let identity = digest_of(identity);
    format!("{server}/{}/", &identity[..16])
}

/// Returns the key of a row.
pub(super) fn row_key(server: &str, identity: &str, kind: &str, name: &str) -> String {
    let thing = digest_of(&format!("{kind}\n{name}"));
    key_prefix(server, identity) + &thing[..32]
}

impl PinTable {
    pub(super) fn new(store: Arc<dyn StateStore>) -> PinTable {
        PinTable {
            changed: store.changed(),
            store,
            cache: Mutex::default(),
            stale: watch::Sender::default(),
        }
    }

    /// Reads writes of other processes, at most every [`REFRESH_INTERVAL`]. Returns the generation, which changes with the rows.
    pub(super) fn refresh(&self) -> u64 {
        self.refresh_after(REFRESH_INTERVAL)
    }

    /// Reads all writes of other processes up to now, for an operator's decision.
    pub(super) fn refresh_now(&self) {
        self.refresh_after(Duration::ZERO);
    }

    fn refresh_after(&self, calm: Duration) -> u64 {
        let count = *self.changed.borrow();
        let mut kept = self.lock_cache();
        let is_fresh = |(seen, at): (u64, Instant)| seen == count || at.elapsed() < calm;
        if kept.last_read.is_some_and(is_fresh) {
            return kept.generation;
        }
        kept.last_read = Some((count, Instant::now()));
        if !kept.read_changes(&*self.store) {
            return kept.generation;
        }
        kept.generation += 1;
        let generation = kept.generation;
        drop(kept);
        self.mark_lists_changed();
        generation
    }

    /// Marks the lists of all kinds as changed.
    fn mark_lists_changed(&self) {
        let all = |stale: &mut ChangeCounters| {
            ItemKind::ALL
                .into_iter()
                .for_each(|kind| stale.count_list_change(kind))
        };
        self.stale.send_modify(all);
    }

    /// Returns the row of a key; `Some(None)` if the entry is malformed.
    pub(super) fn row(&self, key: &str) -> Option<Option<PinRow>> {
        self.with_row(key, |row| row.map(|row| row.cloned()))
    }

    /// Calls a function with the row of a key, without cloning it: a row holds whole definitions, and every call reads
    /// one.
    pub(super) fn with_row<T>(
        &self,
        key: &str,
        see: impl FnOnce(Option<Option<&PinRow>>) -> T,
    ) -> T {
        let kept = self.lock_cache();
        see(kept.rows.get(key).map(|known| known.row.as_ref()))
    }

    /// Returns the number of rows of a server.
    pub(super) fn count(&self, prefix: &str) -> usize {
        self.lock_cache()
            .count
            .get(prefix)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the matching rows with this key prefix, sorted by name.
    pub(super) fn rows(
        &self,
        prefix: &str,
        meant: impl Fn(&PinRow) -> bool,
    ) -> Vec<(String, PinRow)> {
        let kept = self.lock_cache();
        let of = kept.rows.iter().filter(|(key, _)| key.starts_with(prefix));
        let read = of.filter_map(|(key, row)| Some((key, row.row.as_ref()?)));
        let mut rows: Vec<(String, PinRow)> = read
            .filter(|(_, row)| meant(row))
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        rows.sort_by(|(_, a), (_, b)| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        rows
    }

    /// Stores a changed row. Returns `false` after a write conflict; the newer row is read then.
    ///
    /// # Errors
    /// The row could not be stored.
    pub(super) async fn put(&self, key: &str, mut row: PinRow) -> Result<bool, Error> {
        let expect = match row.version {
            0 => WritePrecondition::Absent,
            version => WritePrecondition::Version(version),
        };
        let written = self
            .store
            .write(PINS_TABLE, key, Some(row.to_value()), expect);
        let WriteOutcome::Done(version) = written.await? else {
            self.refresh_after(Duration::ZERO);
            return Ok(false);
        };
        row.version = version;
        let mut kept = self.lock_cache();
        let newer = |known: &CachedPinRow| known.version > version;
        if !kept.rows.get(key).is_some_and(newer) {
            let row = Some(row);
            let known = CachedPinRow { version, row };
            if kept.rows.insert(key.to_owned(), known).is_none() {
                *kept.count.entry(prefix_of(key)).or_default() += 1;
            }
            kept.generation += 1;
        }
        Ok(true)
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// The row could not be deleted.
    pub(super) async fn remove(&self, key: &str) -> Result<(), Error> {
        self.store
            .write(PINS_TABLE, key, None, WritePrecondition::Any)
            .await?;
        self.refresh_after(Duration::ZERO);
        Ok(())
    }

    /// Reports whether this flag is reported for the first time since the program started.
    pub(super) fn report_once(&self, what: String) -> bool {
        const MAX_REPORTED_FLAGS: usize = 100_000;
        let mut kept = self.lock_cache();
        kept.reported.len() < MAX_REPORTED_FLAGS && kept.reported.insert(what)
    }

    /// Marks lists as changed after a decision.
    pub(super) fn notify_decision(&self) {
        self.mark_lists_changed();
    }

    /// Follows writes of other processes and marks lists as changed. Runs until it is dropped.
    pub(super) async fn follow(&self) {
        let mut changed = self.changed.clone();
        while changed.changed().await.is_ok() {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            changed.mark_unchanged();
            self.refresh_after(Duration::ZERO);
        }
        std::future::pending().await
    }

    fn lock_cache(&self) -> MutexGuard<'_, PinCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinCache {
    /// Reads the changed rows of the store, and reports whether there were any.
    ///
    /// Only changed rows are read: the table is long, and a write to any table of the store triggers this.
    fn read_changes(&mut self, store: &dyn StateStore) -> bool {
        if self.rows.is_empty() {
            return self.replace_all(store.entries(PINS_TABLE));
        }
        let versions: HashMap<String, u64> = store.versions(PINS_TABLE).into_iter().collect();
        let before = self.rows.len();
        self.rows.retain(|key, _| versions.contains_key(key));
        let mut changed = self.rows.len() < before;
        for (key, version) in versions {
            if self
                .rows
                .get(&key)
                .is_some_and(|known| known.version == version)
            {
                continue;
            }
            changed = true;
            match store.row(PINS_TABLE, &key) {
                Some(entry) => {
                    let row = PinRow::read(&entry.value, entry.version);
                    let version = entry.version;
                    self.rows.insert(key, CachedPinRow { version, row });
                }
                None => drop(self.rows.remove(&key)),
            }
        }
        if changed {
            self.recount();
        }
        changed
    }

    fn replace_all(&mut self, entries: Vec<crate::StateRow>) -> bool {
        let known = |entry: crate::StateRow| {
            let (version, row) = (entry.version, PinRow::read(&entry.value, entry.version));
            (entry.key, CachedPinRow { version, row })
        };
        self.rows = entries.into_iter().map(known).collect();
        self.recount();
        !self.rows.is_empty()
    }

    fn recount(&mut self) {
        self.count.clear();
        for key in self.rows.keys() {
            *self.count.entry(prefix_of(key)).or_default() += 1;
        }
    }
}

/// Returns the prefix of a key, up to its last part.
fn prefix_of(key: &str) -> String {
    key[..key.rfind('/').map_or(0, |at| at + 1)].to_owned()
}
