//! How keys come and go: made, made anew, extended, revoked and forgotten. Each of that is recorded.

use super::{
    KeyError, KeyView, Keys, LONGEST, NewKey, Over, REMEMBERED,
    book::{TABLE, USES, number},
    digest, is_name, millis,
    row::{Key, Old},
};
use crate::{Expect, Who, Written};
use std::{
    sync::PoisonError,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_journal::{Entry, Event};

impl Keys {
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
        let now = self.now();
        if !is_name(name) {
            return Err(KeyError::Name);
        }
        ahead(expires, now)?;
        self.forget(now).await?;
        let known = self.known();
        let expect = match known.keys.get(name) {
            Some(key) if key.view.over(now).is_none() => return Err(KeyError::Taken),
            Some(_) => Expect::Version(known.version(name)),
            None if known.keys.len() >= most => return Err(KeyError::Full(most)),
            None => Expect::Absent,
        };
        let key = NewKey::make(None)?;
        // A key that nobody can find in the record must not open anything, so the record comes first.
        let record = entry("created", name, who);
        let record = match expires {
            Some(end) => record.with("expires", millis(end)),
            None => record,
        };
        self.recorder.append(record)?.await?;
        let digest = digest(key.reveal());
        let made = Key {
            digest,
            holder: number(&digest),
            old: None,
            view: KeyView {
                name: name.to_owned(),
                created: now,
                expires,
                revoked: None,
                by: who.to_string(),
                used: None,
                old: None,
            },
        };
        match self.write(&made, expect).await? {
            Written::Done(_) => Ok(key),
            Written::Conflict => Err(KeyError::Taken),
        }
    }

    /// Makes another key for a name that has one. What was allowed and granted for the name stays. The key that it had opens
    /// for `keep` yet, and one that was before that opens no more; what was begun with either goes on. The new one ends when the
    /// other would have, unless `expires` says when, and the old one never after it.
    ///
    /// # Errors
    /// There is no key of that name which opens, or it could not be kept or recorded; then all stays as it was.
    pub async fn rotate(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        keep: Duration,
        who: &Who,
    ) -> Result<NewKey, KeyError> {
        let now = self.now();
        let (before, expect) = self.valid(name, now)?;
        let end = expires.or(before.view.expires);
        ahead(expires, now)?;
        let ends = before.view.expires.into_iter().chain(end);
        let until = ends.fold(now + keep.min(LONGEST), SystemTime::min);
        let until = Some(until).filter(|until| *until > now);
        let key = NewKey::make(until)?;
        let record = entry("rotated", name, who);
        let record = until
            .iter()
            .fold(record, |r, at| r.with("old_until", millis(*at)));
        let record = end
            .iter()
            .fold(record, |r, at| r.with("expires", millis(*at)));
        self.recorder.append(record)?.await?;
        let made = Key {
            digest: digest(key.reveal()),
            holder: before.holder,
            old: Some(Old {
                digest: before.digest,
                until: until.unwrap_or(UNIX_EPOCH),
            }),
            view: KeyView {
                created: now,
                expires: end,
                by: who.to_string(),
                ..before.view
            },
        };
        match self.write(&made, expect).await? {
            Written::Done(_) => Ok(key),
            Written::Conflict => Err(KeyError::Changed),
        }
    }

    /// Puts off when a key ends by itself.
    ///
    /// # Errors
    /// There is no key of that name which opens, it ends later already, or it could not be kept or recorded; then all stays as it was.
    pub async fn extend(&self, name: &str, end: SystemTime, who: &Who) -> Result<(), KeyError> {
        let now = self.now();
        let (mut key, expect) = self.valid(name, now)?;
        ahead(Some(end), now)?;
        if key.view.expires.is_none_or(|before| before > end) {
            return Err(KeyError::Later(name.to_owned(), key.view.expires));
        }
        let record = entry("extended", name, who).with("expires", millis(end));
        self.recorder.append(record)?.await?;
        key.view.expires = Some(end);
        match self.write(&key, expect).await? {
            Written::Done(_) => Ok(()),
            Written::Conflict => Err(KeyError::Changed),
        }
    }

    /// Withdraws a key: what it opened ends, and it opens nothing more.
    ///
    /// # Errors
    /// There is no such key, or it could not be kept or recorded.
    pub async fn revoke(&self, name: &str, who: &Who) -> Result<(), KeyError> {
        let known = self.known();
        let key = known.keys.get(name);
        let key = key.filter(|key| key.view.revoked.is_none());
        let mut key = key.ok_or(KeyError::Unknown)?.clone();
        key.view.revoked = Some(self.now());
        // First of all it holds; then it is written down.
        self.write(&key, Expect::Any).await?;
        self.recorder
            .append(entry("revoked", name, who))?
            .await
            .map_err(KeyError::from)
    }

    /// The key of a name, where it opens, and what it has to be yet when another takes its place.
    fn valid(&self, name: &str, now: SystemTime) -> Result<(Key, Expect), KeyError> {
        let known = self.known();
        let key = known.keys.get(name).ok_or(KeyError::Unknown)?;
        match (key.view.over(now), key.view.expires) {
            (None, _) => Ok((key.clone(), Expect::Version(known.version(name)))),
            (Some(Over::Expired), Some(end)) => Err(KeyError::Expired(name.to_owned(), end)),
            _ => Err(KeyError::Unknown),
        }
    }

    async fn write(&self, key: &Key, expect: Expect) -> Result<Written, KeyError> {
        let written = self
            .store
            .write(TABLE, &key.view.name, Some(key.json()), expect);
        Ok(written.await?)
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
}

/// A key ends after now, and within 100 years.
fn ahead(end: Option<SystemTime>, now: SystemTime) -> Result<(), KeyError> {
    match end {
        Some(end) if end <= now => Err(KeyError::Past),
        Some(end) if end > now + LONGEST => Err(KeyError::Far),
        _ => Ok(()),
    }
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
