//! Authorization of an OAuth client: sign-in, step-up, and replacement of expired or rejected tokens.

use super::{
    super::{AuthChallenge, AuthError, AuthErrorKind, DiscoveredResource, OAuthCredential},
    FLOW_REFUSAL_PAUSE, FlightGuard, GrantType, OAuthClient,
    failure_cache::FlowPurpose,
};
use crate::Secret;
use std::time::Instant;
use tokio::task::JoinSet;

/// Error code of a token without the required scopes.
pub(super) const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

impl OAuthClient {
    /// Starts an OAuth sign-in at the user's request, even if a credential is stored.
    ///
    /// # Errors
    /// The sign-in failed; the stored credential is unchanged.
    pub async fn sign_in(&self) -> Result<OAuthCredential, AuthError> {
        self.load().await?;
        let challenge = self.probe().await;
        let _one = self.acquire_flight().await;
        let found = self.discover(challenge.as_ref(), |_| Ok(())).await?;
        self.run_flow(&found, challenge.as_ref()).await
    }

    /// Obtains a token that satisfies a challenge, in single-flight. `stale` is the rejected token: if there is a newer
    /// one already, nothing happens.
    ///
    /// Runs in a task of its own: a waiting request that is held up elsewhere would block all others that need the same
    /// token. Dropping the future cancels the task.
    pub(super) async fn authorize(
        &self,
        challenge: Option<AuthChallenge>,
        stale: Option<Secret>,
    ) -> Result<(), AuthError> {
        let login = self.clone();
        let work = async move {
            login
                .authorize_in_flight(challenge.as_ref(), stale.as_ref())
                .await
        };
        run_abortable(work).await
    }

    /// Replaces an expired token at the same issuer, with a grant type that needs no user.
    pub(super) async fn replace_expired(&self, ended: &OAuthCredential) -> Result<(), AuthError> {
        let (login, ended) = (self.clone(), ended.clone());
        let work = async move {
            let _one = login.acquire_flight().await;
            if login.has_newer_token(Some(&ended.access_token))
                || login.adopt_stored(Some(&ended.access_token)).await?
            {
                return Ok(());
            }
            login.check_recent_refusal(None)?;
            let found = login.discovered_for(&ended).await?;
            login.run_flow(&found, None).await.map(drop)
        };
        run_abortable(work).await
    }

    async fn authorize_in_flight(
        &self,
        challenge: Option<&AuthChallenge>,
        stale: Option<&Secret>,
    ) -> Result<(), AuthError> {
        let began = Instant::now();
        let flight = self.acquire_flight().await;
        if self.has_newer_token(stale) || self.adopt_stored(stale).await? {
            return Ok(());
        }
        self.check_recent_refusal(demanded_scopes(challenge))?;
        let wish = FlowPurpose {
            rejected: stale.cloned(),
            demanded_scopes: demanded_scopes(challenge).map(str::to_owned),
        };
        self.check_recent_failure(&wish, began)?;
        let done = self.start_authorization(challenge, stale, flight).await;
        if let Err(error) = &done {
            self.record_failed_flow(wish, error.clone());
        }
        done
    }

    async fn start_authorization(
        &self,
        challenge: Option<&AuthChallenge>,
        stale: Option<&Secret>,
        flight: FlightGuard,
    ) -> Result<(), AuthError> {
        let mut flight = Some(flight);
        let found = self
            .discover(challenge, |issuer| self.check_reachable(issuer))
            .await?;
        let renews =
            demanded_scopes(challenge).is_none() && stale.is_some() && self.can_refresh(&found);
        if let (Some(stale), Some(one)) = (stale, flight.take_if(|_| renews)) {
            let (renewed, one) = self.refresh_detached(one, stale.clone()).await;
            if renewed?.is_some() {
                return Ok(());
            }
            flight = one;
        }
        let done = self.run_flow(&found, challenge).await.map(drop);
        drop(flight);
        done
    }

    /// Adopts a fresh token that another process stored. Returns whether there is one.
    async fn adopt_stored(&self, stale: Option<&Secret>) -> Result<bool, AuthError> {
        let kept = self.0.settings.store.grant(self.0.settings.key()).await?;
        let other = |kept: &OAuthCredential| {
            !stale.is_some_and(|stale| kept.access_token.matches(stale.reveal()))
        };
        match kept.filter(|kept| kept.is_fresh() && other(kept)) {
            Some(kept) => {
                super::adopt_credential(&mut self.lock_state(), Some(kept)).map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// Returns whether the credential has a refresh token of the discovered issuer.
    fn can_refresh(&self, found: &DiscoveredResource) -> bool {
        let state = self.lock_state();
        state.grant.as_ref().is_some_and(|grant| {
            grant.refresh_token.is_some() && grant.issuer == found.server.issuer
        })
    }

    /// Returns whether there is a fresh token other than the stale one.
    pub(super) fn has_newer_token(&self, stale: Option<&Secret>) -> bool {
        let state = self.lock_state();
        let Some(grant) = &state.grant else {
            return false;
        };
        grant.is_fresh() && !stale.is_some_and(|stale| grant.access_token.matches(stale.reveal()))
    }

    async fn run_flow(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<OAuthCredential, AuthError> {
        let mut done = self.authorization_flow(found, challenge).await;
        let person = matches!(self.0.settings.grant_type, GrantType::AuthorizationCode(_));
        if !person {
            done = self.record_unreachable(&found.server.issuer, done);
        }
        if let Err(error) = &done
            && !person
            && matches!(
                error.kind(),
                AuthErrorKind::Refused | AuthErrorKind::NeedsSignIn | AuthErrorKind::LimitReached
            )
        {
            let more = demanded_scopes(challenge).map(str::to_owned);
            self.lock_state().last_refusal = Some((Instant::now(), more, error.clone()));
        }
        done
    }

    /// Returns the last refusal of a grant without a user while it is recent: the same request would fail again.
    fn check_recent_refusal(&self, more: Option<&str>) -> Result<(), AuthError> {
        let mut state = self.lock_state();
        match &state.last_refusal {
            Some((at, for_, error))
                if at.elapsed() < FLOW_REFUSAL_PAUSE && for_.as_deref() == more =>
            {
                Err(error.clone())
            }
            _ => {
                state.last_refusal = None;
                Ok(())
            }
        }
    }
}

/// Runs work in a task that is aborted if the future is dropped.
async fn run_abortable(
    work: impl Future<Output = Result<(), AuthError>> + Send + 'static,
) -> Result<(), AuthError> {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    match tasks.join_next().await {
        Some(Ok(done)) => done,
        _ => Err(AuthError::new(
            AuthErrorKind::Unreachable,
            "the token request was interrupted; try again",
        )),
    }
}

/// Returns the scopes that an `insufficient_scope` challenge demands.
pub(super) fn demanded_scopes(challenge: Option<&AuthChallenge>) -> Option<&str> {
    let challenge =
        challenge.filter(|challenge| challenge.parameter("error") == Some(INSUFFICIENT_SCOPE))?;
    Some(challenge.parameter("scope").unwrap_or_default())
}

/// Selects a supported challenge: `Bearer`, else `DPoP`.
pub(super) fn supported_challenge(all: Vec<AuthChallenge>) -> Option<AuthChallenge> {
    let mut all: Vec<AuthChallenge> = all
        .into_iter()
        .filter(|one| one.scheme == "bearer" || one.scheme == "dpop")
        .collect();
    let bearer = all.iter().position(|one| one.scheme == "bearer");
    match bearer {
        Some(at) => Some(all.swap_remove(at)),
        None => all.into_iter().next(),
    }
}
