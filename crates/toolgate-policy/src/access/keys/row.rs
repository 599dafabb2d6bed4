//! Storage format of an API key.

use super::{
    ApiKeyDigest, ApiKeyView, api_keys::generation_of, equal_in_constant_time, from_unix_millis,
    parse_digest, to_unix_millis,
};
use crate::StateRow;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use toolgate_core::CallerAttributes;
use toolgate_protocol::hex;

/// Returns the attributes of a caller that has only groups.
pub(super) fn group_attributes(groups: Vec<String>) -> Arc<CallerAttributes> {
    let mut attributes = CallerAttributes::default();
    attributes.groups = groups;
    Arc::new(attributes)
}

/// The current key of a name, and the key that it replaced.
#[derive(Clone)]
pub(super) struct StoredApiKey {
    pub(super) view: ApiKeyView,
    pub(super) digest: ApiKeyDigest,
    /// Key generation: the same for all rotated keys of one owner.
    pub(super) generation: u64,
    /// Groups of the caller.
    pub(super) attributes: Arc<CallerAttributes>,
    pub(super) old: Option<ReplacedApiKey>,
}

/// The replaced key. It is valid for a grace period, and stored afterwards to distinguish it from an unknown key.
#[derive(Clone)]
pub(super) struct ReplacedApiKey {
    pub(super) digest: ApiKeyDigest,
    /// End of the grace period; 1970 if there was none.
    pub(super) valid_until: SystemTime,
}

impl StoredApiKey {
    pub(super) fn read(row: &StateRow) -> Option<StoredApiKey> {
        let number_of = |value: Option<&Value>| match value {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_u64().and_then(from_unix_millis).map(Some),
        };
        let time = |key: &str| number_of(row.value.get(key));
        let text = |key: &str| row.value.get(key).and_then(Value::as_str);
        let digest = parse_digest(text("sha256")?)?;
        let old = |old: &Value| {
            Some(ReplacedApiKey {
                digest: parse_digest(old.get("sha256")?.as_str()?)?,
                valid_until: number_of(old.get("until"))??,
            })
        };
        let old = row.value.get("old").and_then(old);
        let groups = match row.value.get("groups") {
            None => Vec::new(),
            Some(groups) => {
                let groups = groups.as_array()?.iter();
                let groups = groups.map(|group| group.as_str().map(str::to_owned));
                groups.collect::<Option<Vec<String>>>()?
            }
        };
        Some(StoredApiKey {
            digest,
            attributes: group_attributes(groups.clone()),
            // If absent, the current key is the first of its generation.
            generation: match row.value.get("holder") {
                Some(holder) => holder.as_u64()?,
                None => generation_of(&digest),
            },
            view: ApiKeyView {
                name: row.key.clone(),
                created_at: time("created")??,
                expires_at: time("expires")?,
                revoked_at: time("revoked")?,
                created_by: text("by").unwrap_or_default().to_owned(),
                groups,
                last_used: None,
                old_valid_until: old
                    .as_ref()
                    .map(|old| old.valid_until)
                    .filter(|until| *until > UNIX_EPOCH),
            },
            old,
        })
    }

    pub(super) fn json(&self) -> Value {
        let view = &self.view;
        let old = self.old.as_ref();
        let mut row = json!({
            "sha256": hex::encode(&self.digest), "holder": self.generation, "created": to_unix_millis(view.created_at),
            "expires": view.expires_at.map(to_unix_millis), "revoked": view.revoked_at.map(to_unix_millis), "by": view.created_by,
            "old": old.map(|old| json!({"sha256": hex::encode(&old.digest), "until": to_unix_millis(old.valid_until)})),
        });
        if !view.groups.is_empty() {
            row["groups"] = view.groups.clone().into();
        }
        row
    }

    /// Returns the expiry of the key with this digest: `None` if the name has no such key, `Some(None)` if it never
    /// expires.
    pub(super) fn expiry_of(&self, digest: &ApiKeyDigest) -> Option<Option<SystemTime>> {
        if equal_in_constant_time(&self.digest, digest) {
            return Some(self.view.expires_at);
        }
        let old = self
            .old
            .as_ref()
            .filter(|old| equal_in_constant_time(&old.digest, digest))?;
        Some(Some(old.valid_until))
    }
}
