//! Cache of recent failures, so that they are not repeated at once.

use super::{
    super::{AuthError, AuthErrorKind, OAuthCredential},
    FLOW_REFUSAL_PAUSE, OAuthClient,
};
use crate::Secret;
use std::time::{Duration, Instant};

/// Time for which an unreachable authorization server is not contacted again.
const UNREACHABLE_ISSUER_PAUSE: Duration = Duration::from_secs(5);

/// Recent failures of an OAuth client.
#[derive(Default)]
pub(super) struct RecentFailures {
    /// Last issuer that was unreachable.
    away: Option<(Instant, String, AuthError)>,
    /// Last refresh token that the issuer rejected, although the credential may still be valid.
    not_taken: Option<(Instant, Secret, AuthError)>,
    /// Last new token that the server rejected at once.
    useless: Option<(Instant, Secret, AuthError)>,
    /// Last failed authorization flow.
    flow: Option<FailedFlow>,
}

struct FailedFlow {
    at: Instant,
    wish: FlowPurpose,
    error: AuthError,
}

/// Purpose of an authorization flow: to replace a rejected token, or to obtain more scopes.
#[derive(Clone)]
pub(super) struct FlowPurpose {
    pub(super) stale: Option<Secret>,
    pub(super) more: Option<String>,
}

impl FlowPurpose {
    fn same(&self, other: &FlowPurpose) -> bool {
        let stale = match (&self.stale, &other.stale) {
            (Some(one), Some(other)) => one.is(other.reveal()),
            (None, None) => true,
            _ => false,
        };
        stale && self.more == other.more
    }
}

impl RecentFailures {
    /// Forgets a rejected refresh token if the new credential has another one.
    pub(super) fn adopts(&mut self, grant: Option<&OAuthCredential>) {
        let refresh = grant.and_then(|grant| grant.refresh.as_ref());
        let same = |(_, known, _): &mut (Instant, Secret, AuthError)| {
            refresh.is_some_and(|refresh| refresh.is(known.reveal()))
        };
        self.not_taken.take_if(|not_taken| !same(not_taken));
    }
}

impl OAuthClient {
    /// Checks that an issuer was not unreachable within the last [`UNREACHABLE_ISSUER_PAUSE`].
    ///
    /// # Errors
    /// The error of the failed attempt.
    pub(super) fn is_there(&self, issuer: &str) -> Result<(), AuthError> {
        match &self.state().lately.away {
            Some((at, away, error))
                if away == issuer && at.elapsed() < UNREACHABLE_ISSUER_PAUSE =>
            {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    /// Records an issuer that is unreachable. Returns the result unchanged.
    pub(super) fn away<T>(&self, issuer: &str, done: Result<T, AuthError>) -> Result<T, AuthError> {
        if let Err(error) = &done
            && error.kind() == AuthErrorKind::Unreachable
        {
            self.state().lately.away = Some((Instant::now(), issuer.to_owned(), error.clone()));
        }
        done
    }

    /// Records a rejected refresh token, if the credential may still be valid.
    pub(super) fn not_taken(&self, refresh: &Secret, error: AuthError) {
        self.state().lately.not_taken = Some((Instant::now(), refresh.clone(), error));
    }

    /// Returns whether the issuer rejected a refresh token recently.
    pub(super) fn was_not_taken(&self, refresh: &Secret) -> bool {
        let state = self.state();
        let not_taken = state.lately.not_taken.as_ref();
        not_taken.is_some_and(|(at, known, _)| {
            at.elapsed() < FLOW_REFUSAL_PAUSE && known.is(refresh.reveal())
        })
    }

    /// Returns why the credential cannot be refreshed, for error messages.
    pub(super) fn why_not_renewed(&self) -> Option<String> {
        let state = self.state();
        let (_, _, error) = state.lately.not_taken.as_ref()?;
        Some(error.to_string())
    }

    /// Records a new token that the server rejected at once, and returns the error.
    pub(super) fn useless(&self, token: &Secret) -> AuthError {
        let words = format!(
            "{} rejects the token that was issued for it",
            self.0.set.server.origin()
        );
        let error = AuthError::new(AuthErrorKind::Refused, words);
        self.state().lately.useless = Some((Instant::now(), token.clone(), error.clone()));
        error
    }

    /// Records a failed authorization flow.
    pub(super) fn came_to_nothing(&self, wish: FlowPurpose, error: AuthError) {
        let at = Instant::now();
        self.state().lately.flow = Some(FailedFlow { at, wish, error });
    }

    /// Checks that an authorization flow did not fail recently. A flow that failed after `began` also failed for all
    /// requests that waited for it.
    ///
    /// # Errors
    /// The error of the failed flow.
    pub(super) fn would_fail(&self, wish: &FlowPurpose, began: Instant) -> Result<(), AuthError> {
        let state = self.state();
        let lately = &state.lately;
        if let (Some((at, token, error)), None, Some(stale)) =
            (&lately.useless, &wish.more, &wish.stale)
            && token.is(stale.reveal())
            && at.elapsed() < FLOW_REFUSAL_PAUSE
        {
            return Err(error.clone());
        }
        match &lately.flow {
            Some(FailedFlow {
                at,
                wish: of,
                error,
            }) if of.same(wish)
                && (*at >= began
                    || error.kind() == AuthErrorKind::Unreachable
                        && at.elapsed() < UNREACHABLE_ISSUER_PAUSE) =>
            {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }
}
