//! API keys of a data directory, shared by all processes that use its store.

use super::{
    ApiKeyDigest, ApiKeyRejection, ApiKeyView, CALLER_PREFIX, KeyEndReason, VerifiedApiKey, digest,
    from_unix_millis, row::StoredApiKey, to_unix_millis,
};
use crate::{AuditRecorder, StateRow, StateStore, WritePrecondition};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use toolgate_core::{Caller, CallerAttributes};

/// Table of the store.
pub(super) const KEYS_TABLE: &str = "keys";
/// Table of the last uses of keys.
pub(super) const KEY_USES_TABLE: &str = "key_uses";

/// Minimum interval between two writes of the last use of a key.
const LAST_USE_WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum interval between two checks of a key's expiry: the clock may be set.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Registry of the callers' API keys, shared by all processes of a data directory.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_policy::{ApprovalChannel, Approver, AuditRecorder, MemoryStateStore};
/// use toolgate_policy::keys::{
///     ApiKeyError, ApiKeyRejection, ApiKeyView, ApiKeys, KeyEndReason, NewApiKey, VerifiedApiKey,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ApiKeyError> {
/// let recorder = Arc::new(AuditRecorder::log());
/// let keys = ApiKeys::new(recorder, Arc::new(MemoryStateStore::new()));
/// let operator = Approver::named(ApprovalChannel::Terminal, "ann");
///
/// let key: NewApiKey = keys.create("laptop", None, &operator, 100).await?;
/// println!("{}", key.reveal()); // only now: the store has the digest
/// let again = keys.create("laptop", None, &operator, 100).await;
/// assert!(matches!(again, Err(ApiKeyError::NameInUse)));
///
/// let verified: Result<VerifiedApiKey, ApiKeyRejection> = keys.verify(key.reveal());
/// assert!(verified.is_ok_and(|verified| verified.caller().name() == "key:laptop"));
///
/// keys.revoke("laptop", &operator).await?;
/// let views: Vec<ApiKeyView> = keys.list();
/// assert_eq!(views[0].end_reason(keys.now()), Some(KeyEndReason::Revoked));
/// let rejection = keys.verify(key.reveal()).err();
/// assert_eq!(rejection, Some(ApiKeyRejection::Ended("laptop".to_owned(), KeyEndReason::Revoked)));
/// # Ok(())
/// # }
/// ```
pub struct ApiKeys {
    pub(super) recorder: Arc<AuditRecorder>,
    pub(super) store: Arc<dyn StateStore>,
    /// Parsed table, and the change counter of the store when it was read.
    table: Mutex<(Option<u64>, Arc<ApiKeyTable>)>,
    /// Last use of each key in this process, and which of these the store has.
    pub(super) last_uses: Mutex<HashMap<String, ApiKeyUse>>,
}

/// The parsed table.
#[derive(Default)]
pub(super) struct ApiKeyTable {
    versions: Vec<(String, u64)>,
    pub(super) keys: HashMap<String, StoredApiKey>,
    /// Names by the first 8 bytes of their digests; the whole digest is compared afterwards.
    names: HashMap<[u8; 8], Vec<String>>,
}

pub(super) struct ApiKeyUse {
    generation: u64,
    last_used: SystemTime,
    stored: Option<SystemTime>,
}

impl ApiKeys {
    /// Creates a registry of the API keys in this store, which records changes with this recorder.
    pub fn new(recorder: Arc<AuditRecorder>, store: Arc<dyn StateStore>) -> ApiKeys {
        ApiKeys {
            recorder,
            store,
            table: Mutex::default(),
            last_uses: Mutex::default(),
        }
    }

    /// Returns the time by which API keys expire. It never goes backwards.
    pub fn now(&self) -> SystemTime {
        self.store.clock().now()
    }

    /// Returns all API keys by name, including recently revoked ones.
    pub fn list(&self) -> Vec<ApiKeyView> {
        let known = self.current_table();
        let uses = self.last_uses(&known);
        let view = |key: &StoredApiKey| ApiKeyView {
            last_used: uses.get(&key.view.name).copied(),
            ..key.view.clone()
        };
        let mut views: Vec<ApiKeyView> = known.keys.values().map(view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// Verifies a presented API key and returns proof of the caller that it identifies.
    ///
    /// # Errors
    /// The key is unknown or no longer valid, or the stored keys are too old to tell.
    pub fn verify(&self, key: &str) -> Result<VerifiedApiKey, ApiKeyRejection> {
        if let Some(reason) = self.store.stale_reason() {
            return Err(ApiKeyRejection::Unavailable(reason.to_string()));
        }
        let digest = digest(key);
        let known = self.current_table();
        let names = known
            .names
            .get(&digest_prefix(&digest))
            .into_iter()
            .flatten();
        let keys = names.filter_map(|name| known.keys.get(name));
        let mut keys = keys.filter_map(|key| Some((key, key.expiry_of(&digest)?)));
        let (key, end) = keys.next().ok_or(ApiKeyRejection::Unknown)?;
        let (name, now) = (key.view.name.clone(), self.now());
        let over = key.view.end_reason(now);
        // The view holds the expiry of the current key and was checked above, so this is the end of the replaced key.
        match over.or(end
            .is_some_and(|end| end <= now)
            .then_some(KeyEndReason::Replaced))
        {
            None => {
                self.note_use(&name, key.generation);
                let holder = key.generation;
                Ok(VerifiedApiKey {
                    name,
                    digest,
                    generation: holder,
                    attributes: key.attributes.clone(),
                })
            }
            Some(over) => Err(ApiKeyRejection::Ended(name, over)),
        }
    }

    /// Returns the key generation of a name with a valid API key: a number that tells its successive keys apart.
    /// Rotation keeps the generation; a new key for a freed name gets another one.
    pub fn generation(&self, name: &str) -> Option<u64> {
        let known = self.current_table();
        let key = known.keys.get(name)?;
        let opens = key.view.end_reason(self.now()).is_none();
        opens.then_some(key.generation)
    }

    /// Returns the groups of the caller with the API key of this name; empty if no key has the name.
    #[doc(hidden)]
    pub fn attributes(&self, name: &str) -> Arc<CallerAttributes> {
        let known = self.current_table();
        let key = known.keys.get(name);
        key.map_or_else(Arc::default, |key| key.attributes.clone())
    }

    fn note_use(&self, name: &str, holder: u64) {
        let last = self.now();
        let mut used = self
            .last_uses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match used.get_mut(name) {
            Some(used) if used.generation == holder => used.last_used = last,
            _ => {
                let kept = None;
                used.insert(
                    name.to_owned(),
                    ApiKeyUse {
                        generation: holder,
                        last_used: last,
                        stored: kept,
                    },
                );
            }
        }
    }

    /// Returns the last use of each key, in any process of the data directory. Uses of an earlier generation do not
    /// count.
    fn last_uses(&self, known: &ApiKeyTable) -> HashMap<String, SystemTime> {
        let row = |row: StateRow| {
            let key = known.keys.get(&row.key)?;
            let last = from_unix_millis(row.value.get("at")?.as_u64()?)?;
            let own = match row.value.get("holder") {
                Some(holder) => holder.as_u64() == Some(key.generation),
                // Format of older versions.
                None => last >= key.view.created_at,
            };
            own.then_some((row.key, last))
        };
        let rows = self.store.entries(KEY_USES_TABLE).into_iter();
        let mut uses: HashMap<_, _> = rows.filter_map(row).collect();
        let here = self
            .last_uses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (name, used) in here.iter() {
            if known
                .keys
                .get(name)
                .is_some_and(|k| k.generation == used.generation)
            {
                let last = uses.entry(name.clone()).or_insert(used.last_used);
                *last = used.last_used.max(*last);
            }
        }
        uses
    }

    /// Stores the time of last use of each API key, at most once a minute per key. Uses are not audited; a failed write
    /// is retried after the next use.
    #[doc(hidden)]
    pub async fn store_uses(&self) {
        let due = {
            let used = self
                .last_uses
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let mut due = Vec::new();
            for (name, used) in used.iter() {
                let since = used
                    .stored
                    .and_then(|kept| used.last_used.duration_since(kept).ok());
                if used.stored.is_none()
                    || since.is_some_and(|since| since >= LAST_USE_WRITE_INTERVAL)
                {
                    due.push((name.clone(), used.last_used, used.generation));
                }
            }
            due
        };
        for (name, last, holder) in due {
            let value = json!({"at": to_unix_millis(last), "holder": holder});
            let written =
                self.store
                    .write(KEY_USES_TABLE, &name, Some(value), WritePrecondition::Any);
            if written.await.is_err() {
                continue;
            }
            let mut used = self
                .last_uses
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(used) = used.get_mut(&name).filter(|used| used.generation == holder) {
                used.stored = Some(last);
            }
        }
    }

    /// Completes once the API key is no longer valid: revoked, replaced or expired.
    #[doc(hidden)]
    pub async fn invalidated(self: Arc<Self>, verified: VerifiedApiKey) {
        let left = |key: &StoredApiKey| {
            let (end, now) = (key.expiry_of(&verified.digest)?, self.now());
            if key.view.end_reason(now).is_some() {
                return None;
            }
            match end {
                None => Some(Duration::MAX),
                Some(end) => end.duration_since(now).ok().filter(|left| !left.is_zero()),
            }
        };
        self.wait_until_ended(&verified.name, left).await;
    }

    /// Completes once the API key is revoked or its name belongs to another key generation. Neither expiry nor rotation
    /// ends calls in flight.
    pub async fn revoked(self: Arc<Self>, verified: VerifiedApiKey) {
        let stays = |key: &StoredApiKey| {
            key.generation == verified.generation && key.view.revoked_at.is_none()
        };
        let left = |key: &StoredApiKey| stays(key).then_some(Duration::MAX);
        self.wait_until_ended(&verified.name, left).await;
    }

    /// Completes once `left` returns no remaining time for the key of this name.
    async fn wait_until_ended(&self, name: &str, left: impl Fn(&StoredApiKey) -> Option<Duration>) {
        let mut changed = self.store.changed();
        loop {
            changed.mark_unchanged();
            let Some(left) = self.current_table().keys.get(name).and_then(&left) else {
                return;
            };
            let wait = match left {
                Duration::MAX => left,
                left => left.min(EXPIRY_CHECK_INTERVAL),
            };
            tokio::select! {
                changed = changed.changed() => if changed.is_err() {
                    return;
                },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Returns the reason, as a sentence, why calls of this caller are rejected: its API key was revoked or its name
    /// belongs to another key generation. An expired key only rejects new requests, so calls in flight may complete.
    pub fn rejection_reason(&self, caller: &Caller) -> Option<String> {
        let name = caller.name().strip_prefix(CALLER_PREFIX)?;
        let known = self.current_table();
        let key = known.keys.get(name);
        // A revoked key may already have a successor of the same name when this process reads the store.
        if caller.generation().is_some() && caller.generation() != key.map(|key| key.generation) {
            return Some("the API key of this caller was deleted".to_owned());
        }
        let revoked = key?.view.end_reason(self.now())? == KeyEndReason::Revoked;
        revoked.then(|| "the operator revoked the API key of this caller".to_owned())
    }

    pub(super) fn current_table(&self) -> Arc<ApiKeyTable> {
        let change = *self.store.changed().borrow();
        let mut read = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != Some(change) {
            // Most changes concern other tables.
            if read.1.versions != self.store.versions(KEYS_TABLE) {
                read.1 = Arc::new(ApiKeyTable::read(&self.store.entries(KEYS_TABLE)));
            }
            read.0 = Some(change);
        }
        read.1.clone()
    }
}

impl ApiKeyTable {
    fn read(rows: &[StateRow]) -> ApiKeyTable {
        let mut known = ApiKeyTable::default();
        for row in rows {
            known.versions.push((row.key.clone(), row.version));
            // A malformed row authorizes nothing.
            let Some(key) = StoredApiKey::read(row) else {
                continue;
            };
            let old = key.old.as_ref().map(|old| &old.digest);
            for digest in std::iter::once(&key.digest).chain(old) {
                let names = known.names.entry(digest_prefix(digest)).or_default();
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

pub(super) fn digest_prefix(digest: &ApiKeyDigest) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    first
}

/// Returns the key generation, derived from the digest of the first key of that generation.
pub(super) fn generation_of(digest: &ApiKeyDigest) -> u64 {
    u64::from_be_bytes(digest_prefix(digest))
}
