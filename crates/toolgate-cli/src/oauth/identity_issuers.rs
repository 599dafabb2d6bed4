//! Users of issuers, who prove their identity on a page of the gateway.

use super::browser_flows::{BrowserFlowPurpose, BrowserFlows};
use crate::{authentication, config::Config};
use std::{collections::BTreeMap, sync::Arc};
use toolgate_auth::{
    Secret, Url,
    client::{ClientAuthentication, RegisteredClient, ScopeSet, UserIdentification},
};

/// Path of the page to which an issuer sends people who sign in to the console.
pub(crate) const IDENTITY_PATH: &str = "/console/identity";

/// Error for an authorization response that is not accepted.
const UNEXPECTED_IDENTITY_MESSAGE: &str = "this response does not belong to a sign-in that began on this page; have the program call the tool again";

/// Error for an authorization response that the console does not accept.
const UNEXPECTED_CONSOLE_MESSAGE: &str = "this response does not belong to a sign-in that began in this tab, or it took longer than five minutes; sign in again";
/// Maximum number of pending sign-ins to the console from one address.
const MAX_PENDING_PER_ADDRESS: usize = 6;

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

    /// Creates an empty set for people who sign in to the console.
    pub(crate) fn of_console() -> PendingIdentifications {
        PendingIdentifications(BrowserFlows::new(UNEXPECTED_CONSOLE_MESSAGE))
    }

    /// Sends a person at an address of the network to an issuer, and returns its page. The number of pending sign-ins
    /// of an address is limited, because nobody has signed in yet.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn begin_at_console(
        &self,
        (issuer, network): (&str, &str),
        asks: Arc<UserIdentification>,
        redirect: String,
        key: &str,
    ) -> Result<Url, String> {
        let what = BrowserFlowPurpose {
            target: issuer.to_owned(),
            caller: Some(network.to_owned()),
        };
        if self.0.pending_count(&what) >= MAX_PENDING_PER_ADDRESS {
            return Err(format!(
                "{MAX_PENDING_PER_ADDRESS} sign-ins from your address are open already; complete one of them, or wait five minutes"
            ));
        }
        self.send_to_issuer(what, asks, redirect, key).await
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
        self.send_to_issuer(what, asks, redirect, key).await
    }

    async fn send_to_issuer(
        &self,
        what: BrowserFlowPurpose,
        asks: Arc<UserIdentification>,
        redirect: String,
        key: &str,
    ) -> Result<Url, String> {
        let work = |person| async move { asks.token(&person).await };
        let begun = self.0.begin(what, redirect, (key, None), work).await?;
        Ok(begun.page)
    }

    /// Returns the access token with which the user returned.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn end(&self, query: &str, key: &str) -> Result<Secret, String> {
        Ok(self.end_at_issuer(query, key).await?.1)
    }

    /// Handles the response of an issuer, and returns the name of the issuer to which the user was sent, with the token.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn end_at_issuer(
        &self,
        query: &str,
        key: &str,
    ) -> Result<(String, Secret), String> {
        self.0
            .end(query, key, |what, token| (what.target, token))
            .await
    }
}
