//! A new token for one that ends.

use super::{
    super::{
        AuthError, AuthErrorKind, Grant, OauthClient, ServerMetadata, discovery,
        endpoint::Endpoint, registration::Identity, tokens::Answer,
    },
    Flight, Login, Way,
};
use crate::Secret;
use std::sync::Arc;

impl Login {
    /// A fresh token where there can be one without a person; nothing where a flow has to begin anew.
    ///
    /// # Errors
    /// It could be renewed, and that failed for a reason that may pass.
    pub(super) async fn fresh(&self) -> Result<Option<Grant>, AuthError> {
        self.load().await?;
        let grant = self.state().grant.clone();
        match grant {
            Some(grant) if grant.is_fresh() => Ok(Some(grant)),
            Some(grant) if grant.refresh.is_some() => self.renewed(grant.access).await,
            Some(_) if !matches!(self.0.set.way, Way::Nobody | Way::Person(_)) => {
                self.authorize(None, None).await?;
                Ok(self.state().grant.clone())
            }
            _ => Ok(None),
        }
    }

    /// Renews, unless somebody else did meanwhile.
    async fn renewed(&self, stale: Secret) -> Result<Option<Grant>, AuthError> {
        let flight = self.flight().await;
        self.renew_to_the_end(flight, stale).await.0
    }

    /// Renews in a task of its own: who waits for it may go away, and a refresh token that was given for a new one must
    /// not be lost with the answer. The flight ends with the task, or comes back.
    pub(super) async fn renew_to_the_end(
        &self,
        flight: Flight,
        stale: Secret,
    ) -> (Result<Option<Grant>, AuthError>, Option<Flight>) {
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
                let words = "renewing the token was cut off";
                (Err(AuthError::new(AuthErrorKind::Unreachable, words)), None)
            }
        }
    }

    /// Gives the refresh token for new tokens. Only in flight.
    async fn renew(&self, stale: &Secret) -> Result<Option<Grant>, AuthError> {
        // Of two processes that renew with one refresh token, the issuer takes the second for a thief.
        let _turn = self.0.set.store.turn(self.0.set.key()).await?;
        let Some(kept) = self.0.set.store.grant(self.0.set.key()).await? else {
            // Somebody signed out.
            super::adopt(&mut self.state(), None)?;
            return Ok(None);
        };
        let now = self.state().grant.clone();
        let good = |grant: &Grant| grant.is_fresh() && !grant.access.is(stale.reveal());
        // Another process may have been first.
        let grant = if good(&kept) { kept } else { later(kept, now) };
        super::adopt(&mut self.state(), Some(grant.clone()))?;
        if good(&grant) {
            return Ok(Some(grant));
        }
        let Some(refresh) = grant.refresh.clone() else {
            return Ok(None);
        };
        let Some((server, client)) = self.who(&grant).await? else {
            // Not the one that granted it: to that one, our tokens say nothing.
            self.put(None).await?;
            return Ok(None);
        };
        let binding = grant.bound.then(|| self.binding()).transpose()?;
        let endpoint = Endpoint::of(&server, &client, &self.0.fetcher, binding.as_deref());
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", &grant.resource),
        ];
        match endpoint.ask(&form).await {
            Ok(answer) => {
                let next = next(grant, answer)?;
                self.put(Some(next.clone())).await?;
                Ok(Some(next))
            }
            Err(no) if no.code.as_deref() == Some("invalid_grant") => {
                self.gone(&refresh).await?;
                Ok(None)
            }
            Err(no) => Err(no.error),
        }
    }

    /// The refresh token is no longer taken: another process may have used it, else the grant is over.
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

    /// Who granted it, and who we are there; nothing where the server has another authorization server now.
    async fn who(&self, grant: &Grant) -> Result<Option<(ServerMetadata, OauthClient)>, AuthError> {
        let found = self.state().found.clone();
        let found = match found {
            Some(found) if found.server.issuer == grant.issuer => found,
            _ => {
                let found = discovery::find(
                    &self.0.fetcher,
                    &self.0.set.server,
                    None,
                    Some(&grant.issuer),
                )
                .await?;
                Arc::new(found)
            }
        };
        if found.server.issuer != grant.issuer {
            return Ok(None);
        }
        let client = kept_client(
            &self.0.set.identity,
            &found.server,
            self.0.set.store.as_ref(),
            grant,
        )
        .await?;
        let server = found.server.clone();
        self.state().found = Some(found);
        Ok(client.map(|client| (server, client)))
    }
}

/// The one whose refresh token is still good: another process may have renewed what we hold, and what it kept may have
/// ended since; or what we hold could not be kept.
fn later(kept: Grant, now: Option<Grant>) -> Grant {
    match now {
        Some(now) if now.until > kept.until => now,
        _ => kept,
    }
}

/// Who we were when it was granted.
pub(super) async fn kept_client(
    identity: &Identity,
    server: &ServerMetadata,
    store: &dyn super::Store,
    grant: &Grant,
) -> Result<Option<OauthClient>, AuthError> {
    if let Some(client) = identity.known(server)?.or_else(|| grant.client.clone()) {
        return Ok(Some(client));
    }
    // What older versions kept says no client.
    Ok(store.client(&server.issuer).await?)
}

/// The grant after a renewal. A refresh token that is not replaced stays.
fn next(grant: Grant, answer: Answer) -> Result<Grant, AuthError> {
    let bound = answer.kind == "dpop";
    if bound != grant.bound || !(bound || answer.kind == "bearer") {
        let words = "the renewed token is of another kind than the one before";
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    Ok(Grant {
        access: answer.access,
        until: answer.until,
        refresh: answer.refresh.or(grant.refresh),
        scopes: answer.scopes.unwrap_or(grant.scopes),
        ..grant
    })
}
