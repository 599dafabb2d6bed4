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
    unreachable_issuer: Option<(Instant, String, AuthError)>,
    /// Last refresh token that the issuer rejected, although the credential may still be valid.
    rejected_refresh: Option<(Instant, Secret, AuthError)>,
    /// Last new token that the server rejected at once.
    useless_token: Option<(Instant, Secret, AuthError)>,
    /// Last failed authorization flow.
    flow: Option<FailedFlow>,
}

struct FailedFlow {
    at: Instant,
    purpose: FlowPurpose,
    error: AuthError,
}

/// Purpose of an authorization flow: to replace a rejected token, or to obtain more scopes.
#[derive(Clone)]
pub(super) struct FlowPurpose {
    pub(super) rejected: Option<Secret>,
    pub(super) demanded_scopes: Option<String>,
}

impl FlowPurpose {
    fn same(&self, other: &FlowPurpose) -> bool {
        let stale = match (&self.rejected, &other.rejected) {
            (Some(one), Some(other)) => one.matches(other.reveal()),
            (None, None) => true,
            _ => false,
        };
        stale && self.demanded_scopes == other.demanded_scopes
    }
}

impl RecentFailures {
    /// Forgets a rejected refresh token if the new credential has another one.
    pub(super) fn forget_other_refresh(&mut self, grant: Option<&OAuthCredential>) {
        let refresh = grant.and_then(|grant| grant.refresh_token.as_ref());
        let same = |(_, known, _): &mut (Instant, Secret, AuthError)| {
            refresh.is_some_and(|refresh| refresh.matches(known.reveal()))
        };
        self.rejected_refresh.take_if(|not_taken| !same(not_taken));
    }
}

impl OAuthClient {
    /// Checks that an issuer was not unreachable within the last [`UNREACHABLE_ISSUER_PAUSE`].
    ///
    /// # Errors
    /// The error of the failed attempt.
    pub(super) fn check_reachable(&self, issuer: &str) -> Result<(), AuthError> {
        match &self.lock_state().failures.unreachable_issuer {
            Some((at, away, error))
                if away == issuer && at.elapsed() < UNREACHABLE_ISSUER_PAUSE =>
            {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    /// Records an issuer that is unreachable. Returns the result unchanged.
    pub(super) fn record_unreachable<T>(
        &self,
        issuer: &str,
        done: Result<T, AuthError>,
    ) -> Result<T, AuthError> {
        if let Err(error) = &done
            && error.kind() == AuthErrorKind::Unreachable
        {
            self.lock_state().failures.unreachable_issuer =
                Some((Instant::now(), issuer.to_owned(), error.clone()));
        }
        done
    }

    /// Records a rejected refresh token, if the credential may still be valid.
    pub(super) fn record_rejected_refresh(&self, refresh: &Secret, error: AuthError) {
        self.lock_state().failures.rejected_refresh =
            Some((Instant::now(), refresh.clone(), error));
    }

    /// Returns whether the issuer rejected a refresh token recently.
    pub(super) fn was_refresh_rejected(&self, refresh: &Secret) -> bool {
        let state = self.lock_state();
        let not_taken = state.failures.rejected_refresh.as_ref();
        not_taken.is_some_and(|(at, known, _)| {
            at.elapsed() < FLOW_REFUSAL_PAUSE && known.matches(refresh.reveal())
        })
    }

    /// Returns why the credential cannot be refreshed, for error messages.
    pub(super) fn refresh_failure(&self) -> Option<String> {
        let state = self.lock_state();
        let (_, _, error) = state.failures.rejected_refresh.as_ref()?;
        Some(error.to_string())
    }

    /// Records a new token that the server rejected at once, and returns the error.
    pub(super) fn record_useless_token(&self, token: &Secret) -> AuthError {
        let words = format!(
            "{0} rejected a token that its authorization server had just issued for it; ask the operator of {0} which audience and scopes it requires",
            self.0.settings.server.origin()
        );
        let error = AuthError::new(AuthErrorKind::Refused, words);
        self.lock_state().failures.useless_token =
            Some((Instant::now(), token.clone(), error.clone()));
        error
    }

    /// Records a failed authorization flow.
    pub(super) fn record_failed_flow(&self, wish: FlowPurpose, error: AuthError) {
        let at = Instant::now();
        self.lock_state().failures.flow = Some(FailedFlow {
            at,
            purpose: wish,
            error,
        });
    }

    /// Checks that an authorization flow did not fail recently. A flow that failed after `began` also failed for all
    /// requests that waited for it.
    ///
    /// # Errors
    /// The error of the failed flow.
    pub(super) fn check_recent_failure(
        &self,
        wish: &FlowPurpose,
        began: Instant,
    ) -> Result<(), AuthError> {
        let state = self.lock_state();
        let lately = &state.failures;
        if let (Some((at, token, error)), None, Some(stale)) =
            (&lately.useless_token, &wish.demanded_scopes, &wish.rejected)
            && token.matches(stale.reveal())
            && at.elapsed() < FLOW_REFUSAL_PAUSE
        {
            return Err(error.clone());
        }
        match &lately.flow {
            Some(FailedFlow {
                at,
                purpose: of,
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
