//! API keys of callers: create, rotate, extend, revoke and list.

use super::{ActionError, ActionResult, OperatorApi, action_input::ActionInput};
use crate::{
    oauth::caller_credentials,
    servers,
    timestamp::{format_timestamp, millis},
};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_policy::{
    Approver,
    keys::{ApiKeyError, ApiKeyView, KeyEndReason, NewApiKey},
};

/// A key that expires within this time is listed as ending soon.
pub(crate) const KEY_EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3600);

impl OperatorApi {
    /// Returns the valid keys that expire soon.
    pub(super) fn expiring_keys(&self) -> Value {
        let now = self.approvals.now();
        let soon = |key: &&ApiKeyView| {
            let left = key.expires_at.and_then(|end| end.duration_since(now).ok());
            key.end_reason(now).is_none() && left.is_some_and(|left| left <= KEY_EXPIRY_WARNING)
        };
        let keys = self.approvals.freezes().keys().list();
        let ending = keys.iter().filter(soon);
        ending.map(|key| key_json(key, now)).collect()
    }

    /// Returns all keys as JSON. Their secrets are not stored.
    pub(crate) fn key_list(&self) -> Value {
        let now = self.approvals.now();
        let keys = self.approvals.freezes().keys().list();
        keys.iter().map(|key| key_json(key, now)).collect()
    }

    /// Stores when keys were last used, and sends changed keys to the console.
    pub(crate) async fn sync_keys(&self, told: &mut Value) {
        self.approvals.freezes().keys().store_uses().await;
        if !self.feed.is_watched() {
            return;
        }
        let now = self.key_list();
        if now != *told {
            self.feed.send("keys", &now);
            *told = now;
        }
    }

    /// Deletes the credentials of a key, which a later key of that name must not use. Returns the servers that had
    /// some.
    async fn delete_credentials(&self, name: &str, who: &Approver) -> Result<Vec<String>, String> {
        let forgotten =
            caller_credentials::delete_key_credentials(&self.credentials_dir, name).await?;
        let caller = format!("key:{name}");
        self.supervisor.drop_caller_credentials(&caller);
        let servers: Vec<String> = caller_credentials::servers_of(&forgotten)
            .into_iter()
            .map(str::to_owned)
            .collect();
        for server in &servers {
            self.record_sign_in(server, Some(&caller), "signed_out", who);
        }
        if !forgotten.is_empty() {
            let (plan, grants) = (self.active.snapshot(), self.credentials_dir.clone());
            let supervisor = self.supervisor.clone();
            #[allow(
                clippy::disallowed_methods,
                reason = "the credentials are deleted already; an authorization server that does not respond must not delay the response"
            )]
            tokio::spawn(async move {
                servers::revoke_credentials(&plan.config, &grants, &forgotten, Some(&supervisor))
                    .await;
            });
        }
        Ok(servers)
    }

    /// Executes an action on keys; `None` for any other action.
    pub(super) async fn key_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let word = |key: &str| ActionInput(with).text(key);
        let (keys, name) = (self.approvals.freezes().keys(), word("name"));
        let number = |key: &str| ActionInput(with).number(key);
        let expires = number("expires").map(Duration::from_millis);
        let expires = expires.and_then(|end| UNIX_EPOCH.checked_add(end));
        let shown = |key: NewApiKey| json!({"key": key.reveal(), "old_until": key.old_valid_until().map(millis)});
        let done = match action {
            "keys" => return Some(Ok(self.key_list())),
            "keys/create" => {
                let most = self.active.snapshot().config.limits.caller_keys;
                let groups = with["groups"].as_array().into_iter().flatten();
                let groups = groups
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
                match keys
                    .create_in_groups(name, groups, expires, who, most)
                    .await
                {
                    // A key of that name may have expired before. Its credentials do not belong to the new key.
                    Ok(key) => match self.delete_credentials(name, who).await {
                        Ok(_) => Ok(shown(key)),
                        Err(why) => {
                            let why =
                                caller_credentials::revoke_unused_key(keys, name, who, &why).await;
                            return Some(Err(ActionError::Refused(why)));
                        }
                    },
                    Err(error) => Err(error),
                }
            }
            "keys/rotate" => {
                let keep = Duration::from_secs(number("keep_seconds").unwrap_or_default());
                keys.rotate(name, expires, keep, who).await.map(shown)
            }
            "keys/extend" => match expires {
                Some(end) => keys
                    .extend(name, end, who)
                    .await
                    .map(|()| json!({"ok": true})),
                None => Err(ApiKeyError::ExpiryInPast),
            },
            "keys/revoke" => {
                let (running, waiting) = self.feed.open_counts(&format!("key:{name}"));
                match keys.revoke(name, who).await {
                    Ok(()) => match self.delete_credentials(name, who).await {
                        Ok(servers) => Ok(
                            json!({"ok": true, "running": running, "waiting": waiting, "servers": servers}),
                        ),
                        Err(why) => {
                            let why = format!("the key is revoked, but {why}");
                            return Some(Err(ActionError::Refused(why)));
                        }
                    },
                    Err(error) => Err(error),
                }
            }
            _ => return None,
        };
        Some(done.map_err(|error| match error {
            ApiKeyError::Unknown => ActionError::Unknown(error.to_string()),
            error => ActionError::Refused(key_error_message(&error)),
        }))
    }
}

/// Formats the error of an action on a key, with the time that caused it.
pub(crate) fn key_error_message(error: &ApiKeyError) -> String {
    let stamp = |at: &SystemTime| format_timestamp(&json!(millis(*at)));
    match error {
        ApiKeyError::Expired(name, at) => format!(
            "key:{name} expired at {}; create a new one with `toolgate keys create {name}`, which deletes the approvals and credentials of the old one",
            stamp(at)
        ),
        ApiKeyError::ExpiresLater(name, end) => {
            let later = match end {
                Some(at) => format!("already expires later, at {}", stamp(at)),
                None => "never expires".to_owned(),
            };
            format!(
                "key:{name} {later}; for an earlier expiry replace it with `toolgate keys rotate {name} --expires TIME`"
            )
        }
        error => error.to_string(),
    }
}

/// Renders a key as JSON, without its secret.
pub(crate) fn key_json(key: &ApiKeyView, now: SystemTime) -> Value {
    json!({"name": key.name, "groups": key.groups, "created": millis(key.created_at), "expires": key.expires_at.map(millis),
        "revoked": key.revoked_at.map(millis), "over": key.end_reason(now).map(KeyEndReason::as_str), "by": key.created_by,
        "used": key.last_used.map(millis), "old_until": key.old_valid_until.filter(|at| *at > now).map(millis)})
}
