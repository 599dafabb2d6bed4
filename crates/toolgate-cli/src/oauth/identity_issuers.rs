//! Users of issuers, who prove their identity on a page of the gateway.

use super::browser_flows::{BrowserFlowPurpose, BrowserFlows};
use crate::{authentication, config::Config};
use std::{collections::BTreeMap, sync::Arc};
use toolgate_auth::{
    Secret, Url,
    client::{ClientAuthentication, RegisteredClient, ScopeSet, UserIdentification},
};

/// Error for an authorization response that is not accepted.
const UNEXPECTED_IDENTITY_MESSAGE: &str = "this response does not belong to a sign-in that began on this page; have the program call the tool again";

/// Issuers at which users can prove their identity, with the OAuth client for each.
#[derive(Default)]
pub(crate) struct IdentityIssuers(BTreeMap<String, Arc<UserIdentification>>);

impl IdentityIssuers {
    /// Builds the clients for the issuers of the config, with the client secret of each issuer.
    pub(crate) fn build(config: &Config, secrets: Vec<Option<Secret>>) -> IdentityIssuers {
        let mut users = IdentityIssuers::default();
        let Some(resource) = &config.auth.resource else {
            return users;
        };
        for (issuer, secret) in config.auth.issuers.iter().zip(secrets) {
            let Some(set) = &issuer.sign_in else { continue };
            let authenticate = match secret {
                Some(secret) => ClientAuthentication::Secret(secret),
                None => ClientAuthentication::None,
            };
            let client = RegisteredClient::new(set.client_id.as_str(), authenticate);
            let asks = UserIdentification::new(issuer.url.clone(), resource.clone(), client)
                .scopes(ScopeSet::from_scopes(set.scopes.iter().map(String::as_str)))
                .reach(issuer.address_policy())
                .limits(authentication::issuer_limits(config).0);
            users.0.insert(issuer.id.clone(), Arc::new(asks));
        }
        users
    }

    /// Returns the names of the issuers.
    pub(crate) fn issuers(&self) -> Arc<[String]> {
        self.0.keys().cloned().collect()
    }

    /// Returns the client with which a user of an issuer proves their identity.
    pub(crate) fn find(&self, issuer: &str) -> Option<Arc<UserIdentification>> {
        self.0.get(issuer).cloned()
    }
}

/// Pending sign-ins by which users prove their identity.
pub(crate) struct PendingIdentifications(BrowserFlows<Secret>);

impl PendingIdentifications {
    /// Creates an empty set.
    pub(crate) fn new() -> PendingIdentifications {
        PendingIdentifications(BrowserFlows::new(UNEXPECTED_IDENTITY_MESSAGE))
    }

    /// Sends the user behind a caller to its issuer, and returns the page. An earlier attempt for the same caller is
    /// canceled.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn begin(
        &self,
        (issuer, caller): (&str, &str),
        asks: Arc<UserIdentification>,
        redirect: String,
        key: &str,
    ) -> Result<Url, String> {
        let what = BrowserFlowPurpose {
            target: issuer.to_owned(),
            caller: Some(caller.to_owned()),
        };
        self.0.cancel(&what);
        let work = |person| async move { asks.token(&person).await };
        let begun = self.0.begin(what, redirect, (key, None), work).await?;
        Ok(begun.page)
    }

    /// Returns the access token with which the user returned.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn end(&self, query: &str, key: &str) -> Result<Secret, String> {
        self.0.end(query, key, |_, token| token).await
    }
}
