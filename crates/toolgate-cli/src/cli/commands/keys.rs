//! `toolgate keys`: API keys of callers. Without a running gateway, this process changes the data directory itself.

use super::{CommandError, DataLocation, Result, offline, print};
use crate::{
    args::KeysCommand as Wanted,
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    oauth::{
        caller_credentials::{self, DeletedCredentials, delete_key_credentials},
        credentials_dir,
    },
    operator::api::{KEY_EXPIRY_WARNING, key_error_message, key_json, sign_in_record},
    operator::control::{GatewaySockets, person},
    runtime::store_location::StoreLocation,
    servers::revoke_credentials,
    timestamp::format_timestamp,
    timestamp::millis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{CallerAttributes, visible_line};
use toolgate_journal::AuditJournal;
use toolgate_policy::{
    ApprovalChannel, Approver, AuditRecorder,
    keys::{ApiKeys, NewApiKey},
    sanitize_entry,
};

/// Runs a key command on a data directory.
pub(super) fn run(place: &DataLocation<'_>, wanted: &Wanted) -> Result<ExitCode> {
    let data = &place.data()?;
    let work = KeyCommandContext { place, data };
    match wanted {
        Wanted::Create { name, groups, end } => work.create(name, groups, end.expiry()),
        Wanted::Rotate {
            name,
            keep_old,
            end,
        } => work.rotate(without_prefix(name), *keep_old, end.expiry()),
        Wanted::Extend { name, end } => work.extend(without_prefix(name), end.expiry()),
        Wanted::List(output) => list(&offline::location(place, data)?, output.json),
        Wanted::Revoke { name } => work.revoke(without_prefix(name)),
    }
}

/// Removes the `key:` prefix that the list shows.
fn without_prefix(name: &str) -> &str {
    name.strip_prefix("key:").unwrap_or(name)
}

/// Context of a key command.
struct KeyCommandContext<'a> {
    place: &'a DataLocation<'a>,
    data: &'a Path,
}

impl KeyCommandContext<'_> {
    /// Sends an action to a running gateway, or runs it in this process if there is none.
    fn send_or_run(
        &self,
        action: &str,
        with: &Value,
        alone: impl AsyncFnOnce(
            &ApiKeys,
            &AuditJournal,
            &Approver,
        ) -> std::result::Result<Value, String>,
    ) -> Result<Value> {
        match GatewaySockets::find_optional(self.data)? {
            Some(gateways) => Ok(gateways.request_any(action, with)?),
            None => {
                let who = person::owner(ApprovalChannel::Terminal);
                offline::keys(self.place, self.data, async |keys, journal| {
                    alone(keys, journal, &who).await
                })
            }
        }
    }

    fn create(
        &self,
        name: &str,
        groups: &[String],
        expires: Option<SystemTime>,
    ) -> Result<ExitCode> {
        let with = json!({"name": name, "groups": groups, "expires": expires.map(millis)});
        let made = self.send_or_run("keys/create", &with, async |keys, journal, who| {
            // An unreadable config is reported by the commands that need it.
            let limits = self.place.config().map(|config| config.limits);
            let most = limits.unwrap_or_default().caller_keys;
            let groups = groups.to_vec();
            let made = keys
                .create_in_groups(name, groups, expires, who, most)
                .await;
            let made = made.map_err(|error| key_error_message(&error))?;
            // An expired key of that name may have left credentials, which the new key must not use.
            match self.forget(name, journal, who).await {
                Ok(_) => Ok(json!({"key": made.reveal()})),
                Err(why) => Err(caller_credentials::revoke_unused_key(keys, name, who, &why).await),
            }
        })?;
        eprintln!(
            "This key is shown only once. Its caller is named key:{name}, and sends the key as: Authorization: Bearer KEY"
        );
        print_key(&made)
    }

    fn rotate(
        &self,
        name: &str,
        keep: Option<Duration>,
        expires: Option<SystemTime>,
    ) -> Result<ExitCode> {
        let keep = keep.unwrap_or_default();
        let left = expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        // Allow a minute: some time has passed since the expiry was computed.
        if left.is_some_and(|left| keep > left + Duration::from_secs(59)) {
            let why = "the new key would expire before the end of --keep-old, and the old key expires with it; pass a shorter --keep-old or a later expiry";
            return Err(CommandError::Usage(why.to_owned()));
        }
        let seconds = keep.as_secs();
        let with = json!({"name": name, "expires": expires.map(millis), "keep_seconds": seconds});
        let made = self.send_or_run("keys/rotate", &with, async |keys, _, who| {
            let made = keys.rotate(name, expires, keep, who).await;
            let made: NewApiKey = made.map_err(|error| key_error_message(&error))?;
            Ok(json!({"key": made.reveal(), "old_until": made.old_valid_until().map(millis)}))
        })?;
        let until = &made["old_until"];
        let old = match until.is_null() {
            true => "is no longer accepted; its running calls complete, unless you run `toolgate keys revoke`"
                .to_owned(),
            false => format!("is accepted until {}; calls that are running then will complete", format_timestamp(until)),
        };
        eprintln!("The new key for key:{name} is shown only once. The old key {old}.");
        print_key(&made)
    }

    fn extend(&self, name: &str, end: Option<SystemTime>) -> Result<ExitCode> {
        let Some(end) = end else {
            let why = "the expiry is too far in the future; pass an earlier one";
            return Err(CommandError::Usage(why.to_owned()));
        };
        let with = json!({"name": name, "expires": millis(end)});
        self.send_or_run("keys/extend", &with, async |keys, _, who| {
            let done = keys.extend(name, end, who).await;
            done.map_err(|error| key_error_message(&error))?;
            Ok(json!({}))
        })?;
        print(&format!(
            "key:{name} is valid until {}\n",
            format_timestamp(&json!(millis(end)))
        ))
    }

    fn revoke(&self, name: &str) -> Result<ExitCode> {
        let with = json!({"name": name});
        let done = self.send_or_run("keys/revoke", &with, async |keys, journal, who| {
            let revoked = keys.revoke(name, who).await;
            revoked.map_err(|error| key_error_message(&error))?;
            let forgotten = self.forget(name, journal, who).await;
            let forgotten = forgotten.map_err(|why| format!("the key is revoked, but {why}"))?;
            // Revoke the credentials at their issuers if the config can be read.
            if let Ok(config) = self.place.config() {
                revoke_credentials(&config, &credentials_dir(self.data), &forgotten, None).await;
            }
            Ok(json!({"servers": caller_credentials::servers_of(&forgotten)}))
        })?;
        print(&revoked(name, &done))
    }

    /// Deletes the credentials of a key and records each deletion.
    async fn forget(
        &self,
        name: &str,
        journal: &AuditJournal,
        who: &Approver,
    ) -> std::result::Result<DeletedCredentials, String> {
        let forgotten = delete_key_credentials(&credentials_dir(self.data), name).await?;
        let caller = format!("key:{name}");
        for server in caller_credentials::servers_of(&forgotten) {
            let entry = sign_in_record(server, Some(&caller), "signed_out", who);
            // The deletion has happened, and a failing audit log was reported before.
            let _ = journal.append(sanitize_entry(entry)).await;
        }
        Ok(forgotten)
    }
}

fn print_key(made: &Value) -> Result<ExitCode> {
    print(&format!("{}\n", made["key"].as_str().unwrap_or_default()))
}

/// Describes what ended with a revoked key, as far as the answering gateway knows.
fn revoked(name: &str, done: &Value) -> String {
    let count = |key: &str| match done[key].as_u64() {
        None | Some(0) => None,
        Some(1) => Some("1 call".to_owned()),
        Some(n) => Some(format!("{n} calls")),
    };
    let mut text = format!("key:{name} is revoked; its streams and sessions are closed\n");
    if let Some(calls) = count("running") {
        text.push_str(&format!("cancelled: {calls}\n"));
    }
    if let Some(calls) = count("waiting") {
        text.push_str(&format!("denied: {calls} that needed an approval\n"));
    }
    for server in done["servers"].as_array().into_iter().flatten() {
        let server = visible_line(server.as_str().unwrap_or_default());
        text.push_str(&format!(
            "signed out: {server}; its credentials are deleted, and revoked if their issuer supports that\n"
        ));
    }
    text
}

/// Returns the generation of a name's valid key.
pub(super) fn valid_key_generation(
    location: &StoreLocation,
    name: &str,
) -> std::result::Result<Option<u64>, String> {
    match offline::state(location) {
        Ok(state) => Ok(ApiKeys::new(Arc::new(AuditRecorder::log()), state).generation(name)),
        Err(CommandError::Usage(why) | CommandError::Failure(why)) => Err(why),
    }
}

/// Returns the groups of the caller with an API key of the store; empty for other callers.
pub(super) fn stored_attributes(location: &StoreLocation, caller: &str) -> CallerAttributes {
    let Some(name) = caller.strip_prefix("key:") else {
        return CallerAttributes::default();
    };
    let state = offline::state(location);
    let found =
        state.map(|state| ApiKeys::new(Arc::new(AuditRecorder::log()), state).attributes(name));
    found.map_or_else(
        |_| CallerAttributes::default(),
        |found| CallerAttributes::clone(&found),
    )
}

/// API key, without its value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct KeyOutput {
    /// Name; its caller is `key:NAME`.
    pub(crate) name: String,
    /// Groups of the caller.
    groups: Vec<String>,
    #[serde(rename(deserialize = "created"))]
    created_at: OutputTime,
    #[serde(rename(deserialize = "by"))]
    created_by: String,
    /// Time at which the key expires; `null` for never.
    #[serde(rename(deserialize = "expires"))]
    pub(crate) expires_at: Option<OutputTime>,
    #[serde(rename(deserialize = "revoked"))]
    revoked_at: Option<OutputTime>,
    /// Reason why the key is no longer valid, such as `expired`; `null` if it is.
    #[serde(rename(deserialize = "over"))]
    end_reason: Option<String>,
    #[serde(rename(deserialize = "used"))]
    last_used_at: Option<OutputTime>,
    /// Time until which the replaced key of this name is accepted.
    #[serde(rename(deserialize = "old_until"))]
    old_key_valid_until: Option<OutputTime>,
}

fn list(location: &StoreLocation, json: bool) -> Result<ExitCode> {
    let keys = ApiKeys::new(Arc::new(AuditRecorder::log()), offline::state(location)?);
    let now = keys.now();
    let keys = keys.list();
    let keys = keys.iter().map(|key| read_answer(key_json(key, now)));
    let keys = keys.collect::<Result<Vec<KeyOutput>>>()?;
    if json {
        return print_json(&keys);
    }
    if keys.is_empty() {
        eprintln!("there are no keys; `toolgate keys create NAME` creates one");
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    for key in &keys {
        table.add([format!("key:{}", key.name), key_text(key, now)]);
    }
    print(&table.text())
}

/// Describes the time to a key's expiry, if it is soon.
pub(super) fn expires_soon(left: Duration) -> Option<String> {
    let hours = left.as_secs() / 3600;
    let words = match hours {
        _ if left > KEY_EXPIRY_WARNING => return None,
        0 => "expires within the hour".to_owned(),
        1..48 => format!("expires in {hours} h"),
        _ => format!("expires in {} days", hours / 24),
    };
    Some(words)
}

fn key_text(key: &KeyOutput, now: SystemTime) -> String {
    let holds = match (key.revoked_at, &key.end_reason, key.expires_at) {
        (Some(at), ..) => format!("revoked {at}"),
        (None, Some(_), Some(at)) => format!("expired {at}"),
        (None, _, Some(at)) => {
            let left = at.as_millis().saturating_sub(millis(now));
            let soon = expires_soon(Duration::from_millis(left));
            format!(
                "valid until {at}{}",
                soon.map_or(String::new(), |words| format!(" ({words})"))
            )
        }
        (None, _, None) => "valid".to_owned(),
    };
    let old = match key.old_key_valid_until.filter(|_| key.end_reason.is_none()) {
        Some(at) => format!("; the old key until {at}"),
        None => String::new(),
    };
    let used = match key.last_used_at {
        Some(at) => format!("last used {at}"),
        None => "never used".to_owned(),
    };
    let groups = match key.groups.as_slice() {
        [] => String::new(),
        groups => format!("; groups {}", visible_line(&groups.join(", "))),
    };
    let by = visible_line(&key.created_by);
    format!(
        "{holds}{old}; {used}{groups}; created {} by {by}",
        key.created_at
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_an_expiry_that_is_soon() {
        let hours = |n: u64| expires_soon(Duration::from_secs(n * 3600));
        assert_eq!(hours(15 * 24), None);
        assert_eq!(hours(6 * 24 + 3).as_deref(), Some("expires in 6 days"));
        assert_eq!(hours(30).as_deref(), Some("expires in 30 h"));
        assert_eq!(hours(0).as_deref(), Some("expires within the hour"));
    }

    #[test]
    fn lists_what_ended_with_a_key() {
        let said = revoked(
            "ci",
            &json!({"running": 2, "waiting": 1, "servers": ["far"]}),
        );
        for words in [
            "key:ci is revoked",
            "2 calls\n",
            "1 call that needed an approval",
            "signed out: far",
        ] {
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(revoked("ci", &json!({"servers": []})).lines().count(), 1);
    }
}
