//! Changes to API keys: create, rotate, extend, revoke and delete. Every change that an operator makes is audited.

use super::{
    ApiKeyError, ApiKeyView, ApiKeys, ENDED_KEY_RETENTION, KeyEndReason, MAX_GROUP_BYTES,
    MAX_KEY_GROUPS, MAX_KEY_LIFETIME, NewApiKey,
    api_keys::{KEY_USES_TABLE, KEYS_TABLE, generation_of},
    digest, is_valid_name,
    row::{ReplacedApiKey, StoredApiKey, group_attributes},
    to_unix_millis,
};
use crate::{Approver, WriteOutcome, WritePrecondition};
use std::{
    sync::PoisonError,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_journal::{AuditEntry, AuditEvent};

impl ApiKeys {
    /// Creates an API key for a caller, if fewer than `max_keys` exist, including recently revoked ones. The key is
    /// valid once this resolves.
    ///
    /// # Errors
    /// The name is invalid or in use, or the key could not be stored or recorded. The key is not valid then.
    pub async fn create(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        creator: &Approver,
        max_keys: usize,
    ) -> Result<NewApiKey, ApiKeyError> {
        self.create_in_groups(name, Vec::new(), expires, creator, max_keys)
            .await
    }

    /// Creates an API key for a caller with groups, which rules can name. Otherwise like [`ApiKeys::create`].
    ///
    /// # Errors
    /// As for [`ApiKeys::create`], or a group has an invalid name.
    pub async fn create_in_groups(
        &self,
        name: &str,
        groups: Vec<String>,
        expires: Option<SystemTime>,
        creator: &Approver,
        max_keys: usize,
    ) -> Result<NewApiKey, ApiKeyError> {
        let now = self.now();
        let groups = check_groups(groups)?;
        if !is_valid_name(name) {
            return Err(ApiKeyError::InvalidName);
        }
        check_expiry(expires, now)?;
        self.delete_old(now).await?;
        let known = self.current_table();
        let expect = match known.keys.get(name) {
            Some(key) if key.view.end_reason(now).is_none() => return Err(ApiKeyError::NameInUse),
            Some(_) => WritePrecondition::Version(known.version(name)),
            None if known.keys.len() >= max_keys => {
                return Err(ApiKeyError::LimitReached(max_keys));
            }
            None => WritePrecondition::Absent,
        };
        let key = NewApiKey::generate(None)?;
        // The audit record comes first, so that no unrecorded key is ever valid.
        let record = entry("created", name, creator);
        let record = match expires {
            Some(end) => record.with("expires", to_unix_millis(end)),
            None => record,
        };
        let record = match groups.is_empty() {
            true => record,
            false => record.with("groups", groups.clone()),
        };
        self.recorder.append(record)?.await?;
        let digest = digest(key.reveal());
        let made = StoredApiKey {
            digest,
            generation: generation_of(&digest),
            old: None,
            attributes: group_attributes(groups.clone()),
            view: ApiKeyView {
                name: name.to_owned(),
                groups,
                created_at: now,
                expires_at: expires,
                revoked_at: None,
                created_by: creator.to_string(),
                last_used: None,
                old_valid_until: None,
            },
        };
        match self.write(&made, expect).await? {
            WriteOutcome::Done(_) => Ok(key),
            WriteOutcome::Conflict => Err(ApiKeyError::NameInUse),
        }
    }

    /// Replaces the API key of a name with a new one; the old key stays valid for a grace period. Permissions and
    /// grants of the name stay.
    ///
    /// The replaced key stays valid for `grace_period`; an older replaced key becomes invalid. Calls in flight with
    /// either complete. The new key inherits the old expiry unless `expires` is set. The old key never outlives the new
    /// one.
    ///
    /// # Errors
    /// No valid key has this name, or the key could not be stored or recorded. Nothing changes then.
    pub async fn rotate(
        &self,
        name: &str,
        expires: Option<SystemTime>,
        grace_period: Duration,
        operator: &Approver,
    ) -> Result<NewApiKey, ApiKeyError> {
        let now = self.now();
        let (before, expect) = self.valid(name, now)?;
        let end = expires.or(before.view.expires_at);
        check_expiry(expires, now)?;
        let ends = before.view.expires_at.into_iter().chain(end);
        let until = ends.fold(now + grace_period.min(MAX_KEY_LIFETIME), SystemTime::min);
        let until = Some(until).filter(|until| *until > now);
        let key = NewApiKey::generate(until)?;
        let record = entry("rotated", name, operator);
        let record = until
            .iter()
            .fold(record, |r, at| r.with("old_until", to_unix_millis(*at)));
        let record = end
            .iter()
            .fold(record, |r, at| r.with("expires", to_unix_millis(*at)));
        self.recorder.append(record)?.await?;
        let made = StoredApiKey {
            digest: digest(key.reveal()),
            generation: before.generation,
            attributes: before.attributes,
            old: Some(ReplacedApiKey {
                digest: before.digest,
                valid_until: until.unwrap_or(UNIX_EPOCH),
            }),
            view: ApiKeyView {
                created_at: now,
                expires_at: end,
                created_by: operator.to_string(),
                ..before.view
            },
        };
        match self.write(&made, expect).await? {
            WriteOutcome::Done(_) => Ok(key),
            WriteOutcome::Conflict => Err(ApiKeyError::ChangedConcurrently),
        }
    }

    /// Extends the expiry of an API key.
    ///
    /// # Errors
    /// No valid key has this name, it already expires later, or the change could not be stored or recorded. Nothing
    /// changes then.
    pub async fn extend(
        &self,
        name: &str,
        expires: SystemTime,
        operator: &Approver,
    ) -> Result<(), ApiKeyError> {
        let now = self.now();
        let (mut key, expect) = self.valid(name, now)?;
        check_expiry(Some(expires), now)?;
        if key.view.expires_at.is_none_or(|before| before > expires) {
            return Err(ApiKeyError::ExpiresLater(
                name.to_owned(),
                key.view.expires_at,
            ));
        }
        let record = entry("extended", name, operator).with("expires", to_unix_millis(expires));
        self.recorder.append(record)?.await?;
        key.view.expires_at = Some(expires);
        match self.write(&key, expect).await? {
            WriteOutcome::Done(_) => Ok(()),
            WriteOutcome::Conflict => Err(ApiKeyError::ChangedConcurrently),
        }
    }

    /// Revokes an API key: ends what it authorized and rejects it from now on.
    ///
    /// # Errors
    /// No key has this name, or the revocation could not be stored or recorded.
    pub async fn revoke(&self, name: &str, operator: &Approver) -> Result<(), ApiKeyError> {
        let known = self.current_table();
        let key = known.keys.get(name);
        let key = key.filter(|key| key.view.revoked_at.is_none());
        let mut key = key.ok_or(ApiKeyError::Unknown)?.clone();
        key.view.revoked_at = Some(self.now());
        // The revocation takes effect before it is audited.
        self.write(&key, WritePrecondition::Any).await?;
        self.recorder
            .append(entry("revoked", name, operator))?
            .await
            .map_err(ApiKeyError::from)
    }

    /// Returns the valid key of a name, and the version that a replacement must expect.
    fn valid(
        &self,
        name: &str,
        now: SystemTime,
    ) -> Result<(StoredApiKey, WritePrecondition), ApiKeyError> {
        let known = self.current_table();
        let key = known.keys.get(name).ok_or(ApiKeyError::Unknown)?;
        match (key.view.end_reason(now), key.view.expires_at) {
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
    async fn delete_old(&self, now: SystemTime) -> Result<(), ApiKeyError> {
        let known = self.current_table();
        for (name, key) in &known.keys {
            let end = key.view.revoked_at.or(key.view.expires_at);
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
                let mut used = self
                    .last_uses
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                used.remove(name);
            }
        }
        Ok(())
    }
}

/// Checks and sorts the groups of a new key.
fn check_groups(mut groups: Vec<String>) -> Result<Vec<String>, ApiKeyError> {
    groups.sort();
    groups.dedup();
    let is_valid = |group: &String| {
        (1..=MAX_GROUP_BYTES).contains(&group.len()) && !group.chars().any(char::is_control)
    };
    let invalid = groups.iter().find(|group| !is_valid(group));
    match invalid.or_else(|| groups.get(MAX_KEY_GROUPS)) {
        Some(group) => Err(ApiKeyError::InvalidGroup(group.clone())),
        None => Ok(groups),
    }
}

/// Checks that an expiry is in the future and at most 100 years ahead.
fn check_expiry(end: Option<SystemTime>, now: SystemTime) -> Result<(), ApiKeyError> {
    match end {
        Some(end) if end <= now => Err(ApiKeyError::ExpiryInPast),
        Some(end) if end > now + MAX_KEY_LIFETIME => Err(ApiKeyError::ExpiryTooFar),
        _ => Ok(()),
    }
}

fn entry(state: &str, name: &str, who: &Approver) -> AuditEntry {
    let record = AuditEntry::new(AuditEvent::KEY)
        .with("state", state)
        .with("caller", super::caller(name).name());
    who.add_to(record)
}
