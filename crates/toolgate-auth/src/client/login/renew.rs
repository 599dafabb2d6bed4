//! Token refresh of an OAuth client.

use super::{
    super::{
        AuthError, AuthErrorKind, AuthorizationServerMetadata, OAuthCredential, RegisteredClient,
        discovery,
        endpoint::{TokenEndpoint, TokenEndpointError},
        registration::ClientIdentity,
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
    pub(super) async fn fresh(&self) -> Result<Option<OAuthCredential>, AuthError> {
        self.load().await?;
        let Some(grant) = self.state().grant.clone() else {
            return Ok(None);
        };
        if grant.is_fresh() {
            return Ok(Some(grant));
        }
        let got = match (&grant.refresh, &self.0.set.way) {
            (Some(_), _) => self.renewed(grant.access.clone()).await,
            (None, GrantType::Nobody | GrantType::Person(_)) => return Ok(None),
            _ => self
                .again(&grant)
                .await
                .map(|()| self.state().grant.clone()),
        };
        match got {
            Err(error) if may_be_moved(&error) => Ok(Some(grant)),
            got => got,
        }
    }

    /// Refreshes the token, unless a concurrent request already did.
    async fn renewed(&self, stale: Secret) -> Result<Option<OAuthCredential>, AuthError> {
        let flight = self.flight().await;
        self.renew_to_the_end(flight, stale).await.0
    }

    /// Refreshes in a detached task: a canceled request must not lose the response to a single-use refresh token. The
    /// guard ends with the task or is returned.
    pub(super) async fn renew_to_the_end(
        &self,
        flight: FlightGuard,
        stale: Secret,
    ) -> (
        Result<Option<OAuthCredential>, AuthError>,
        Option<FlightGuard>,
    ) {
        let login = self.clone();
        let renew = async move { (login.renew(&stale).await, flight) };
        #[allow(
            clippy::disallowed_methods,
            reason = "one bounded exchange; cut off in the middle, it would lose a refresh token that can be used once"
        )]
        let renewing = tokio::spawn(renew);
        match renewing.await {
            Ok((done, flight)) => (done, Some(flight)),
            Err(_) => {
                let words = "the token refresh was interrupted";
                (Err(AuthError::new(AuthErrorKind::Unreachable, words)), None)
            }
        }
    }

    /// Redeems the refresh token for new tokens. Requires the single-flight guard.
    async fn renew(&self, stale: &Secret) -> Result<Option<OAuthCredential>, AuthError> {
        // If two processes use one refresh token, the issuer treats the second use as theft.
        let _turn = self.0.set.store.turn(self.0.set.key()).await?;
        let Some(kept) = self.0.set.store.grant(self.0.set.key()).await? else {
            // The user signed out.
            super::adopt(&mut self.state(), None)?;
            return Ok(None);
        };
        let now = self.state().grant.clone();
        let good = |grant: &OAuthCredential| grant.is_fresh() && !grant.access.is(stale.reveal());
        let before = kept.access.clone();
        // Another process may have refreshed first.
        let grant = if good(&kept) { kept } else { later(kept, now) };
        super::adopt(&mut self.state(), Some(grant.clone()))?;
        if good(&grant) {
            return Ok(Some(grant));
        }
        let Some(refresh) = grant.refresh.clone() else {
            return Ok(None);
        };
        if self.was_not_taken(&refresh) {
            return Ok(None);
        }
        let Some((server, client)) = self.who(&grant).await? else {
            return Ok(None);
        };
        let binding = grant.bound.then(|| self.binding()).transpose()?;
        let endpoint = TokenEndpoint::of(&server, &client, &self.0.fetcher, binding.as_deref());
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", &grant.resource),
        ];
        match endpoint.ask(&form).await {
            Ok(answer) => self.keep_renewed(before, next(grant, answer)?).await,
            Err(no) => {
                let issuer = grant.issuer;
                self.not_renewed(&refresh, &client, &issuer, no).await
            }
        }
    }

    /// Stores a refreshed credential, unless the store changed meanwhile: a process that ignores the refresh lock may
    /// have signed out or in again.
    async fn keep_renewed(
        &self,
        before: Secret,
        next: OAuthCredential,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        if kept
            .as_ref()
            .is_some_and(|kept| kept.access.is(before.reveal()))
        {
            self.put(Some(next.clone())).await?;
            return Ok(Some(next));
        }
        super::adopt(&mut self.state(), kept.clone())?;
        if kept.is_none() {
            let _ = self.told(&next).await;
        }
        Ok(kept)
    }

    /// Handles a failed refresh. Returns `None` if a user has to sign in.
    async fn not_renewed(
        &self,
        refresh: &Secret,
        client: &RegisteredClient,
        issuer: &str,
        no: TokenEndpointError,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        if no.code.is_none() || no.error.kind() != AuthErrorKind::Refused {
            // Not an OAuth error: the failure may be transient, or the endpoint has moved.
            self.state().server = None;
            let passing = AuthError::new(AuthErrorKind::Unreachable, no.error.to_string());
            return self.away(issuer, Err(passing));
        }
        let over = no.code.as_deref() == Some("invalid_grant");
        // A refresh token belongs to one client, so it is useless without that client.
        if over || self.is_unknown(client, &no, issuer).await? {
            self.gone(refresh).await?;
        }
        self.not_taken(refresh, no.error);
        Ok(None)
    }

    /// Handles an invalid refresh token: adopts the credential of another process, else deletes the stored one.
    async fn gone(&self, refresh: &Secret) -> Result<(), AuthError> {
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        let other = kept.filter(|kept| {
            !kept
                .refresh
                .as_ref()
                .is_some_and(|kept| kept.is(refresh.reveal()))
        });
        match other {
            Some(other) => super::adopt(&mut self.state(), Some(other)),
            None => self.put(None).await,
        }
    }

    /// Returns the issuer of the credential and the client it was issued to; `None` if that client no longer exists or
    /// has expired. The MCP server is not contacted: whichever issuer it names now, tokens go only to their own issuer.
    async fn who(
        &self,
        grant: &OAuthCredential,
    ) -> Result<Option<(Arc<AuthorizationServerMetadata>, RegisteredClient)>, AuthError> {
        let server = self.granter(&grant.issuer).await?;
        let set = &self.0.set;
        let client = kept_client(&set.identity, &server, set.store.as_ref(), grant).await?;
        let client = client.filter(|client| client.until.is_none_or(|until| until > now()));
        Ok(client.map(|client| (server, client)))
    }

    /// Returns the metadata of the issuer of a credential, from the cache or by discovery.
    pub(super) async fn granter(
        &self,
        issuer: &str,
    ) -> Result<Arc<AuthorizationServerMetadata>, AuthError> {
        self.is_there(issuer)?;
        let known = self.state().server.clone();
        if let Some(known) = known.filter(|known| known.issuer == issuer) {
            return Ok(known);
        }
        let found = discovery::granter(&self.0.fetcher, &self.0.set.server, issuer).await;
        let found = Arc::new(self.away(issuer, found)?);
        self.state().server = Some(found.clone());
        Ok(found)
    }
}

/// Returns whether the error suggests that the server has moved to another authorization server.
fn may_be_moved(error: &AuthError) -> bool {
    use AuthErrorKind::{Unreachable, Unsafe, Unsupported};
    matches!(error.kind(), Unreachable | Unsafe | Unsupported)
}

/// Returns the credential whose refresh token is still valid. Another process may have refreshed ours, and its token
/// may have expired since; or ours could not be stored.
fn later(kept: OAuthCredential, now: Option<OAuthCredential>) -> OAuthCredential {
    match now {
        Some(now) if now.until > kept.until => now,
        _ => kept,
    }
}

/// Returns the client that a credential was issued to.
pub(super) async fn kept_client(
    identity: &ClientIdentity,
    server: &AuthorizationServerMetadata,
    store: &dyn super::CredentialStore,
    grant: &OAuthCredential,
) -> Result<Option<RegisteredClient>, AuthError> {
    match &grant.client {
        // Registered dynamically; stays valid whichever client is configured now.
        Some(client) if !identity.is(&client.id) => return Ok(Some(client.clone())),
        _ => {}
    }
    if let Some(client) = identity.known(server)? {
        return Ok(Some(client));
    }
    // Older versions stored credentials without a client.
    Ok(store.client(&server.issuer).await?)
}

/// Returns the credential after a refresh. Keeps the refresh token if the response contains none.
fn next(grant: OAuthCredential, answer: TokenResponse) -> Result<OAuthCredential, AuthError> {
    let bound = answer.kind == "dpop";
    if bound != grant.bound || !(bound || answer.kind == "bearer") {
        let words = "the refreshed token has another type than the previous one";
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    Ok(OAuthCredential {
        access: answer.access,
        until: answer.until,
        refresh: answer.refresh.or(grant.refresh),
        scopes: answer.scopes.unwrap_or(grant.scopes),
        ..grant
    })
}
