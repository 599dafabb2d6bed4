//! The keys of callers, as a terminal makes and revokes them.

use super::{Done, NotDone, Operator};
use crate::{board::millis, signing_in::callers};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_policy::{
    By, Who,
    keys::{KeyError, KeyView, Over},
};

impl Operator {
    /// All keys without the keys themselves, which nobody has.
    pub(crate) fn key_list(&self) -> Value {
        let now = SystemTime::now();
        let one = |key: &KeyView| {
            json!({"name": key.name, "created": millis(key.created), "expires": key.expires.map(millis),
                "revoked": key.revoked.map(millis), "over": key.over(now).map(Over::as_str), "by": key.by,
                "used": key.used.map(millis)})
        };
        let keys = self.desk.freezes().keys().list();
        keys.iter().map(one).collect()
    }

    /// Keeps when keys were used, and tells the console of what changed.
    pub(crate) async fn follow_keys(&self, told: &mut Value) {
        self.desk.freezes().keys().keep_uses().await;
        if !self.board.is_watched() {
            return;
        }
        let now = self.key_list();
        if now != *told {
            self.board.tell("keys", &now);
            *told = now;
        }
    }

    /// What was granted for a key is not for another key of that name.
    async fn forget_grants(&self, name: &str) -> Result<(), String> {
        let forgotten = callers::forget_key(&self.grants, name).await?;
        self.supervisor.forget(&format!("key:{name}"));
        if !forgotten.is_empty() {
            let (plan, grants) = (self.live.plan(), self.grants.clone());
            #[allow(
                clippy::disallowed_methods,
                reason = "it is gone here already; an authorization server that does not answer holds nobody up, and is waited for so long"
            )]
            tokio::spawn(
                async move { callers::give_back(&plan.config, &grants, &forgotten).await },
            );
        }
        Ok(())
    }

    /// Does what has to do with keys; `None` for anything else.
    pub(super) async fn keys(&self, action: &str, with: &Value, who: &Who) -> Option<Done> {
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        let (keys, name) = (self.desk.freezes().keys(), word("name"));
        let done = match action {
            "keys" => return Some(Ok(self.key_list())),
            // A key that is made must not be read in a browser, nor by whoever looks at its screen.
            "keys/create" if who.by != By::Terminal => {
                let why = "keys are made in a terminal: `toolgate keys create NAME`";
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
                match made {
                    Ok(key) => {
                        // One of that name may have expired before, and what was granted for it is not for this one.
                        if let Err(why) = self.forget_grants(name).await {
                            return Some(Err(NotDone::Refused(why)));
                        }
                        Ok(json!({"key": key.reveal()}))
                    }
                    Err(error) => Err(error),
                }
            }
            "keys/revoke" => match keys.revoke(name, who).await {
                Ok(()) => {
                    if let Err(why) = self.forget_grants(name).await {
                        let why = format!("the key is revoked, but {why}");
                        return Some(Err(NotDone::Refused(why)));
                    }
                    Ok(json!({"ok": true}))
                }
                Err(error) => Err(error),
            },
            _ => return None,
        };
        Some(done.map_err(|error| match error {
            KeyError::Unknown => NotDone::Unknown(error.to_string()),
            error => NotDone::Refused(error.to_string()),
        }))
    }
}
