//! The keys of a store, as all processes that share it see them.

use super::{CALLER, Digest, KeyPass, KeyRefused, KeyView, Over, at, digest, millis, row::Key};
use crate::{Expect, Recorder, Row, Store};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use toolgate_core::Caller;

/// The table of the store.
pub(super) const TABLE: &str = "keys";
/// The table of when each was used last.
pub(super) const USES: &str = "key_uses";

/// The least time between two notes on the last use of a key.
const NOTE: Duration = Duration::from_secs(60);

/// The longest that is waited for the end of a key before it is looked at again: clocks are set.
const LOOK: Duration = Duration::from_secs(60);

/// The keys of callers, in all processes of a data directory.
pub struct Keys {
    pub(super) recorder: Arc<Recorder>,
    pub(super) store: Arc<dyn Store>,
    /// What was read, after which change of the store.
    read: Mutex<(Option<u64>, Arc<Known>)>,
    /// When each was used last here, and which of that is kept.
    pub(super) used: Mutex<HashMap<String, Used>>,
}

/// The table, read.
#[derive(Default)]
pub(super) struct Known {
    versions: Vec<(String, u64)>,
    pub(super) keys: HashMap<String, Key>,
    /// Names by the first bytes of their digests; the whole digest is compared afterwards.
    names: HashMap<[u8; 8], Vec<String>>,
}

pub(super) struct Used {
    holder: u64,
    last: SystemTime,
    kept: Option<SystemTime>,
}

impl Keys {
    /// With what the store has.
    pub fn new(recorder: Arc<Recorder>, store: Arc<dyn Store>) -> Keys {
        Keys {
            recorder,
            store,
            read: Mutex::default(),
            used: Mutex::default(),
        }
    }

    /// Returns the time by which keys expire: it never goes back.
    pub fn now(&self) -> SystemTime {
        self.store.clock().now()
    }

    /// All keys by name, those that were revoked lately too.
    pub fn list(&self) -> Vec<KeyView> {
        let known = self.known();
        let uses = self.uses(&known);
        let view = |key: &Key| KeyView {
            used: uses.get(&key.view.name).copied(),
            ..key.view.clone()
        };
        let mut views: Vec<KeyView> = known.keys.values().map(view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// Whom a key names.
    ///
    /// # Errors
    /// It opens nothing, or nothing any more.
    pub fn open(&self, shown: &str) -> Result<KeyPass, KeyRefused> {
        let digest = digest(shown);
        let known = self.known();
        let names = known.names.get(&first(&digest)).into_iter().flatten();
        let keys = names.filter_map(|name| known.keys.get(name));
        let mut keys = keys.filter_map(|key| Some((key, key.end(&digest)?)));
        let (key, end) = keys.next().ok_or(KeyRefused::Unknown)?;
        let (name, now) = (key.view.name.clone(), self.now());
        let over = key.view.over(now);
        // The end of the name's own key was looked at, so this is that of the one before it.
        match over.or(end.is_some_and(|end| end <= now).then_some(Over::Replaced)) {
            None => {
                self.note(&name, key.holder);
                let holder = key.holder;
                Ok(KeyPass {
                    name,
                    digest,
                    holder,
                })
            }
            Some(over) => Err(KeyRefused::Over(name, over)),
        }
    }

    /// Who has a name now, if its key opens: the same after another key for the same holder, and another for who has the
    /// name next.
    pub fn holder(&self, name: &str) -> Option<u64> {
        let known = self.known();
        let key = known.keys.get(name)?;
        let opens = key.view.over(self.now()).is_none();
        opens.then_some(key.holder)
    }

    fn note(&self, name: &str, holder: u64) {
        let last = self.now();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.get_mut(name) {
            Some(used) if used.holder == holder => used.last = last,
            _ => {
                let kept = None;
                used.insert(name.to_owned(), Used { holder, last, kept });
            }
        }
    }

    /// When each was used last, here or in another process of the data directory. What one of the same name was used for
    /// before it does not count.
    fn uses(&self, known: &Known) -> HashMap<String, SystemTime> {
        let row = |row: Row| {
            let key = known.keys.get(&row.key)?;
            let last = at(row.value.get("at")?.as_u64()?)?;
            let own = match row.value.get("holder") {
                Some(holder) => holder.as_u64() == Some(key.holder),
                // As older versions kept it.
                None => last >= key.view.created,
            };
            own.then_some((row.key, last))
        };
        let rows = self.store.entries(USES).into_iter();
        let mut uses: HashMap<_, _> = rows.filter_map(row).collect();
        let here = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, used) in here.iter() {
            if known
                .keys
                .get(name)
                .is_some_and(|k| k.holder == used.holder)
            {
                let last = uses.entry(name.clone()).or_insert(used.last);
                *last = used.last.max(*last);
            }
        }
        uses
    }

    /// Keeps when keys were used, each at most once a minute. It is no record: what fails is tried again with the next.
    pub async fn keep_uses(&self) {
        let due = {
            let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            let mut due = Vec::new();
            for (name, used) in used.iter() {
                let since = used
                    .kept
                    .and_then(|kept| used.last.duration_since(kept).ok());
                if used.kept.is_none() || since.is_some_and(|since| since >= NOTE) {
                    due.push((name.clone(), used.last, used.holder));
                }
            }
            due
        };
        for (name, last, holder) in due {
            let value = json!({"at": millis(last), "holder": holder});
            let written = self.store.write(USES, &name, Some(value), Expect::Any);
            if written.await.is_err() {
                continue;
            }
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(used) = used.get_mut(&name).filter(|used| used.holder == holder) {
                used.kept = Some(last);
            }
        }
    }

    /// Ends once the key opens nothing any more: it was revoked, another one took its place, or its time has passed.
    pub async fn ended(self: Arc<Self>, pass: KeyPass) {
        let left = |key: &Key| {
            let (end, now) = (key.end(&pass.digest)?, self.now());
            if key.view.over(now).is_some() {
                return None;
            }
            match end {
                None => Some(Duration::MAX),
                Some(end) => end.duration_since(now).ok().filter(|left| !left.is_zero()),
            }
        };
        self.until(&pass.name, left).await;
    }

    /// Ends once the holder of the key was cut off: it was revoked, or its name is another's. Neither time nor another key
    /// for the same holder ends what was begun.
    pub async fn withdrawn(self: Arc<Self>, pass: KeyPass) {
        let stays = |key: &Key| key.holder == pass.holder && key.view.revoked.is_none();
        let left = |key: &Key| stays(key).then_some(Duration::MAX);
        self.until(&pass.name, left).await;
    }

    /// Ends once nothing is left of the key that has a name.
    async fn until(&self, name: &str, left: impl Fn(&Key) -> Option<Duration>) {
        let mut changed = self.store.changed();
        loop {
            changed.mark_unchanged();
            let Some(left) = self.known().keys.get(name).and_then(&left) else {
                return;
            };
            let wait = match left {
                Duration::MAX => left,
                left => left.min(LOOK),
            };
            tokio::select! {
                changed = changed.changed() => if changed.is_err() {
                    return;
                },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Why nothing is done any more for a caller that a key named, in a sentence: the key was revoked. One that has expired
    /// opens nothing new, and what it began may end.
    pub fn gone(&self, caller: &Caller) -> Option<String> {
        let name = caller.name().strip_prefix(CALLER)?;
        let known = self.known();
        let key = known.keys.get(name);
        // A key that was revoked may have a successor of its name before this process has looked.
        if caller.holder().is_some() && caller.holder() != key.map(|key| key.holder) {
            return Some(
                "the key of this caller is gone; one that has its name now is another's".to_owned(),
            );
        }
        let revoked = key?.view.over(self.now())? == Over::Revoked;
        revoked.then(|| "the operator revoked the key of this caller".to_owned())
    }

    pub(super) fn known(&self) -> Arc<Known> {
        let change = *self.store.changed().borrow();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != Some(change) {
            // Most changes are of other tables.
            if read.1.versions != self.store.versions(TABLE) {
                read.1 = Arc::new(Known::read(&self.store.entries(TABLE)));
            }
            read.0 = Some(change);
        }
        read.1.clone()
    }
}

impl Known {
    fn read(rows: &[Row]) -> Known {
        let mut known = Known::default();
        for row in rows {
            known.versions.push((row.key.clone(), row.version));
            // What cannot be read opens nothing.
            let Some(key) = Key::read(row) else { continue };
            let old = key.old.as_ref().map(|old| &old.digest);
            for digest in std::iter::once(&key.digest).chain(old) {
                let names = known.names.entry(first(digest)).or_default();
                names.push(row.key.clone());
            }
            known.keys.insert(row.key.clone(), key);
        }
        known
    }

    pub(super) fn version(&self, name: &str) -> u64 {
        let found = self.versions.iter().find(|(key, _)| key == name);
        found.map_or(0, |(_, version)| *version)
    }
}

pub(super) fn first(digest: &Digest) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    first
}

/// Names the holder of a name by the first key that he had.
pub(super) fn number(digest: &Digest) -> u64 {
    u64::from_be_bytes(first(digest))
}
