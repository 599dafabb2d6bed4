//! The keys of callers, as a terminal makes and revokes them.

use super::{Done, NotDone, Operator};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use toolgate_policy::{By, Who, keys::KeyError};

impl Operator {
    /// Does what has to do with keys; `None` for anything else.
    pub(super) async fn keys(&self, action: &str, with: &Value, who: &Who) -> Option<Done> {
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        let (keys, name) = (self.desk.freezes().keys(), word("name"));
        let done = match action {
            // A key that is made here must not be read in a browser, nor by whoever looks at its screen.
            "keys/create" | "keys/revoke" if who.by != By::Terminal => {
                let why = "keys are made and revoked in a terminal: `toolgate keys`";
                return Some(Err(NotDone::Refused(why.to_owned())));
            }
            "keys/create" => {
                let expires = with.get("expires").and_then(Value::as_u64);
                let expires = expires.map(|end| UNIX_EPOCH.checked_add(Duration::from_millis(end)));
                let made = keys.create(
                    name,
                    expires.flatten(),
                    who,
                    self.live.plan().config.limits.caller_keys,
                );
                let made = made.await;
                made.map(|key| json!({"key": key.reveal()}))
            }
            "keys/revoke" => keys.revoke(name, who).await.map(|()| json!({"ok": true})),
            _ => return None,
        };
        Some(done.map_err(|error| match error {
            KeyError::Unknown => NotDone::Unknown(error.to_string()),
            error => NotDone::Refused(error.to_string()),
        }))
    }
}
