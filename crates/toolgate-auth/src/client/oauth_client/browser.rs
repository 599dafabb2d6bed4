//! Browser part of a sign-in: authorization request, redirect, and code redemption.

use super::{
    super::{
        AuthError, DiscoveredResource, OAuthCredential, RegisteredClient, ScopeSet, SignIn,
        authorization_code::AuthorizationRequest,
        dpop::DpopKey,
        token_endpoint::{TokenEndpoint, TokenEndpointError},
        tokens::TokenResponse,
    },
    OAuthClient,
};

/// OAuth error codes of an unknown client or one without this grant type.
const UNKNOWN_CLIENT_ERRORS: [&str; 2] = ["invalid_client", "unauthorized_client"];

impl OAuthClient {
    /// Runs the authorization code flow and returns the tokens with the client that they belong to.
    pub(super) async fn authorize_in_browser(
        &self,
        person: &dyn SignIn,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
        binding: Option<&DpopKey>,
    ) -> Result<(TokenResponse, RegisteredClient), AuthError> {
        let set = &self.0.settings;
        let server = &found.server;
        let kept = set.store.client(&server.issuer).await?;
        let known = set.identity.without_registration(server)?;
        let wanted = known.as_ref().or(kept.as_ref());
        let mut visit = person
            .begin(wanted.and_then(|client| client.redirect_uri.as_deref()))
            .await?;
        let redirect = visit.redirect_uri().to_owned();
        let forget = known.is_none() && kept.is_some();
        let at = set
            .identity
            .resolve(server, &redirect, &self.0.fetcher, kept);
        let client = at.await?;
        let pending = AuthorizationRequest::new(found, &client, &redirect)?;
        let url = pending.authorization_url(scopes, set.policy)?;
        // An authorization server that does not know the client sends no redirect, so a registration is stored only
        // after one.
        if forget {
            set.store.put_client(&server.issuer, None).await?;
        }
        visit.announce_issuer(&server.issuer);
        let query = visit.open_and_wait(url).await?;
        let code = pending.validate_redirect(&query)?;
        if known.is_none() {
            let kept = Some(client.clone());
            set.store.put_client(&server.issuer, kept).await?;
        }
        let endpoint = TokenEndpoint::from_metadata(server, &client, &self.0.fetcher, binding);
        match pending.redeem(&code, &endpoint).await {
            Ok(answer) => Ok((answer, client)),
            Err(no) => {
                self.is_unknown_client(&client, &no, &server.issuer).await?;
                Err(no.error)
            }
        }
    }

    /// Returns whether an issuer rejects a client that we registered dynamically. If so, deletes the registration, so
    /// that the next sign-in registers again.
    pub(super) async fn is_unknown_client(
        &self,
        client: &RegisteredClient,
        no: &TokenEndpointError,
        issuer: &str,
    ) -> Result<bool, AuthError> {
        let ours = client.redirect_uri.is_some() && !self.0.settings.identity.is_own_id(&client.id);
        let unknown = no
            .code
            .as_deref()
            .is_some_and(|no| UNKNOWN_CLIENT_ERRORS.contains(&no));
        if !ours || !unknown {
            return Ok(false);
        }
        self.forget_client(issuer, &client.id).await?;
        Ok(true)
    }

    /// Deletes the registration that a credential was issued to. Other credentials have their own copy.
    pub(super) async fn forget_registration(
        &self,
        grant: &OAuthCredential,
    ) -> Result<(), AuthError> {
        match &grant.client {
            Some(client) => self.forget_client(&grant.issuer, &client.id).await,
            None => Ok(()),
        }
    }

    async fn forget_client(&self, issuer: &str, id: &str) -> Result<(), AuthError> {
        let store = &self.0.settings.store;
        let kept = store.client(issuer).await?;
        if kept.is_some_and(|kept| kept.id == id) {
            store.put_client(issuer, None).await?;
        }
        Ok(())
    }
}
