//! OAuth sign-in to upstream servers. The credentials are stored in the data directory.

mod browser_flows;
mod browser_sign_ins;
pub(crate) mod caller_credentials;
mod client;
mod credential_quota;
mod identity_issuers;
mod key_generation;
mod sign_in_instructions;
mod sign_in_links;
mod sign_in_need;

pub(crate) use browser_sign_ins::{BrowserSignIns, CONSOLE_REDIRECT_PATH, CompletedSignIn};
pub(crate) use client::client_credentials_builder;
pub(crate) use identity_issuers::{IDENTITY_PATH, IdentityIssuers, PendingIdentifications};
pub(crate) use key_generation::KeyGenerationCheck;
pub(crate) use sign_in_instructions::SignInInstructions;
pub(crate) use sign_in_links::{
    IDENTITY_SEGMENT, IdentityProof, MissingSignIn, REDIRECT_SEGMENT, SIGN_IN_PATH, SignInLinks,
    SignInPages,
};
pub(crate) use sign_in_need::{ReportingCredentials, SignInNeed, SignInRequired};

use crate::config::{Config, RemoteAddress};
use credential_quota::CredentialQuota;
use std::path::{Path, PathBuf};
use toolgate_auth::{
    Secret,
    client::{FileCredentialStore, OAuthClientBuilder},
};

/// Returns the directory of the stored credentials.
pub(crate) fn credentials_dir(data: &Path) -> PathBuf {
    data.join("grants")
}

/// Target of a sign-in: the server, the caller, and the directory of the credentials.
#[derive(Clone, Copy)]
pub(crate) struct SignInTarget<'a> {
    pub(crate) server_id: &'a str,
    pub(crate) address: &'a RemoteAddress,
    pub(crate) credentials_dir: &'a Path,
    /// Caller that owns the credential, if each caller has one of its own; `None` for all callers.
    pub(crate) caller: Option<&'a str>,
}

impl<'a> SignInTarget<'a> {
    /// Finds the target of a sign-in at a server of the config, for one caller or for all.
    ///
    /// # Errors
    /// The server has no sign-in of this type; the message says why.
    pub(crate) fn find(
        config: &'a Config,
        grants: &'a Path,
        id: &'a str,
        caller: Option<&'a str>,
    ) -> Result<SignInTarget<'a>, String> {
        let server = config.servers.iter().find(|server| server.id == id);
        let server = server.ok_or_else(|| {
            if let Some(disabled) = config.disabled_reason(id) {
                return disabled;
            }
            let known: Vec<&str> = config.servers.iter().map(|s| s.id.as_str()).collect();
            format!(
                "the config has no server {id:?}; its servers are: {}",
                known.join(", ")
            )
        })?;
        let Some(address) = &server.address else {
            return Err(format!(
                "the server {id} is a local process, which has no sign-in"
            ));
        };
        if let Some(why) = address.sign_in_obstacle() {
            return Err(format!("the server {id} {why}"));
        }
        match (caller, address.has_caller_credentials()) {
            (Some(_), true) | (None, false) => Ok(SignInTarget {
                server_id: id,
                address,
                credentials_dir: grants,
                caller,
            }),
            (Some(_), false) => Err(format!(
                "the credentials for {id} are shared by all its callers; write credentials = \"per_caller\" in [server.{id}] to sign in for one of them"
            )),
            (None, true) => Err(format!(
                "each caller of the server {id} signs in separately; name the caller, for example --caller key:NAME"
            )),
        }
    }

    /// Returns the store key of the credential. It contains the server's name and URL, because the name may later
    /// refer to another server. A caller's credential has the caller in its key as well.
    pub(crate) fn store_key(&self) -> String {
        caller_credentials::store_key(self.server_id, self.address, self.caller)
    }

    /// Builds the OAuth client over the stored credential. `secret` is the client's secret or private key, if it has
    /// one.
    ///
    /// # Errors
    /// The address cannot be used for OAuth, or the key is invalid.
    pub(crate) fn oauth_client(
        &self,
        secret: Option<Secret>,
    ) -> Result<OAuthClientBuilder, String> {
        self.client_over(FileCredentialStore::new(self.credentials_dir), secret)
    }

    /// Builds the OAuth client for a sign-in. For callers, it enforces the quota of credentials, and that the API key
    /// is still the same.
    ///
    /// # Errors
    /// As for [`SignInTarget::oauth_client`].
    pub(crate) fn sign_in_client(
        &self,
        secret: Option<Secret>,
        most: usize,
        key: KeyGenerationCheck,
    ) -> Result<OAuthClientBuilder, String> {
        let store = FileCredentialStore::new(self.credentials_dir);
        if self.caller.is_none() {
            return self.client_over(store, secret);
        }
        let room = CredentialQuota {
            store,
            prefix: caller_credentials::store_key(self.server_id, self.address, Some("")),
            max_entries: most,
            generation: key,
        };
        self.client_over(room, secret)
    }

    fn client_over(
        &self,
        store: impl toolgate_auth::client::CredentialStore,
        secret: Option<Secret>,
    ) -> Result<OAuthClientBuilder, String> {
        let login = client::client_builder(self.address, secret);
        let login = login.map_err(|why| format!("the server {}: {why}", self.server_id))?;
        let hand = format!(
            "write its client_id and issuer in [server.{}]",
            self.server_id
        );
        Ok(login
            .key(&self.store_key())
            .registration_hint(&hand)
            .store(store))
    }
}
