//! Storage format of an API key.

use super::{ApiKeyDigest, ApiKeyView, at, book::number, hex, millis, same, unhex};
use crate::StateRow;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The current key of a name, and the key that it replaced.
#[derive(Clone)]
pub(super) struct StoredApiKey {
    pub(super) view: ApiKeyView,
    pub(super) digest: ApiKeyDigest,
    /// Key generation: the same for all rotated keys of one owner.
    pub(super) holder: u64,
    pub(super) old: Option<ReplacedApiKey>,
}

/// The replaced key. It is valid for a grace period, and stored afterwards to distinguish it from an unknown key.
#[derive(Clone)]
pub(super) struct ReplacedApiKey {
    pub(super) digest: ApiKeyDigest,
    /// End of the grace period; 1970 if there was none.
    pub(super) until: SystemTime,
}

impl StoredApiKey {
    pub(super) fn read(row: &StateRow) -> Option<StoredApiKey> {
        let number_of = |value: Option<&Value>| match value {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_u64().and_then(at).map(Some),
        };
        let time = |key: &str| number_of(row.value.get(key));
        let text = |key: &str| row.value.get(key).and_then(Value::as_str);
        let digest = unhex(text("sha256")?)?;
        let old = |old: &Value| {
            Some(ReplacedApiKey {
                digest: unhex(old.get("sha256")?.as_str()?)?,
                until: number_of(old.get("until"))??,
            })
        };
        let old = row.value.get("old").and_then(old);
        Some(StoredApiKey {
            digest,
            // If absent, the current key is the first of its generation.
            holder: match row.value.get("holder") {
                Some(holder) => holder.as_u64()?,
                None => number(&digest),
            },
            view: ApiKeyView {
                name: row.key.clone(),
                created: time("created")??,
                expires: time("expires")?,
                revoked: time("revoked")?,
                by: text("by").unwrap_or_default().to_owned(),
                used: None,
                old: old
                    .as_ref()
                    .map(|old| old.until)
                    .filter(|until| *until > UNIX_EPOCH),
            },
            old,
        })
    }

    pub(super) fn json(&self) -> Value {
        let view = &self.view;
        let old = self.old.as_ref();
        json!({
            "sha256": hex(&self.digest), "holder": self.holder, "created": millis(view.created),
            "expires": view.expires.map(millis), "revoked": view.revoked.map(millis), "by": view.by,
            "old": old.map(|old| json!({"sha256": hex(&old.digest), "until": millis(old.until)})),
        })
    }

    /// Returns the expiry of the key with this digest: `None` if the name has no such key, `Some(None)` if it never
    /// expires.
    pub(super) fn end(&self, digest: &ApiKeyDigest) -> Option<Option<SystemTime>> {
        if same(&self.digest, digest) {
            return Some(self.view.expires);
        }
        let old = self.old.as_ref().filter(|old| same(&old.digest, digest))?;
        Some(Some(old.until))
    }
}
