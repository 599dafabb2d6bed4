//! The rows of all pins, in memory and in the store.

use super::{form::digest_of, row::Row};
use crate::{Expect, Store, Written};
use ahash::AHashMap;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use toolgate_core::{Error, ItemKind, Stale};

/// The table in the store.
const TABLE: &str = "pins";
/// How long what other processes wrote may stay unseen.
const LOOK: Duration = Duration::from_millis(200);

/// The rows of all pins.
pub(super) struct Book {
    store: Arc<dyn Store>,
    changed: watch::Receiver<u64>,
    kept: Mutex<Kept>,
    /// Counts decisions, after which lists are others.
    pub(super) stale: watch::Sender<Stale>,
}

#[derive(Default)]
struct Kept {
    /// Each call asks it.
    rows: AHashMap<String, Known>,
    /// How many of a server, by the beginning of their keys.
    count: HashMap<String, usize>,
    /// Counts the changes of `rows`.
    generation: u64,
    /// What the store had counted when it was read, and when that was.
    seen: Option<(u64, Instant)>,
    /// What was told.
    told: HashSet<String>,
}

/// An entry of the table.
struct Known {
    version: u64,
    /// `None` for what is no row.
    row: Option<Row>,
}

/// What stands before the keys of a server that is what it is.
pub(super) fn prefix(server: &str, identity: &str) -> String {
    let identity = digest_of(identity);
    format!("{server}/{}/", &identity[..16])
}

/// The key of a row.
pub(super) fn key(server: &str, identity: &str, kind: &str, name: &str) -> String {
    let thing = digest_of(&format!("{kind}\n{name}"));
    prefix(server, identity) + &thing[..32]
}

impl Book {
    pub(super) fn new(store: Arc<dyn Store>) -> Book {
        Book {
            changed: store.changed(),
            store,
            kept: Mutex::default(),
            stale: watch::Sender::default(),
        }
    }

    /// Reads what other processes wrote. The number is another one if anything changed.
    pub(super) fn look(&self) -> u64 {
        self.read(LOOK)
    }

    /// Reads what other processes wrote up to now: for a person who decides.
    pub(super) fn look_close(&self) {
        self.read(Duration::ZERO);
    }

    fn read(&self, calm: Duration) -> u64 {
        let count = *self.changed.borrow();
        let mut kept = self.kept();
        let is_fresh = |(seen, at): (u64, Instant)| seen == count || at.elapsed() < calm;
        if kept.seen.is_some_and(is_fresh) {
            return kept.generation;
        }
        kept.seen = Some((count, Instant::now()));
        if !kept.take(&*self.store) {
            return kept.generation;
        }
        kept.generation += 1;
        let generation = kept.generation;
        drop(kept);
        self.tell_all();
        generation
    }

    /// All lists may be others now.
    fn tell_all(&self) {
        let all = |stale: &mut Stale| ItemKind::ALL.into_iter().for_each(|kind| stale.list(kind));
        self.stale.send_modify(all);
    }

    /// The row of a key; `Some(None)` where something stands there that is no row.
    pub(super) fn row(&self, key: &str) -> Option<Option<Row>> {
        self.see(key, |row| row.map(|row| row.cloned()))
    }

    /// The same, seen in its place: a row holds whole definitions, and each call looks at one.
    pub(super) fn see<T>(&self, key: &str, see: impl FnOnce(Option<Option<&Row>>) -> T) -> T {
        let kept = self.kept();
        see(kept.rows.get(key).map(|known| known.row.as_ref()))
    }

    /// How many rows a server has.
    pub(super) fn count(&self, prefix: &str) -> usize {
        self.kept().count.get(prefix).copied().unwrap_or_default()
    }

    /// The rows of a server that is what it is and that are meant, by their names.
    pub(super) fn rows(&self, prefix: &str, meant: impl Fn(&Row) -> bool) -> Vec<(String, Row)> {
        let kept = self.kept();
        let of = kept.rows.iter().filter(|(key, _)| key.starts_with(prefix));
        let read = of.filter_map(|(key, row)| Some((key, row.row.as_ref()?)));
        let mut rows: Vec<(String, Row)> = read
            .filter(|(_, row)| meant(row))
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        rows.sort_by(|(_, a), (_, b)| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        rows
    }

    /// Keeps a row as it was changed. `false` where somebody else was faster; then theirs is read.
    ///
    /// # Errors
    /// It is not kept.
    pub(super) async fn put(&self, key: &str, mut row: Row) -> Result<bool, Error> {
        let expect = match row.version {
            0 => Expect::Absent,
            version => Expect::Version(version),
        };
        let written = self.store.write(TABLE, key, Some(row.to_value()), expect);
        let Written::Done(version) = written.await? else {
            self.read(Duration::ZERO);
            return Ok(false);
        };
        row.version = version;
        let mut kept = self.kept();
        let newer = |known: &Known| known.version > version;
        if !kept.rows.get(key).is_some_and(newer) {
            let row = Some(row);
            let known = Known { version, row };
            if kept.rows.insert(key.to_owned(), known).is_none() {
                *kept.count.entry(head(key)).or_default() += 1;
            }
            kept.generation += 1;
        }
        Ok(true)
    }

    /// Forgets a row.
    ///
    /// # Errors
    /// It is still kept.
    pub(super) async fn remove(&self, key: &str) -> Result<(), Error> {
        self.store.write(TABLE, key, None, Expect::Any).await?;
        self.read(Duration::ZERO);
        Ok(())
    }

    /// Whether this is told for the first time since the program began.
    pub(super) fn is_news(&self, what: String) -> bool {
        const MOST: usize = 100_000;
        let mut kept = self.kept();
        kept.told.len() < MOST && kept.told.insert(what)
    }

    /// Something was decided: the lists are others now.
    pub(super) fn decided(&self) {
        self.tell_all();
    }

    /// Reads what others write, and tells whoever listens; never ends.
    pub(super) async fn follow(&self) {
        let mut changed = self.changed.clone();
        while changed.changed().await.is_ok() {
            tokio::time::sleep(LOOK).await;
            changed.mark_unchanged();
            self.read(Duration::ZERO);
        }
        std::future::pending().await
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Takes over what changed in the store, and says whether anything did. Only what changed is read: the table is long,
    /// and every write to any table brings us here.
    fn take(&mut self, store: &dyn Store) -> bool {
        if self.rows.is_empty() {
            return self.take_all(store.entries(TABLE));
        }
        let versions: HashMap<String, u64> = store.versions(TABLE).into_iter().collect();
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
            match store.row(TABLE, &key) {
                Some(entry) => {
                    let row = Row::read(&entry.value, entry.version);
                    let version = entry.version;
                    self.rows.insert(key, Known { version, row });
                }
                None => drop(self.rows.remove(&key)),
            }
        }
        if changed {
            self.recount();
        }
        changed
    }

    fn take_all(&mut self, entries: Vec<crate::Row>) -> bool {
        let known = |entry: crate::Row| {
            let (version, row) = (entry.version, Row::read(&entry.value, entry.version));
            (entry.key, Known { version, row })
        };
        self.rows = entries.into_iter().map(known).collect();
        self.recount();
        !self.rows.is_empty()
    }

    fn recount(&mut self) {
        self.count.clear();
        for key in self.rows.keys() {
            *self.count.entry(head(key)).or_default() += 1;
        }
    }
}

/// The beginning of a key, up to its last part.
fn head(key: &str) -> String {
    key[..key.rfind('/').map_or(0, |at| at + 1)].to_owned()
}
