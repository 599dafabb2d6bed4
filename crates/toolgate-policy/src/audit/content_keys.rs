//! Encryption of recorded contents with secrets that an operator can destroy (crypto-shredding).
//!
//! The key of a content derives from two secrets: that of its UTC day and that of its caller. Without either of them,
//! the content cannot be decrypted. The secrets are in the store, never in the audit log, so an erasure changes no
//! record.

use crate::{StateRow, StateStore, WriteOutcome, WritePrecondition};
use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    rand::{SecureRandom, SystemRandom},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use toolgate_core::Error;
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_protocol::{hex, method::tasks::format_iso8601};

/// Table of the secrets in the store.
const CONTENT_KEYS_TABLE: &str = "content_keys";
/// Prefix of the row of a day.
const DAY_PREFIX: &str = "day:";
/// Prefix of the row of a caller.
const CALLER_PREFIX: &str = "caller:";
/// Maximum number of callers with a secret, half of the rows of a store. Contents of more callers are omitted.
const MAX_CALLER_SECRETS: usize = 50_000;
/// Time in which a secret that another gateway created has to appear.
const FOREIGN_SECRET_WAIT: Duration = Duration::from_secs(2);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Version of the encrypted form, its first part.
const FORM_VERSION: &str = "v1";
const KEY_SALT: &[u8] = b"toolgate audit contents v1";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// Fields of audit records with contents, and those with their encrypted forms.
const CONTENT_FIELDS: [(&str, &str); 2] = [("args", "args_enc"), ("res", "res_enc")];
/// Placeholder for a content whose secret was destroyed.
const ERASED_PLACEHOLDER: &str = "[erased]";
/// Placeholder for an encrypted content that was changed.
const UNREADABLE_PLACEHOLDER: &str = "[unreadable]";
/// Placeholder for a content without a secret to encrypt it.
pub(crate) const NO_KEY_PLACEHOLDER: &str = "[omitted: no content key]";

/// Secrets in a store that encrypt the contents of audit records, one for each caller and one for each UTC day.
#[derive(Clone)]
pub struct ContentKeys {
    store: Arc<dyn StateStore>,
}

/// Secret with its id.
struct ContentSecret {
    id: String,
    secret: [u8; SECRET_BYTES],
}

impl ContentSecret {
    fn of(row: &StateRow) -> Option<ContentSecret> {
        let text = |name: &str| row.value.get(name).and_then(Value::as_str);
        Some(ContentSecret {
            id: text("id")?.to_owned(),
            secret: hex::decode(text("secret")?)?.try_into().ok()?,
        })
    }
}

/// Scope of an erasure of recorded contents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ErasureScope {
    /// All contents of the calls of a caller so far, by its name in audit records.
    Caller(String),
    /// All contents of the UTC days before a day (`YYYY-MM-DD`).
    Before(String),
}

impl ErasureScope {
    /// Returns the record of an erasure with this scope, which destroys a number of secrets. It has no contents.
    pub fn record(&self, secrets: usize) -> AuditEntry {
        let entry = AuditEntry::new(AuditEvent::from("contents.erased"));
        let entry = match self {
            ErasureScope::Caller(name) => entry.with("caller", name.as_str()),
            ErasureScope::Before(day) => entry.with("before", day.as_str()),
        };
        entry.with("keys", secrets)
    }
}

/// Secret that an erasure destroys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContentKeyEntry {
    /// Id of the secret, as in encrypted contents.
    pub id: String,
    key: String,
    version: u64,
}

impl ContentKeys {
    /// Creates the access to the content secrets of a store.
    pub fn new(store: Arc<dyn StateStore>) -> ContentKeys {
        ContentKeys { store }
    }

    /// Creates the secrets of a caller and of the current day if they do not exist. A failure leaves them missing, and
    /// [`ContentKeys::encrypt`] reports it.
    pub(crate) async fn prepare(&self, caller: &str) {
        let day = day_key(self.store.clock().now());
        for key in [day, caller_key(caller)] {
            if self.store.row(CONTENT_KEYS_TABLE, &key).is_none() {
                self.create(&key).await;
            }
        }
    }

    async fn create(&self, key: &str) {
        if key.starts_with(CALLER_PREFIX) {
            let rows = self.store.versions(CONTENT_KEYS_TABLE);
            let callers = rows
                .iter()
                .filter(|(key, _)| key.starts_with(CALLER_PREFIX));
            if callers.count() >= MAX_CALLER_SECRETS {
                return;
            }
        }
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        let random = SystemRandom::new();
        if random.fill(&mut id).is_err() || random.fill(&mut secret).is_err() {
            return;
        }
        let value = json!({"id": hex::encode(&id), "secret": hex::encode(&secret)});
        let mut changed = self.store.changed();
        let write = self.store.write(
            CONTENT_KEYS_TABLE,
            key,
            Some(value),
            WritePrecondition::Absent,
        );
        if let Err(error) = write.await {
            tracing::warn!(%error, "the contents of calls are not recorded: their key cannot be stored");
            return;
        }
        // If another gateway created the secret first, its row follows.
        let appeared = async {
            while self.store.row(CONTENT_KEYS_TABLE, key).is_none() {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(FOREIGN_SECRET_WAIT, appeared).await;
    }

    fn secret(&self, key: &str) -> Option<ContentSecret> {
        ContentSecret::of(&self.store.row(CONTENT_KEYS_TABLE, key)?)
    }

    /// Returns the encrypted form of a content, for a field of a record. `None` if there is no secret for it.
    pub(crate) fn encrypt(&self, caller: &str, field: &str, text: &str) -> Option<String> {
        let now = self.store.clock().now();
        // A call that ends just after midnight may not have created the secret of the new day.
        let day = [Some(now), now.checked_sub(DAY)]
            .into_iter()
            .flatten()
            .find_map(|at| self.secret(&day_key(at)))?;
        let caller = self.secret(&caller_key(caller))?;
        let prefix = format!("{FORM_VERSION}:{}:{}:", day.id, caller.id);
        let key = derive_key(&day.secret, &caller.secret, field)?;
        let aad = format!("{field}:{prefix}");
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = text.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, Aad::from(aad.as_bytes()), &mut sealed)
            .ok()?;
        let mut out = prefix;
        BASE64_STANDARD.encode_string([&nonce[..], &sealed].concat(), &mut out);
        Some(out)
    }

    /// Returns the secrets that an erasure destroys.
    pub fn entries(&self, scope: &ErasureScope) -> Vec<ContentKeyEntry> {
        let rows = match scope {
            ErasureScope::Caller(name) => {
                let row = self.store.row(CONTENT_KEYS_TABLE, &caller_key(name));
                row.into_iter().collect()
            }
            ErasureScope::Before(day) => {
                let mut rows = self.store.entries(CONTENT_KEYS_TABLE);
                let is_before = |row: &StateRow| {
                    let of = row.key.strip_prefix(DAY_PREFIX);
                    of.is_some_and(|of| of < day.as_str())
                };
                rows.retain(is_before);
                rows
            }
        };
        let entries = rows.into_iter().map(|row| ContentKeyEntry {
            id: row.value["id"].as_str().unwrap_or_default().to_owned(),
            key: row.key,
            version: row.version,
        });
        entries.collect()
    }

    /// Destroys secrets. Returns the number of those that this process removed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn destroy(&self, entries: &[ContentKeyEntry]) -> Result<usize, Error> {
        let mut removed = 0;
        for entry in entries {
            let version = WritePrecondition::Version(entry.version);
            let write = self
                .store
                .write(CONTENT_KEYS_TABLE, &entry.key, None, version);
            if let WriteOutcome::Done(_) = write.await? {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the UTC day a number of days before now, as `YYYY-MM-DD`.
    pub fn day_before(&self, days: u64) -> String {
        let back = Duration::from_secs(days.saturating_mul(24 * 3600));
        let then = self.store.clock().now().checked_sub(back);
        day_of(then.unwrap_or(SystemTime::UNIX_EPOCH))
    }
}

impl std::fmt::Debug for ContentKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ContentKeys")
    }
}

/// Decrypts the contents of audit records with the secrets of a store.
pub struct ContentReader {
    store: Arc<dyn StateStore>,
    secrets: Mutex<KnownSecrets>,
}

/// Secrets by id, as the store had them at a count of its changes.
#[derive(Default)]
struct KnownSecrets {
    read_at: Option<u64>,
    by_id: HashMap<String, [u8; SECRET_BYTES]>,
}

impl ContentReader {
    /// Creates a reader over the secrets of a store.
    pub fn new(store: Arc<dyn StateStore>) -> ContentReader {
        ContentReader {
            store,
            secrets: Mutex::default(),
        }
    }

    /// Returns the secrets, and reads them again if the store has changed.
    fn secrets(&self) -> MutexGuard<'_, KnownSecrets> {
        let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let count = *self.store.changed().borrow();
        if known.read_at != Some(count) {
            let rows = self.store.entries(CONTENT_KEYS_TABLE);
            let secrets = rows.iter().filter_map(ContentSecret::of);
            known.by_id = secrets.map(|one| (one.id, one.secret)).collect();
            known.read_at = Some(count);
        }
        known
    }

    /// Returns whether a record has a content that the secrets decrypt now, and that one of these secrets protects.
    pub fn is_protected_by(&self, fields: &Map<String, Value>, ids: &HashSet<&str>) -> bool {
        let secrets = self.secrets();
        let is_known = |id: &str| secrets.by_id.contains_key(id);
        content_secret_ids(fields).any(|(day, caller)| {
            is_known(day) && is_known(caller) && (ids.contains(day) || ids.contains(caller))
        })
    }

    /// Returns whether a record has encrypted contents.
    pub fn is_encrypted(fields: &Map<String, Value>) -> bool {
        CONTENT_FIELDS
            .iter()
            .any(|(_, encrypted)| fields.contains_key(*encrypted))
    }

    /// Removes the encrypted contents of a record.
    pub fn remove_encrypted(fields: &mut Map<String, Value>) {
        for (_, encrypted) in CONTENT_FIELDS {
            fields.remove(encrypted);
        }
    }

    /// Returns whether a decrypted content is the placeholder of one whose secret is missing.
    pub fn has_erased(fields: &Map<String, Value>) -> bool {
        let of = |field: &str| fields.get(field).and_then(Value::as_str);
        CONTENT_FIELDS
            .iter()
            .any(|(field, _)| of(field) == Some(ERASED_PLACEHOLDER))
    }

    /// Adds the decrypted contents of a record (`args`, `res`) beside the encrypted ones. Returns whether it had any.
    pub fn reveal(&self, fields: &mut Map<String, Value>) -> bool {
        let mut found = false;
        for (field, encrypted) in CONTENT_FIELDS {
            if let Some(Value::String(text)) = fields.get(encrypted) {
                let content = self.decrypt(field, text);
                fields.insert(field.to_owned(), content.into());
                found = true;
            }
        }
        found
    }

    fn decrypt(&self, field: &str, text: &str) -> String {
        if is_omitted(text) {
            return text.to_owned();
        }
        let Some((day, caller)) = secret_ids(text) else {
            return UNREADABLE_PLACEHOLDER.to_owned();
        };
        let secrets = self.secrets();
        let (Some(day), Some(caller)) = (secrets.by_id.get(day), secrets.by_id.get(caller)) else {
            return ERASED_PLACEHOLDER.to_owned();
        };
        let opened = derive_key(day, caller, field).and_then(|key| open(&key, field, text));
        opened.unwrap_or_else(|| UNREADABLE_PLACEHOLDER.to_owned())
    }
}

impl std::fmt::Debug for ContentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ContentReader")
    }
}

/// Returns the ids of the secrets that a record needs: of the day and of the caller, for each of its encrypted contents.
fn content_secret_ids(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &str)> {
    CONTENT_FIELDS
        .into_iter()
        .filter_map(|(_, encrypted)| secret_ids(fields.get(encrypted)?.as_str()?))
}

/// Returns the name of the field for the encrypted form of a content.
pub(crate) fn encrypted_field(field: &'static str) -> &'static str {
    let pair = CONTENT_FIELDS.iter().find(|(plain, _)| *plain == field);
    pair.map_or(field, |(_, encrypted)| encrypted)
}

/// Returns whether a text is a placeholder for a content that is too long. No JSON text begins like it.
pub(crate) fn is_omitted(text: &str) -> bool {
    text.starts_with("[omitted:")
}

/// Returns the ids of the day and of the caller in an encrypted form.
fn secret_ids(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.split(':');
    let version = parts.next()?;
    let ids = (parts.next()?, parts.next()?);
    (version == FORM_VERSION && parts.next().is_some()).then_some(ids)
}

fn open(key: &LessSafeKey, field: &str, text: &str) -> Option<String> {
    let (prefix, data) = text.split_at(text.rfind(':')? + 1);
    let data = BASE64_STANDARD.decode(data).ok()?;
    let (nonce, sealed) = data.split_first_chunk::<NONCE_LEN>()?;
    let mut sealed = sealed.to_vec();
    let aad = format!("{field}:{prefix}");
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let plain = key
        .open_in_place(nonce, Aad::from(aad.as_bytes()), &mut sealed)
        .ok()?;
    String::from_utf8(plain.to_vec()).ok()
}

/// Derives the key of a field from the secrets of a day and of a caller.
fn derive_key(
    day: &[u8; SECRET_BYTES],
    caller: &[u8; SECRET_BYTES],
    field: &str,
) -> Option<LessSafeKey> {
    let both = [day.as_slice(), caller].concat();
    let secret = Salt::new(HKDF_SHA256, KEY_SALT).extract(&both);
    let info = [field.as_bytes()];
    let key = secret.expand(&info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

fn caller_key(name: &str) -> String {
    format!("{CALLER_PREFIX}{name}")
}

fn day_key(at: SystemTime) -> String {
    format!("{DAY_PREFIX}{}", day_of(at))
}

/// Returns the UTC day of a time, as `YYYY-MM-DD`.
fn day_of(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let millis = u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    let mut text = format_iso8601(millis);
    if let Some(end) = text.find('T') {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStateStore;

    fn keys() -> (Arc<MemoryStateStore>, ContentKeys) {
        let store = Arc::new(MemoryStateStore::new());
        (store.clone(), ContentKeys::new(store))
    }

    fn revealed(store: &Arc<MemoryStateStore>, field: &'static str, text: &str) -> String {
        let mut fields = Map::from_iter([(encrypted_field(field).to_owned(), text.into())]);
        assert!(ContentReader::new(store.clone()).reveal(&mut fields));
        fields[field].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn an_erased_caller_is_unreadable_and_others_are_not() {
        let (store, keys) = keys();
        assert_eq!(keys.encrypt("ann", "args", "{}"), None, "no secret yet");
        keys.prepare("ann").await;
        keys.prepare("bob").await;
        let [ann, bob] = ["ann", "bob"].map(|name| keys.encrypt(name, "args", name).unwrap());
        assert_ne!(Some(&ann), keys.encrypt("ann", "args", "ann").as_ref());
        assert_eq!(revealed(&store, "args", &ann), "ann");
        let scope = ErasureScope::Caller("ann".to_owned());
        let entries = keys.entries(&scope);
        let reader = ContentReader::new(store.clone());
        let ids = HashSet::from([entries[0].id.as_str()]);
        let record = |text: &str| Map::from_iter([("args_enc".to_owned(), Value::from(text))]);
        assert!(reader.is_protected_by(&record(&ann), &ids));
        assert!(!reader.is_protected_by(&record(&bob), &ids));
        assert_eq!(keys.destroy(&entries).await.unwrap(), 1);
        assert!(
            !reader.is_protected_by(&record(&ann), &ids),
            "the reader follows"
        );
        keys.prepare("ann").await;
        assert_eq!(revealed(&store, "args", &ann), "[erased]");
        assert_eq!(revealed(&store, "args", &bob), "bob");
        let later = keys.encrypt("ann", "args", "later").unwrap();
        assert_eq!(revealed(&store, "args", &later), "later");
        assert_eq!(
            keys.destroy(&entries).await.unwrap(),
            0,
            "a new secret stays"
        );
    }

    #[tokio::test]
    async fn the_days_before_a_date_are_erased() {
        let (store, keys) = keys();
        keys.prepare("ann").await;
        let text = keys.encrypt("ann", "res", "x").unwrap();
        let today = ErasureScope::Before(keys.day_before(0));
        assert_eq!(keys.entries(&today), []);
        let tomorrow = day_of(store.clock().now() + DAY);
        let entries = keys.entries(&ErasureScope::Before(tomorrow));
        assert_eq!(keys.destroy(&entries).await.unwrap(), 1);
        assert_eq!(revealed(&store, "res", &text), "[erased]");
    }

    #[tokio::test]
    async fn a_changed_or_moved_content_is_unreadable() {
        let (store, keys) = keys();
        keys.prepare("ann").await;
        let text = keys.encrypt("ann", "args", "secret").unwrap();
        assert_eq!(revealed(&store, "res", &text), "[unreadable]");
        let at = text.len() - 6;
        let other = if &text[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        assert_eq!(revealed(&store, "args", &changed), "[unreadable]");
        assert_eq!(revealed(&store, "args", "v1:x"), "[unreadable]");
    }
}
