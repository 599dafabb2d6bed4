//! Token refresh of an OAuth client.

use super::{
    super::{
        AuthError, AuthErrorKind, AuthorizationServerMetadata, OAuthCredential, RegisteredClient,
        discovery,
        registration::ClientIdentity,
        token_endpoint::{TokenEndpoint, TokenEndpointError},
        tokens::TokenResponse,
    },
    FlightGuard, GrantType, OAuthClient,
};
use crate::{Secret, clock::now};
use std::sync::Arc;

impl OAuthClient {
    /// Returns a token that can be used without a user; `None` if a new authorization is needed. If its issuer cannot
    /// be contacted, returns the expired token: the server's challenge then names the current issuer.
    ///
    /// # Errors
    /// No token is available, for a reason that a challenge of the server would not resolve.
    pub(super) async fn fresh_credential(&self) -> Result<Option<OAuthCredential>, AuthError> {
        self.load().await?;
        let Some(grant) = self.lock_state().grant.clone() else {
            return Ok(None);
        };
        if grant.is_fresh() {
            return Ok(Some(grant));
        }
        let got = match (&grant.refresh_token, &self.0.settings.grant_type) {
            (Some(_), _) => self.refresh(grant.access_token.clone()).await,
            (None, GrantType::StoredOnly | GrantType::AuthorizationCode(_)) => return Ok(None),
            _ => self
                .replace_expired(&grant)
                .await
                .map(|()| self.lock_state().grant.clone()),
        };
        match got {
            Err(error) if may_have_moved(&error) => Ok(Some(grant)),
            got => got,
        }
    }

    /// Refreshes the token, unless a concurrent request already did.
    async fn refresh(&self, stale: Secret) -> Result<Option<OAuthCredential>, AuthError> {
        let flight = self.acquire_flight().await;
        self.refresh_detached(flight, stale).await.0
    }

    /// Refreshes in a detached task: a canceled request must not lose the response to a single-use refresh token. The
    /// guard ends with the task or is returned.
    pub(super) async fn refresh_detached(
        &self,
        flight: FlightGuard,
        stale: Secret,
    ) -> (
        Result<Option<OAuthCredential>, AuthError>,
        Option<FlightGuard>,
    ) {
        let login = self.clone();
        let renew = async move { (login.refresh_in_flight(&stale).await, flight) };
        #[allow(
            clippy::disallowed_methods,
            reason = "one bounded exchange; cut off in the middle, it would lose a refresh token that can be used once"
        )]
        let renewing = tokio::spawn(renew);
        match renewing.await {
            Ok((done, flight)) => (done, Some(flight)),
            Err(_) => {
                let words = "the token refresh was interrupted; try again";
                (Err(AuthError::new(AuthErrorKind::Unreachable, words)), None)
            }
        }
    }

    /// Redeems the refresh token for new tokens. Requires the single-flight guard.
    async fn refresh_in_flight(
        &self,
        stale: &Secret,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        // If two processes use one refresh token, the issuer treats the second use as theft.
        let _turn = self
            .0
            .settings
            .store
            .refresh_lock(self.0.settings.key())
            .await?;
        let Some(kept) = self.0.settings.store.grant(self.0.settings.key()).await? else {
            // The user signed out.
            super::adopt_credential(&mut self.lock_state(), None)?;
            return Ok(None);
        };
        let now = self.lock_state().grant.clone();
        let good = |grant: &OAuthCredential| {
            grant.is_fresh() && !grant.access_token.matches(stale.reveal())
        };
        let before = kept.access_token.clone();
        // Another process may have refreshed first.
        let grant = if good(&kept) {
            kept
        } else {
            newer_credential(kept, now)
        };
        super::adopt_credential(&mut self.lock_state(), Some(grant.clone()))?;
        if good(&grant) {
            return Ok(Some(grant));
        }
        let Some(refresh) = grant.refresh_token.clone() else {
            return Ok(None);
        };
        if self.was_refresh_rejected(&refresh) {
            return Ok(None);
        }
        let Some((server, client)) = self.issuer_and_client(&grant).await? else {
            return Ok(None);
        };
        let binding = grant.is_dpop_bound.then(|| self.dpop_key()).transpose()?;
        let endpoint =
            TokenEndpoint::from_metadata(&server, &client, &self.0.fetcher, binding.as_deref());
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", &grant.resource),
        ];
        match endpoint.request_token(&form).await {
            Ok(answer) => {
                self.store_refreshed(before, refreshed_credential(grant, answer)?)
                    .await
            }
            Err(no) => {
                let issuer = grant.issuer;
                self.handle_refresh_failure(&refresh, &client, &issuer, no)
                    .await
            }
        }
    }

    /// Stores a refreshed credential, unless the store changed meanwhile: a process that ignores the refresh lock may
    /// have signed out or in again.
    async fn store_refreshed(
        &self,
        before: Secret,
        next: OAuthCredential,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        let kept = self.0.settings.store.grant(self.0.settings.key()).await?;
        if kept
            .as_ref()
            .is_some_and(|kept| kept.access_token.matches(before.reveal()))
        {
            self.store_credential(Some(next.clone())).await?;
            return Ok(Some(next));
        }
        super::adopt_credential(&mut self.lock_state(), kept.clone())?;
        if kept.is_none() {
            let _ = self.try_revoke(&next).await;
        }
        Ok(kept)
    }

    /// Handles a failed refresh. Returns `None` if a user has to sign in.
    async fn handle_refresh_failure(
        &self,
        refresh: &Secret,
        client: &RegisteredClient,
        issuer: &str,
        no: TokenEndpointError,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        if no.code.is_none() || no.error.kind() != AuthErrorKind::Refused {
            // Not an OAuth error: the failure may be transient, or the endpoint has moved.
            self.lock_state().server = None;
            let passing = AuthError::new(AuthErrorKind::Unreachable, no.error.to_string());
            return self.record_unreachable(issuer, Err(passing));
        }
        let over = no.code.as_deref() == Some("invalid_grant");
        // A refresh token belongs to one client, so it is useless without that client.
        if over || self.is_unknown_client(client, &no, issuer).await? {
            self.handle_invalid_refresh_token(refresh).await?;
        }
        self.record_rejected_refresh(refresh, no.error);
        Ok(None)
    }

    /// Handles an invalid refresh token: adopts the credential of another process, else deletes the stored one.
    async fn handle_invalid_refresh_token(&self, refresh: &Secret) -> Result<(), AuthError> {
        let kept = self.0.settings.store.grant(self.0.settings.key()).await?;
        let other = kept.filter(|kept| {
            !kept
                .refresh_token
                .as_ref()
                .is_some_and(|kept| kept.matches(refresh.reveal()))
        });
        match other {
            Some(other) => super::adopt_credential(&mut self.lock_state(), Some(other)),
            None => self.store_credential(None).await,
        }
    }

    /// Returns the issuer of the credential and the client it was issued to; `None` if that client no longer exists or
    /// has expired. The MCP server is not contacted: whichever issuer it names now, tokens go only to their own issuer.
    async fn issuer_and_client(
        &self,
        grant: &OAuthCredential,
    ) -> Result<Option<(Arc<AuthorizationServerMetadata>, RegisteredClient)>, AuthError> {
        let server = self.issuer_metadata(&grant.issuer).await?;
        let set = &self.0.settings;
        let client =
            client_of_credential(&set.identity, &server, set.store.as_ref(), grant).await?;
        let client =
            client.filter(|client| client.secret_expires_at.is_none_or(|until| until > now()));
        Ok(client.map(|client| (server, client)))
    }

    /// Returns the metadata of the issuer of a credential, from the cache or by discovery.
    pub(super) async fn issuer_metadata(
        &self,
        issuer: &str,
    ) -> Result<Arc<AuthorizationServerMetadata>, AuthError> {
        self.check_reachable(issuer)?;
        let known = self.lock_state().server.clone();
        if let Some(known) = known.filter(|known| known.issuer == issuer) {
            return Ok(known);
        }
        let found = discovery::find_issuer(&self.0.fetcher, &self.0.settings.server, issuer).await;
        let found = Arc::new(self.record_unreachable(issuer, found)?);
        self.lock_state().server = Some(found.clone());
        Ok(found)
    }
}

/// Returns whether the error suggests that the server has moved to another authorization server.
fn may_have_moved(error: &AuthError) -> bool {
    use AuthErrorKind::{Unreachable, Unsafe, Unsupported};
    matches!(error.kind(), Unreachable | Unsafe | Unsupported)
}

/// Returns the credential whose refresh token is still valid. Another process may have refreshed ours, and its token
/// may have expired since; or ours could not be stored.
fn newer_credential(kept: OAuthCredential, now: Option<OAuthCredential>) -> OAuthCredential {
    match now {
        Some(now) if now.expires_at > kept.expires_at => now,
        _ => kept,
    }
}

/// Returns the client that a credential was issued to.
pub(super) async fn client_of_credential(
    identity: &ClientIdentity,
    server: &AuthorizationServerMetadata,
    store: &dyn super::CredentialStore,
    grant: &OAuthCredential,
) -> Result<Option<RegisteredClient>, AuthError> {
    match &grant.client {
        // Registered dynamically; stays valid whichever client is configured now.
        Some(client) if !identity.is_own_id(&client.id) => return Ok(Some(client.clone())),
        _ => {}
    }
    if let Some(client) = identity.without_registration(server)? {
        return Ok(Some(client));
    }
    // Older versions stored credentials without a client.
    Ok(store.client(&server.issuer).await?)
}

/// Returns the credential after a refresh. Keeps the refresh token if the response contains none.
fn refreshed_credential(
    grant: OAuthCredential,
    answer: TokenResponse,
) -> Result<OAuthCredential, AuthError> {
    let bound = answer.token_type == "dpop";
    if bound != grant.is_dpop_bound || !(bound || answer.token_type == "bearer") {
        let words = "the authorization server changed the token type (bearer or DPoP-bound) on refresh, which is unsafe; sign in again";
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    Ok(OAuthCredential {
        access_token: answer.access_token,
        expires_at: answer.expires_at,
        refresh_token: answer.refresh_token.or(grant.refresh_token),
        scopes: answer.scopes.unwrap_or(grant.scopes),
        ..grant
    })
}
