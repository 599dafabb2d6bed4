//! A new token for one that ends.

use super::{
    super::{
        AuthError, AuthErrorKind, Grant, OauthClient, ServerMetadata, discovery,
        endpoint::{Endpoint, NoToken},
        registration::Identity,
        tokens::Answer,
    },
    Flight, Login, Way,
};
use crate::{Secret, clock::now};
use std::sync::Arc;

impl Login {
    /// A token where there can be one without a person; nothing where a flow has to begin anew. Where who granted it
    /// cannot be asked, it is the one that ended: the server refuses it, and says whom to ask.
    ///
    /// # Errors
    /// There is none, for a reason that the server does not know better.
    pub(super) async fn fresh(&self) -> Result<Option<Grant>, AuthError> {
        self.load().await?;
        let Some(grant) = self.state().grant.clone() else {
            return Ok(None);
        };
        if grant.is_fresh() {
            return Ok(Some(grant));
        }
        let got = match (&grant.refresh, &self.0.set.way) {
            (Some(_), _) => self.renewed(grant.access.clone()).await,
            (None, Way::Nobody | Way::Person(_)) => return Ok(None),
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
        let before = kept.access.clone();
        // Another process may have been first.
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
        let endpoint = Endpoint::of(&server, &client, &self.0.fetcher, binding.as_deref());
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

    /// Keeps what came of a renewal, unless there is something else by now: whoever takes no turns may have signed out,
    /// or in again.
    async fn keep_renewed(&self, before: Secret, next: Grant) -> Result<Option<Grant>, AuthError> {
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

    /// Why there is no new token: nothing where somebody has to sign in.
    async fn not_renewed(
        &self,
        refresh: &Secret,
        client: &OauthClient,
        issuer: &str,
        no: NoToken,
    ) -> Result<Option<Grant>, AuthError> {
        if no.code.is_none() || no.error.kind() != AuthErrorKind::Refused {
            // No word of the protocol: it may pass, or the endpoint has moved.
            self.state().server = None;
            let passing = AuthError::new(AuthErrorKind::Unreachable, no.error.to_string());
            return self.away(issuer, Err(passing));
        }
        let over = no.code.as_deref() == Some("invalid_grant");
        // A refresh token is of one client.
        if over || self.is_unknown(client, &no, issuer).await? {
            self.gone(refresh).await?;
        }
        self.not_taken(refresh, no.error);
        Ok(None)
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

    /// Who granted it, and who we were there; nothing where that client is no more. The server is not asked: whomever it
    /// names now, what was granted goes to nobody but who granted it.
    async fn who(
        &self,
        grant: &Grant,
    ) -> Result<Option<(Arc<ServerMetadata>, OauthClient)>, AuthError> {
        let server = self.granter(&grant.issuer).await?;
        let set = &self.0.set;
        let client = kept_client(&set.identity, &server, set.store.as_ref(), grant).await?;
        let client = client.filter(|client| client.until.is_none_or(|until| until > now()));
        Ok(client.map(|client| (server, client)))
    }

    /// The one who granted something for this server.
    pub(super) async fn granter(&self, issuer: &str) -> Result<Arc<ServerMetadata>, AuthError> {
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

/// Whether the server may know another authorization server by now.
fn may_be_moved(error: &AuthError) -> bool {
    use AuthErrorKind::{Unreachable, Unsafe, Unsupported};
    matches!(error.kind(), Unreachable | Unsafe | Unsupported)
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
    match &grant.client {
        // Registered by ourselves, whoever is set by now.
        Some(client) if !identity.is(&client.id) => return Ok(Some(client.clone())),
        _ => {}
    }
    if let Some(client) = identity.known(server)? {
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
