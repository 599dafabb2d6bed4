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
    cli::output::{OutputTable, OutputTime, TableColumn, print_json},
    config::Config,
    oauth::{self, SignInTarget, caller_credentials},
};
use schemars::JsonSchema;
use serde::Serialize;
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
    let logins = kept
        .iter()
        .map(|(key, grant)| LoginOutput::new(key, grant, config.as_ref()));
    let logins: Vec<LoginOutput> = logins.collect();
    if json {
        return print_json(&logins);
    }
    if logins.is_empty() {
        eprintln!("no credentials are stored; `toolgate login SERVER` signs in");
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    for login in &logins {
        table.add([visible_line(&login.server), login.text()]);
    }
    print(&table.text())
}

/// Stored credentials of a server, without the tokens.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct LoginOutput {
    /// Server in the config.
    server: String,
    /// URL of the server, without its query.
    url: String,
    /// Caller; `null` for all callers.
    caller: Option<String>,
    /// Authorization server that issued the credentials.
    issuer: String,
    /// Granted scopes.
    scopes: Vec<String>,
    /// Time at which the access token expires; `null` if unknown.
    expires_at: Option<OutputTime>,
    /// True if the gateway refreshes the access token.
    renews: bool,
    /// True if a configured server uses the credentials; `null` if the config cannot be read.
    used: Option<bool>,
}

impl LoginOutput {
    fn new(key: &str, grant: &OAuthCredential, config: Option<&Config>) -> LoginOutput {
        let (server, url, caller) = caller_credentials::split_key(key);
        let expires_at = grant.expires_at.map(|until| until.saturating_mul(1000));
        LoginOutput {
            server: server.to_owned(),
            url: url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            caller: caller.map(str::to_owned),
            issuer: grant.issuer.to_string(),
            scopes: grant
                .scopes
                .to_string()
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            expires_at: expires_at.map(OutputTime::from_millis),
            renews: grant.refresh_token.is_some(),
            used: config.map(|config| is_used(config, key)),
        }
    }

    fn text(&self) -> String {
        let caller = match &self.caller {
            Some(caller) => format!("for {}", visible_line(caller)),
            None => "for all callers".to_owned(),
        };
        let scopes = match visible_line(&self.scopes.join(" ")) {
            none if none.is_empty() => String::new(),
            scopes => format!("; scopes: {scopes}"),
        };
        let lasts = match (self.renews, self.expires_at) {
            (true, _) => "refreshed automatically".to_owned(),
            (_, None) => "expiry unknown".to_owned(),
            (_, Some(until)) => format!("expires {until} and cannot be refreshed"),
        };
        let orphan = match self.used {
            Some(false) => "; no configured server uses them; `toolgate logout` deletes them",
            _ => "",
        };
        format!(
            "{} {caller}; issued by {}{scopes}; {lasts}{orphan}",
            visible_line(&self.url),
            visible_line(&self.issuer)
        )
    }
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
