//! Credentials of single callers at a server. An operator names the caller for whom a person signs in.

use super::SignInTarget;
use crate::config::{Config, RemoteAddress};
use std::path::Path;
use toolgate_auth::client::{CredentialStore, FileCredentialStore, OAuthCredential, StoreError};
use toolgate_core::visible_line;
use toolgate_policy::{Approver, keys::ApiKeys};

/// Deleted credentials, with their keys in the store.
pub(crate) type DeletedCredentials = Vec<(String, OAuthCredential)>;

/// Returns the store key of a credential. Neither a server ID nor a URL contains a space.
pub(super) fn store_key(id: &str, address: &RemoteAddress, caller: Option<&str>) -> String {
    match caller {
        None => format!("{id} {}", address.url),
        Some(caller) => format!("{id} {} {caller}", address.url),
    }
}

/// Splits a store key into server ID, URL and caller.
pub(crate) fn split_key(key: &str) -> (&str, &str, Option<&str>) {
    let mut words = key.splitn(3, ' ');
    let mut word = || words.next();
    (
        word().unwrap_or_default(),
        word().unwrap_or_default(),
        word(),
    )
}

/// Returns the caller of a store key.
fn caller_of(key: &str) -> Option<&str> {
    split_key(key).2
}

/// Returns the servers of deleted credentials.
pub(crate) fn servers_of(forgotten: &DeletedCredentials) -> Vec<&str> {
    forgotten.iter().map(|(key, _)| split_key(key).0).collect()
}

/// Revokes a key that was just created and must not be used, because the credentials of its predecessor could not be
/// deleted. Returns a message for the operator.
pub(crate) async fn revoke_unused_key(
    keys: &ApiKeys,
    name: &str,
    who: &Approver,
    why: &str,
) -> String {
    match keys.revoke(name, who).await {
        Ok(()) => format!("no key was created: {why}"),
        Err(error) => format!(
            "{why}; a key of that name was created but not shown, and it could not be revoked: {error}; \
             run: toolgate keys revoke {name}"
        ),
    }
}

/// Checks that a name belongs to one caller only.
///
/// # Errors
/// Several callers share the name; the message says why.
pub(crate) fn check_distinguishable(caller: &str) -> Result<(), &'static str> {
    match caller.contains(':') || matches!(caller, "operator@terminal" | "operator@console") {
        true => Ok(()),
        false => Err(
            "each caller signs in separately, but callers without an API key or OAuth token cannot be told apart; call with a key from `toolgate keys create NAME`",
        ),
    }
}

/// Checks that a caller of that name can exist and can own credentials.
///
/// # Errors
/// The message is for the operator.
fn check_caller(config: &Config, caller: &str) -> Result<(), String> {
    if caller.contains('@') {
        check_distinguishable(caller)
            .map_err(|why| format!("cannot sign in for {}: {why}", visible_line(caller)))?;
    }
    let known = match caller.split_once(':') {
        Some(("key", name)) => !name.is_empty(),
        Some((issuer, subject)) => {
            !subject.is_empty() && config.auth.issuers.iter().any(|one| one.id == issuer)
        }
        None => check_distinguishable(caller).is_ok(),
    };
    match known {
        true => Ok(()),
        false => Err(format!(
            "{} is not a caller name; write key:NAME for a caller with an API key, or ISSUER:SUBJECT for a caller with a token from [auth.issuer.ISSUER]",
            visible_line(caller)
        )),
    }
}

/// Returns the stored credential of a caller.
pub(crate) async fn stored_credential(
    grants: &Path,
    id: &str,
    address: &RemoteAddress,
    caller: &str,
) -> Result<Option<OAuthCredential>, StoreError> {
    let key = store_key(id, address, Some(caller));
    FileCredentialStore::new(grants).grant(&key).await
}

/// Returns the callers with credentials for a server.
pub(crate) async fn callers_with_credentials(
    grants: &Path,
    id: &str,
    address: &RemoteAddress,
) -> Result<Vec<String>, StoreError> {
    let begin = store_key(id, address, Some(""));
    let keys = FileCredentialStore::new(grants).keys().await?;
    let callers = keys.iter().filter_map(|key| key.strip_prefix(&begin));
    Ok(callers.map(str::to_owned).collect())
}

/// Checks that a caller can sign in: it can exist, and the server's quota has space for one more.
///
/// # Errors
/// The message is for the operator.
pub(crate) async fn check_quota(config: &Config, at: SignInTarget<'_>) -> Result<(), String> {
    let SignInTarget {
        server_id: id,
        address,
        credentials_dir: grants,
        caller: Some(caller),
    } = at
    else {
        return Ok(());
    };
    check_caller(config, caller)?;
    let most = config.limits.callers_per_server;
    let callers = callers_with_credentials(grants, id, address)
        .await
        .map_err(|bad| bad.to_string())?;
    if callers.len() < most || callers.iter().any(|known| known == caller) {
        return Ok(());
    }
    Err(format!(
        "the server {id} has reached its limit of signed-in callers ({most}); sign one of them out, or raise callers_per_server in [limits]"
    ))
}

/// Deletes the credentials of an API key at every server, because the next owner of its name may be another person.
/// Returns them with their store keys.
///
/// # Errors
/// The store cannot be read or written; the message is for the operator.
pub(crate) async fn delete_key_credentials(
    grants: &Path,
    name: &str,
) -> Result<DeletedCredentials, String> {
    let forgotten = delete_credentials(grants, &format!("key:{name}")).await;
    forgotten.map_err(|bad| {
        format!(
            "the credentials of key:{name} could not be deleted: {}",
            bad
        )
    })
}

async fn delete_credentials(grants: &Path, caller: &str) -> Result<DeletedCredentials, StoreError> {
    // If no credential was ever stored, do not create the store.
    if !grants.join("grants.sealed").exists() {
        return Ok(DeletedCredentials::new());
    }
    let store = FileCredentialStore::new(grants);
    let keys = store.keys().await?;
    let mut forgotten = DeletedCredentials::new();
    for key in keys.iter().filter(|key| caller_of(key) == Some(caller)) {
        // A concurrent refresh would store it again, so take the lock. If the lock is not available, delete it
        // anyway.
        let _turn = store.refresh_lock(key).await.ok();
        let grant = store.grant(key).await.ok().flatten();
        store.put(key, None).await?;
        forgotten.extend(grant.map(|grant| (key.clone(), grant)));
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_callers_with_a_key_or_a_token_only() {
        let text = "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n\
                    [server.far]\nurl = \"https://far.test/mcp\"\ncredentials = \"per_caller\"\n";
        let config = Config::parse(Path::new("/etc/t.toml"), text).unwrap();
        for good in ["key:ci", "corp:alice", "corp:a b; c", "operator@terminal"] {
            assert_eq!(check_caller(&config, good), Ok(()), "{good}");
        }
        for (bad, told) in [
            ("anonymous@http", "cannot be told apart"),
            ("token@http", "cannot be told apart"),
            ("local@stdio", "cannot be told apart"),
            ("ci", "is not a caller name"),
            ("key:", "is not a caller name"),
            ("other:alice", "is not a caller name"),
            ("", "is not a caller name"),
        ] {
            let error = check_caller(&config, bad).unwrap_err();
            assert!(error.contains(told), "{bad}: {error}");
        }
        let address = config.servers[0].address.as_ref().unwrap();
        let kept = store_key("far", address, Some("corp:a b; c"));
        assert_eq!(caller_of(&kept), Some("corp:a b; c"));
        assert_eq!(caller_of(&store_key("far", address, None)), None);
    }
}
