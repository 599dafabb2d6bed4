//! One key as the store has it.

use super::{Digest, KeyView, at, book::number, hex, millis, same, unhex};
use crate::Row;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A key of a name, and the one that was before it.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) view: KeyView,
    pub(super) digest: Digest,
    /// Who has the name: the same for all keys that one after the other were made for him.
    pub(super) holder: u64,
    pub(super) old: Option<Old>,
}

/// The key that was before. It opens for a while yet, or is kept to be told from one that is not known.
#[derive(Clone)]
pub(super) struct Old {
    pub(super) digest: Digest,
    /// 1970, where it opens no more since the other one was made.
    pub(super) until: SystemTime,
}

impl Key {
    pub(super) fn read(row: &Row) -> Option<Key> {
        let number_of = |value: Option<&Value>| match value {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_u64().and_then(at).map(Some),
        };
        let time = |key: &str| number_of(row.value.get(key));
        let text = |key: &str| row.value.get(key).and_then(Value::as_str);
        let digest = unhex(text("sha256")?)?;
        let old = |old: &Value| {
            Some(Old {
                digest: unhex(old.get("sha256")?.as_str()?)?,
                until: number_of(old.get("until"))??,
            })
        };
        let old = row.value.get("old").and_then(old);
        Some(Key {
            digest,
            // Absent while it has the first key.
            holder: match row.value.get("holder") {
                Some(holder) => holder.as_u64()?,
                None => number(&digest),
            },
            view: KeyView {
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

    /// When a key of this digest ends by itself, if ever; nothing where it is not one of this name.
    pub(super) fn end(&self, digest: &Digest) -> Option<Option<SystemTime>> {
        if same(&self.digest, digest) {
            return Some(self.view.expires);
        }
        let old = self.old.as_ref().filter(|old| same(&old.digest, digest))?;
        Some(Some(old.until))
    }
}
