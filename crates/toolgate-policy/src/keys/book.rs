//! The keys of a store, as all processes that share it see them.

use super::{
    CALLER, Digest, KeyError, KeyPass, KeyRefused, KeyView, NewKey, Over, REMEMBERED, at, digest,
    hex, is_name, millis, same, unhex,
};
use crate::{Expect, Recorder, Row, Store, Who, Written};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use toolgate_core::Caller;
use toolgate_journal::{Entry, Event};

/// The table of the store.
const TABLE: &str = "keys";
/// The table of when each was used last.
const USES: &str = "key_uses";

/// The least time between two notes on the last use of a key.
const NOTE: Duration = Duration::from_secs(60);

/// The longest that is waited for the end of a key before it is looked at again: clocks are set.
const LOOK: Duration = Duration::from_secs(60);

/// The keys of callers, in all processes of a data directory.
pub struct Keys {
    recorder: Arc<Recorder>,
    store: Arc<dyn Store>,
    /// What was read, after which change of the store.
    read: Mutex<(Option<u64>, Arc<Known>)>,
    /// When each was used last here, and which of that is kept.
    used: Mutex<HashMap<String, Used>>,
}

/// The table, read.
#[derive(Default)]
struct Known {
    versions: Vec<(String, u64)>,
    keys: HashMap<String, Key>,
    /// Names by the first bytes of their digests; the whole digest is compared afterwards.
    names: HashMap<[u8; 8], Vec<String>>,
}

struct Used {
    last: SystemTime,
    kept: Option<SystemTime>,
}

struct Key {
    view: KeyView,
    digest: Digest,
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

    /// All keys by name, those that were revoked lately too.
    pub fn list(&self) -> Vec<KeyView> {
        let known = self.known();
        let uses = self.uses();
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
        let mut keys = names.filter_map(|name| known.keys.get(name));
        let key = keys.find(|key| same(&key.digest, &digest));
        let key = key.ok_or(KeyRefused::Unknown)?;
        let name = key.view.name.clone();
        match key.view.over(SystemTime::now()) {
            None => {
                self.note(&name);
                Ok(KeyPass { name, digest })
            }
            Some(over) => Err(KeyRefused::Over(name, over)),
        }
    }

    fn note(&self, name: &str) {
        let last = SystemTime::now();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.get_mut(name) {
            Some(used) => used.last = last,
            None => drop(used.insert(name.to_owned(), Used { last, kept: None })),
        }
    }

    /// When each was used last, here or in another process of the data directory.
    fn uses(&self) -> HashMap<String, SystemTime> {
        let row = |row: Row| Some((row.key.clone(), at(row.value.get("at")?.as_u64()?)?));
        let mut uses: HashMap<_, _> = self
            .store
            .entries(USES)
            .into_iter()
            .filter_map(row)
            .collect();
        let here = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, used) in here.iter() {
            let last = uses.entry(name.clone()).or_insert(used.last);
            *last = used.last.max(*last);
        }
        uses
    }

    /// Keeps when keys were used, each at most once a minute. It is no record: what fails is tried again with the next.
    pub async fn keep_uses(&self) {
        let due = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            let mut due = Vec::new();
            for (name, used) in used.iter_mut() {
                let since = used
                    .kept
                    .and_then(|kept| used.last.duration_since(kept).ok());
                if used.kept.is_none() || since.is_some_and(|since| since >= NOTE) {
                    used.kept = Some(used.last);
                    due.push((name.clone(), used.last));
                }
            }
            due
        };
        for (name, last) in due {
            let value = json!({"at": millis(last)});
            let _ = self
                .store
                .write(USES, &name, Some(value), Expect::Any)
                .await;
        }
    }

    /// Ends once the key opens nothing any more: it was revoked, replaced, or its time has passed.
    pub async fn ended(self: Arc<Self>, pass: KeyPass) {
        let mut changed = self.store.changed();
        loop {
            changed.mark_unchanged();
            let known = self.known();
            let key = known.keys.get(&pass.name);
            let Some(key) = key.filter(|key| same(&key.digest, &pass.digest)) else {
                return;
            };
            let now = SystemTime::now();
            if key.view.over(now).is_some() {
                return;
            }
            let left = key
                .view
                .expires
                .and_then(|end| end.duration_since(now).ok());
            let wait = left.map_or(Duration::MAX, |left| left.min(LOOK));
            tokio::select! {
                changed = changed.changed() => if changed.is_err() {
                    return;
                },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Why a caller that a key named may do nothing any more, in a sentence.
    pub fn gone(&self, caller: &Caller) -> Option<String> {
        let name = caller.name().strip_prefix(CALLER)?;
        let known = self.known();
        let over = known.keys.get(name)?.view.over(SystemTime::now())?;
        Some(match over {
            Over::Revoked => "the operator revoked the key of this caller".to_owned(),
            Over::Expired => "the key of this caller has expired".to_owned(),
        })
    }

    /// Makes a key, if there are fewer than `most`, those that were revoked lately among them. It opens as soon as this
    /// resolves.
    ///
    /// # Errors
    /// The name is none or taken, or it could not be kept or recorded; then it opens nothing.
    pub async fn create(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        who: &Who,
        most: usize,
    ) -> Result<NewKey, KeyError> {
        let now = SystemTime::now();
        if !is_name(name) {
            return Err(KeyError::Name);
        }
        if expires.is_some_and(|end| end <= now) {
            return Err(KeyError::Past);
        }
        self.forget(now).await?;
        let known = self.known();
        let expect = match known.keys.get(name) {
            Some(key) if key.view.over(now).is_none() => return Err(KeyError::Taken),
            Some(_) => Expect::Version(known.version(name)),
            None if known.keys.len() >= most => return Err(KeyError::Full(most)),
            None => Expect::Absent,
        };
        let key = NewKey::make()?;
        // A key that nobody can find in the record must not open anything, so the record comes first.
        let record = entry("created", name, who);
        let record = match expires {
            Some(end) => record.with("expires", millis(end)),
            None => record,
        };
        self.recorder.append(record)?.await?;
        let value = json!({"sha256": hex(&digest(key.reveal())), "created": millis(now), "expires": expires.map(millis),
            "revoked": null, "by": who.to_string()});
        match self.store.write(TABLE, name, Some(value), expect).await? {
            Written::Done(_) => Ok(key),
            Written::Conflict => Err(KeyError::Taken),
        }
    }

    /// Withdraws a key: what it opened ends, and it opens nothing more.
    ///
    /// # Errors
    /// There is no such key, or it could not be kept or recorded.
    pub async fn revoke(&self, name: &str, who: &Who) -> Result<(), KeyError> {
        let now = SystemTime::now();
        let known = self.known();
        let key = known.keys.get(name);
        let key = key.filter(|key| key.view.revoked.is_none());
        let key = key.ok_or(KeyError::Unknown)?;
        let value = json!({"sha256": hex(&key.digest), "created": millis(key.view.created),
            "expires": key.view.expires.map(millis), "revoked": millis(now), "by": key.view.by});
        // First of all it holds; then it is written down.
        self.store
            .write(TABLE, name, Some(value), Expect::Any)
            .await?;
        self.recorder
            .append(entry("revoked", name, who))?
            .await
            .map_err(KeyError::from)
    }

    /// Forgets what was revoked or has expired long ago.
    async fn forget(&self, now: SystemTime) -> Result<(), KeyError> {
        let known = self.known();
        for (name, key) in &known.keys {
            let end = key.view.revoked.or(key.view.expires);
            let long_ago = end.is_some_and(|end| {
                let since = now.duration_since(end);
                since.is_ok_and(|since| since > REMEMBERED)
            });
            if long_ago {
                let expect = Expect::Version(known.version(name));
                self.store.write(TABLE, name, None, expect).await?;
                self.store.write(USES, name, None, Expect::Any).await?;
                let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
                used.remove(name);
            }
        }
        Ok(())
    }

    fn known(&self) -> Arc<Known> {
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
            let names = known.names.entry(first(&key.digest)).or_default();
            names.push(row.key.clone());
            known.keys.insert(row.key.clone(), key);
        }
        known
    }

    fn version(&self, name: &str) -> u64 {
        let found = self.versions.iter().find(|(key, _)| key == name);
        found.map_or(0, |(_, version)| *version)
    }
}

impl Key {
    fn read(row: &Row) -> Option<Key> {
        let number = |key: &str| match row.value.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_u64().and_then(at).map(Some),
        };
        let text = |key: &str| row.value.get(key).and_then(Value::as_str);
        Some(Key {
            digest: unhex(text("sha256")?)?,
            view: KeyView {
                name: row.key.clone(),
                created: number("created")??,
                expires: number("expires")?,
                revoked: number("revoked")?,
                by: text("by").unwrap_or_default().to_owned(),
                used: None,
            },
        })
    }
}

fn first(digest: &Digest) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    first
}

fn entry(state: &str, name: &str, who: &Who) -> Entry {
    let record = Entry::new(Event::KEY)
        .with("state", state)
        .with("caller", super::caller(name).name())
        .with("by", who.by.as_str());
    match &who.name {
        Some(name) => record.with("who", &**name),
        None => record,
    }
}
