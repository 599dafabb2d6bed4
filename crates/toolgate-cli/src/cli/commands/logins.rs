//! `toolgate logins` and `toolgate logout`: stored OAuth credentials, also of servers that the config no longer
//! contains.

use super::{
    CommandError, DataLocation, Result,
    explain::runtime,
    login::{SignInChange, client_credential, notify_gateways, server_and_caller},
    print,
};
use crate::{
    args::LogoutOptions,
    config::Config,
    oauth::{self, SignInTarget, caller_credentials},
    timestamp::format_timestamp,
};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode};
use toolgate_auth::{
    Url,
    client::{CredentialStore, FileCredentialStore, OAuthClient, OAuthCredential, SignedOut},
};
use toolgate_core::{visible, visible_line};

/// Lists the stored credentials.
pub(super) fn list(place: &DataLocation<'_>, json: bool) -> Result<ExitCode> {
    let grants = oauth::credentials_dir(&place.data()?);
    let config = place.config();
    if let Err(CommandError::Usage(why) | CommandError::Failure(why)) = &config {
        eprintln!(
            "toolgate: the list does not show which server uses which credentials, because the config cannot be read: {}",
            visible(why)
        );
    }
    let config = config.ok();
    let kept = runtime()?.block_on(async {
        let mut kept = Vec::new();
        for key in keys(&grants).await? {
            let grant = FileCredentialStore::new(&*grants).grant(&key).await;
            if let Some(grant) = grant.map_err(|bad| CommandError::Failure(bad.to_string()))? {
                kept.push((key, grant));
            }
        }
        Ok::<_, CommandError>(kept)
    })?;
    if kept.is_empty() && !json {
        eprintln!("no credentials are stored; `toolgate login SERVER` signs in");
    }
    let shown = kept.iter().map(|(key, grant)| {
        let one = credential_json(key, grant, config.as_ref());
        match json {
            true => format!("{one}\n"),
            false => line(&one),
        }
    });
    print(&shown.collect::<String>())
}

/// Returns the stored credentials as JSON, without the tokens.
fn credential_json(key: &str, grant: &OAuthCredential, config: Option<&Config>) -> Value {
    let (server, url, caller) = caller_credentials::split_key(key);
    json!({
        "server": server, "address": url.split(['?', '#']).next(), "caller": caller, "issuer": grant.issuer,
        "scopes": grant.scopes.to_string(), "until": grant.expires_at.map(|until| until.saturating_mul(1000)),
        "renews": grant.refresh_token.is_some(), "used": config.map(|config| is_used(config, key)),
    })
}

/// Returns the configured server that uses the credentials with this key.
fn server_of_key<'a>(
    config: &'a Config,
    grants: &'a Path,
    key: &'a str,
) -> Option<SignInTarget<'a>> {
    let (id, url, caller) = caller_credentials::split_key(key);
    let at = SignInTarget::find(config, grants, id, caller).ok()?;
    (at.address.url == url).then_some(at)
}

/// Returns true if a configured server uses the credentials with this key.
fn is_used(config: &Config, key: &str) -> bool {
    server_of_key(config, Path::new(""), key).is_some()
}

fn line(one: &Value) -> String {
    let word = |key: &str| visible_line(one[key].as_str().unwrap_or_default());
    let for_whom = match one["caller"].as_str() {
        Some(caller) => format!("for {}", visible_line(caller)),
        None => "for all callers".to_owned(),
    };
    let scopes = match word("scopes") {
        none if none.is_empty() => String::new(),
        scopes => format!("; scopes: {scopes}"),
    };
    let lasts = match (&one["renews"], &one["until"]) {
        (Value::Bool(true), _) => "refreshed automatically".to_owned(),
        (_, Value::Null) => "expiry unknown".to_owned(),
        (_, until) => format!(
            "expires {} and cannot be refreshed",
            format_timestamp(until)
        ),
    };
    let orphan = match one["used"] {
        Value::Bool(false) => "; no configured server uses them; `toolgate logout` deletes them",
        _ => "",
    };
    format!(
        "{:<16} {} {for_whom}; issued by {}{scopes}; {lasts}{orphan}\n",
        word("server"),
        word("address"),
        word("issuer")
    )
}

/// Deletes stored credentials, and revokes them at their issuer if it supports that.
pub(super) fn sign_out(place: &DataLocation<'_>, wanted: &LogoutOptions) -> Result<ExitCode> {
    if wanted.server.is_none() && !wanted.all {
        let why = "name a server, as `toolgate logins` shows it, or pass --all to delete all stored credentials";
        return Err(CommandError::Usage(why.to_owned()));
    }
    let config = place.config()?;
    let data = place.data_with(&config)?;
    let grants = oauth::credentials_dir(&data);
    let (id, caller) = (wanted.server.as_deref(), wanted.caller.as_deref());
    let runtime = runtime()?;
    let keys = runtime.block_on(keys(&grants))?;
    let fits = |key: &&String| {
        let (server, _, of) = caller_credentials::split_key(key);
        id.is_none_or(|id| id == server) && (wanted.all || caller == of)
    };
    let keys: Vec<&String> = keys.iter().filter(fits).collect();
    if keys.is_empty() {
        return Err(nothing_stored(&config, id, caller, wanted.all));
    }
    for key in keys {
        let (server, _, caller) = caller_credentials::split_key(key);
        let login = oauth_client(&config, &grants, key)?;
        let out = runtime.block_on(login.sign_out());
        let words =
            describe_sign_out(out.map_err(|error| CommandError::Failure(error.for_operator()))?);
        notify_gateways(place, &data, SignInChange::SignedOut, server, caller);
        let id = server_and_caller(&visible_line(server), caller);
        print(&format!("the credentials for {id} are deleted; {words}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a missing credential.
fn nothing_stored(
    config: &Config,
    id: Option<&str>,
    caller: Option<&str>,
    all: bool,
) -> CommandError {
    match (id, all) {
        (None, _) => CommandError::Failure("no credentials are stored".to_owned()),
        (Some(id), true) => CommandError::Failure(format!("no credentials are stored for {id}")),
        (Some(id), false) => match SignInTarget::find(config, Path::new(""), id, caller) {
            Ok(_) => CommandError::Failure(format!(
                "no credentials are stored for {}",
                server_and_caller(id, caller)
            )),
            Err(why) => CommandError::Usage(format!(
                "{why}; `toolgate logins` lists the stored credentials"
            )),
        },
    }
}

/// Returns the OAuth client for stored credentials: with the settings of the config if a server uses them, else with
/// the
/// issuer and client that the credentials name.
fn oauth_client(config: &Config, grants: &Path, key: &str) -> Result<OAuthClient> {
    // A missing client secret must not prevent the deletion.
    if let Some(at) = server_of_key(config, grants, key)
        && let Ok(secret) = client_credential(config, at)
        && let Ok(login) = at.oauth_client(secret)
    {
        return Ok(login.build());
    }
    let (id, url, _) = caller_credentials::split_key(key);
    let url = Url::parse(url).map_err(|bad| {
        format!(
            "the stored credentials for {id} have an invalid URL ({bad}); delete their file in {}",
            grants.display()
        )
    })?;
    let login = OAuthClient::builder(url).key(key).name("Toolgate");
    Ok(login.store(FileCredentialStore::new(grants)).build())
}

/// Describes the result of a sign-out.
fn describe_sign_out(out: SignedOut) -> String {
    let still = "the tokens stay valid until they expire";
    match out {
        SignedOut::Revoked(issuer) => format!("{} revoked them", visible(&issuer)),
        SignedOut::Deleted(issuer) => {
            format!("{} does not support revocation: {still}", visible(&issuer))
        }
        SignedOut::RevocationFailed(issuer, error) => {
            format!(
                "{} did not revoke them ({error}): {still}",
                visible(&issuer)
            )
        }
        _ => "there was nothing to revoke".to_owned(),
    }
}

/// Returns the keys of the stored credentials.
async fn keys(grants: &Path) -> Result<Vec<String>> {
    // Do not create the store if it does not exist.
    if !grants.join("grants.sealed").exists() {
        return Ok(Vec::new());
    }
    let keys = FileCredentialStore::new(grants).keys().await;
    keys.map_err(|bad| CommandError::Failure(bad.to_string()))
}
