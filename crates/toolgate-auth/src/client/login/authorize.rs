//! Authorization of an OAuth client: sign-in, step-up, and replacement of expired or rejected tokens.

use super::{
    super::{AuthChallenge, AuthError, AuthErrorKind, DiscoveredResource, OAuthCredential},
    FLOW_REFUSAL_PAUSE, FlightGuard, GrantType, OAuthClient,
    lately::FlowPurpose,
};
use crate::Secret;
use std::time::Instant;
use tokio::task::JoinSet;

/// Error code of a token without the required scopes.
pub(super) const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

impl OAuthClient {
    /// Signs in at the user's request, even if a credential is stored.
    ///
    /// # Errors
    /// The sign-in failed; the stored credential is unchanged.
    pub async fn sign_in(&self) -> Result<OAuthCredential, AuthError> {
        self.load().await?;
        let challenge = self.probe().await;
        let _one = self.flight().await;
        let found = self.discover(challenge.as_ref(), |_| Ok(())).await?;
        self.begin(&found, challenge.as_ref()).await
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
        let work = async move { login.authorized(challenge.as_ref(), stale.as_ref()).await };
        cut_off_with_us(work).await
    }

    /// Replaces an expired token at the same issuer, with a grant type that needs no user.
    pub(super) async fn again(&self, ended: &OAuthCredential) -> Result<(), AuthError> {
        let (login, ended) = (self.clone(), ended.clone());
        let work = async move {
            let _one = login.flight().await;
            if login.is_newer(Some(&ended.access)) || login.was_kept(Some(&ended.access)).await? {
                return Ok(());
            }
            login.is_cool(None)?;
            let found = login.by_grant(&ended).await?;
            login.begin(&found, None).await.map(drop)
        };
        cut_off_with_us(work).await
    }

    async fn authorized(
        &self,
        challenge: Option<&AuthChallenge>,
        stale: Option<&Secret>,
    ) -> Result<(), AuthError> {
        let began = Instant::now();
        let flight = self.flight().await;
        if self.is_newer(stale) || self.was_kept(stale).await? {
            return Ok(());
        }
        self.is_cool(more(challenge))?;
        let wish = FlowPurpose {
            stale: stale.cloned(),
            more: more(challenge).map(str::to_owned),
        };
        self.would_fail(&wish, began)?;
        let done = self.anew(challenge, stale, flight).await;
        if let Err(error) = &done {
            self.came_to_nothing(wish, error.clone());
        }
        done
    }

    async fn anew(
        &self,
        challenge: Option<&AuthChallenge>,
        stale: Option<&Secret>,
        flight: FlightGuard,
    ) -> Result<(), AuthError> {
        let mut flight = Some(flight);
        let found = self
            .discover(challenge, |issuer| self.is_there(issuer))
            .await?;
        let renews = more(challenge).is_none() && stale.is_some() && self.can_renew(&found);
        if let (Some(stale), Some(one)) = (stale, flight.take_if(|_| renews)) {
            let (renewed, one) = self.renew_to_the_end(one, stale.clone()).await;
            if renewed?.is_some() {
                return Ok(());
            }
            flight = one;
        }
        let done = self.begin(&found, challenge).await.map(drop);
        drop(flight);
        done
    }

    /// Adopts a fresh token that another process stored. Returns whether there is one.
    async fn was_kept(&self, stale: Option<&Secret>) -> Result<bool, AuthError> {
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        let other =
            |kept: &OAuthCredential| !stale.is_some_and(|stale| kept.access.is(stale.reveal()));
        match kept.filter(|kept| kept.is_fresh() && other(kept)) {
            Some(kept) => super::adopt(&mut self.state(), Some(kept)).map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns whether the credential has a refresh token of the discovered issuer.
    fn can_renew(&self, found: &DiscoveredResource) -> bool {
        let state = self.state();
        state
            .grant
            .as_ref()
            .is_some_and(|grant| grant.refresh.is_some() && grant.issuer == found.server.issuer)
    }

    /// Returns whether there is a fresh token other than the stale one.
    pub(super) fn is_newer(&self, stale: Option<&Secret>) -> bool {
        let state = self.state();
        let Some(grant) = &state.grant else {
            return false;
        };
        grant.is_fresh() && !stale.is_some_and(|stale| grant.access.is(stale.reveal()))
    }

    async fn begin(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<OAuthCredential, AuthError> {
        let mut done = self.flow(found, challenge).await;
        let person = matches!(self.0.set.way, GrantType::Person(_));
        if !person {
            done = self.away(&found.server.issuer, done);
        }
        if let Err(error) = &done
            && !person
            && matches!(
                error.kind(),
                AuthErrorKind::Refused | AuthErrorKind::NeedsSignIn | AuthErrorKind::Limit
            )
        {
            let more = more(challenge).map(str::to_owned);
            self.state().refused = Some((Instant::now(), more, error.clone()));
        }
        done
    }

    /// Returns the last refusal of a grant without a user while it is recent: the same request would fail again.
    fn is_cool(&self, more: Option<&str>) -> Result<(), AuthError> {
        let mut state = self.state();
        match &state.refused {
            Some((at, for_, error))
                if at.elapsed() < FLOW_REFUSAL_PAUSE && for_.as_deref() == more =>
            {
                Err(error.clone())
            }
            _ => {
                state.refused = None;
                Ok(())
            }
        }
    }
}

/// Runs work in a task that is aborted if the future is dropped.
async fn cut_off_with_us(
    work: impl Future<Output = Result<(), AuthError>> + Send + 'static,
) -> Result<(), AuthError> {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    match tasks.join_next().await {
        Some(Ok(done)) => done,
        _ => Err(AuthError::new(
            AuthErrorKind::Unreachable,
            "the token request was interrupted",
        )),
    }
}

/// Returns the scopes that an `insufficient_scope` challenge demands.
pub(super) fn more(challenge: Option<&AuthChallenge>) -> Option<&str> {
    let challenge =
        challenge.filter(|challenge| challenge.get("error") == Some(INSUFFICIENT_SCOPE))?;
    Some(challenge.get("scope").unwrap_or_default())
}

/// Selects a supported challenge: `Bearer`, else `DPoP`.
pub(super) fn ours(all: Vec<AuthChallenge>) -> Option<AuthChallenge> {
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
