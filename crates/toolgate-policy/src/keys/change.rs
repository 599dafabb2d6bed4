//! Changes to API keys: create, rotate, extend, revoke and delete. Every change that an operator makes is audited.

use super::{
    ApiKeyError, ApiKeyView, ApiKeys, ENDED_KEY_RETENTION, KeyEndReason, MAX_KEY_LIFETIME,
    NewApiKey,
    book::{KEY_USES_TABLE, KEYS_TABLE, number},
    digest, is_name, millis,
    row::{ReplacedApiKey, StoredApiKey},
};
use crate::{Approver, WriteOutcome, WritePrecondition};
use std::{
    sync::PoisonError,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_journal::{AuditEntry, AuditEvent};

impl ApiKeys {
    /// Creates a key, if fewer than `most` exist, including recently revoked ones. The key is valid once this resolves.
    ///
    /// # Errors
    /// The name is invalid or in use, or the key could not be stored or recorded. The key is not valid then.
    pub async fn create(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        who: &Approver,
        most: usize,
    ) -> Result<NewApiKey, ApiKeyError> {
        let now = self.now();
        if !is_name(name) {
            return Err(ApiKeyError::Name);
        }
        ahead(expires, now)?;
        self.forget(now).await?;
        let known = self.known();
        let expect = match known.keys.get(name) {
            Some(key) if key.view.over(now).is_none() => return Err(ApiKeyError::Taken),
            Some(_) => WritePrecondition::Version(known.version(name)),
            None if known.keys.len() >= most => return Err(ApiKeyError::Full(most)),
            None => WritePrecondition::Absent,
        };
        let key = NewApiKey::make(None)?;
        // The audit record comes first, so that no unrecorded key is ever valid.
        let record = entry("created", name, who);
        let record = match expires {
            Some(end) => record.with("expires", millis(end)),
            None => record,
        };
        self.recorder.append(record)?.await?;
        let digest = digest(key.reveal());
        let made = StoredApiKey {
            digest,
            holder: number(&digest),
            old: None,
            view: ApiKeyView {
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
            WriteOutcome::Done(_) => Ok(key),
            WriteOutcome::Conflict => Err(ApiKeyError::Taken),
        }
    }

    /// Replaces the key of a name. Permissions and grants of the name stay.
    ///
    /// The replaced key stays valid for `keep`; an older replaced key becomes invalid. Calls in flight with either
    /// complete. The new key inherits the old expiry unless `expires` is set. The old key never outlives the new one.
    ///
    /// # Errors
    /// No valid key has this name, or the key could not be stored or recorded. Nothing changes then.
    pub async fn rotate(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        keep: Duration,
        who: &Approver,
    ) -> Result<NewApiKey, ApiKeyError> {
        let now = self.now();
        let (before, expect) = self.valid(name, now)?;
        let end = expires.or(before.view.expires);
        ahead(expires, now)?;
        let ends = before.view.expires.into_iter().chain(end);
        let until = ends.fold(now + keep.min(MAX_KEY_LIFETIME), SystemTime::min);
        let until = Some(until).filter(|until| *until > now);
        let key = NewApiKey::make(until)?;
        let record = entry("rotated", name, who);
        let record = until
            .iter()
            .fold(record, |r, at| r.with("old_until", millis(*at)));
        let record = end
            .iter()
            .fold(record, |r, at| r.with("expires", millis(*at)));
        self.recorder.append(record)?.await?;
        let made = StoredApiKey {
            digest: digest(key.reveal()),
            holder: before.holder,
            old: Some(ReplacedApiKey {
                digest: before.digest,
                until: until.unwrap_or(UNIX_EPOCH),
            }),
            view: ApiKeyView {
                created: now,
                expires: end,
                by: who.to_string(),
                ..before.view
            },
        };
        match self.write(&made, expect).await? {
            WriteOutcome::Done(_) => Ok(key),
            WriteOutcome::Conflict => Err(ApiKeyError::Changed),
        }
    }

    /// Extends the expiry of a key.
    ///
    /// # Errors
    /// No valid key has this name, it already expires later, or the change could not be stored or recorded. Nothing
    /// changes then.
    pub async fn extend(
        &self,
        name: &str,
        end: SystemTime,
        who: &Approver,
    ) -> Result<(), ApiKeyError> {
        let now = self.now();
        let (mut key, expect) = self.valid(name, now)?;
        ahead(Some(end), now)?;
        if key.view.expires.is_none_or(|before| before > end) {
            return Err(ApiKeyError::Later(name.to_owned(), key.view.expires));
        }
        let record = entry("extended", name, who).with("expires", millis(end));
        self.recorder.append(record)?.await?;
        key.view.expires = Some(end);
        match self.write(&key, expect).await? {
            WriteOutcome::Done(_) => Ok(()),
            WriteOutcome::Conflict => Err(ApiKeyError::Changed),
        }
    }

    /// Revokes a key: ends what it authorized and rejects it from now on.
    ///
    /// # Errors
    /// No key has this name, or the revocation could not be stored or recorded.
    pub async fn revoke(&self, name: &str, who: &Approver) -> Result<(), ApiKeyError> {
        let known = self.known();
        let key = known.keys.get(name);
        let key = key.filter(|key| key.view.revoked.is_none());
        let mut key = key.ok_or(ApiKeyError::Unknown)?.clone();
        key.view.revoked = Some(self.now());
        // The revocation takes effect before it is audited.
        self.write(&key, WritePrecondition::Any).await?;
        self.recorder
            .append(entry("revoked", name, who))?
            .await
            .map_err(ApiKeyError::from)
    }

    /// Returns the valid key of a name, and the version that a replacement must expect.
    fn valid(
        &self,
        name: &str,
        now: SystemTime,
    ) -> Result<(StoredApiKey, WritePrecondition), ApiKeyError> {
        let known = self.known();
        let key = known.keys.get(name).ok_or(ApiKeyError::Unknown)?;
        match (key.view.over(now), key.view.expires) {
            (None, _) => Ok((key.clone(), WritePrecondition::Version(known.version(name)))),
            (Some(KeyEndReason::Expired), Some(end)) => {
                Err(ApiKeyError::Expired(name.to_owned(), end))
            }
            _ => Err(ApiKeyError::Unknown),
        }
    }

    async fn write(
        &self,
        key: &StoredApiKey,
        expect: WritePrecondition,
    ) -> Result<WriteOutcome, ApiKeyError> {
        let written = self
            .store
            .write(KEYS_TABLE, &key.view.name, Some(key.json()), expect);
        Ok(written.await?)
    }

    /// Deletes keys that were revoked or expired more than [`ENDED_KEY_RETENTION`] ago.
    async fn forget(&self, now: SystemTime) -> Result<(), ApiKeyError> {
        let known = self.known();
        for (name, key) in &known.keys {
            let end = key.view.revoked.or(key.view.expires);
            let long_ago = end.is_some_and(|end| {
                let since = now.duration_since(end);
                since.is_ok_and(|since| since > ENDED_KEY_RETENTION)
            });
            if long_ago {
                let expect = WritePrecondition::Version(known.version(name));
                self.store.write(KEYS_TABLE, name, None, expect).await?;
                self.store
                    .write(KEY_USES_TABLE, name, None, WritePrecondition::Any)
                    .await?;
                let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
                used.remove(name);
            }
        }
        Ok(())
    }
}

/// Checks that an expiry is in the future and at most 100 years ahead.
fn ahead(end: Option<SystemTime>, now: SystemTime) -> Result<(), ApiKeyError> {
    match end {
        Some(end) if end <= now => Err(ApiKeyError::Past),
        Some(end) if end > now + MAX_KEY_LIFETIME => Err(ApiKeyError::Far),
        _ => Ok(()),
    }
}

fn entry(state: &str, name: &str, who: &Approver) -> AuditEntry {
    let record = AuditEntry::new(AuditEvent::KEY)
        .with("state", state)
        .with("caller", super::caller(name).name())
        .with("by", who.by.as_str());
    match &who.name {
        Some(name) => record.with("who", &**name),
        None => record,
    }
}
