//! [`CredentialProvider`] of an OAuth client: headers, and responses to 401 and 403 challenges.

use super::{
    super::{
        AuthChallenge, AuthError, AuthErrorKind, CredentialProvider, CredentialRequest,
        OAuthCredential, RejectedResponse, RetryDecision, ScopeSet,
        dpop::{DPOP_HEADER, USE_DPOP_NONCE},
        parse_challenges,
    },
    GrantType, OAuthClient,
    authorize::{INSUFFICIENT_SCOPE, supported_challenge},
};
use crate::{Secret, Url};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::{Duration, Instant};

/// Maximum number of retries of one request.
const MAX_RETRIES: u32 = 3;
/// Maximum number of step-up attempts of one operation within [`STEP_UP_WINDOW`].
const MAX_STEP_UPS: u32 = 2;
/// Period in which step-up attempts are counted.
const STEP_UP_WINDOW: Duration = Duration::from_secs(10 * 60);
/// Maximum number of operations with counted step-up attempts.
const MAX_COUNTED_OPERATIONS: usize = 1024;

impl CredentialProvider for OAuthClient {
    fn headers<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        Box::pin(async move {
            match self.fresh_credential().await? {
                Some(grant) => self.request_headers(&grant, request),
                None => Ok(HeaderMap::new()),
            }
        })
    }

    fn on_rejection<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        Box::pin(self.handle_rejection(request, refusal))
    }

    fn may_wait_for_user(&self) -> bool {
        matches!(self.0.settings.grant_type, GrantType::AuthorizationCode(_))
    }

    fn on_response(&self, headers: &HeaderMap) {
        let binding = {
            let mut state = self.lock_state();
            state.unconfirmed = None;
            state.binding.clone()
        };
        if let Some(binding) = binding {
            binding.store_nonce(&self.0.settings.server.origin(), headers);
        }
    }
}

impl OAuthClient {
    fn request_headers(
        &self,
        grant: &OAuthCredential,
        request: CredentialRequest<'_>,
    ) -> Result<HeaderMap, AuthError> {
        let mut headers = HeaderMap::new();
        let scheme = if grant.is_dpop_bound {
            "DPoP"
        } else {
            "Bearer"
        };
        let value = HeaderValue::from_str(&format!("{scheme} {}", grant.access_token.reveal()));
        let mut value =
            value.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        if grant.is_dpop_bound {
            let url = Url::parse(&request.uri.to_string());
            let url =
                url.map_err(|bad| AuthError::new(AuthErrorKind::Unsupported, bad.to_string()))?;
            let proof =
                self.dpop_key()?
                    .proof(request.method.as_str(), &url, Some(&grant.access_token))?;
            headers.insert(DPOP_HEADER, proof);
        }
        Ok(headers)
    }

    async fn handle_rejection(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
    ) -> Result<RetryDecision, AuthError> {
        if refusal.previous_rejections >= MAX_RETRIES {
            return Ok(RetryDecision::GiveUp);
        }
        let all = parse_challenges(refusal.headers);
        match refusal.status {
            StatusCode::UNAUTHORIZED => self.handle_unauthorized(request, refusal, all).await,
            StatusCode::FORBIDDEN => self.handle_forbidden(request, refusal, all).await,
            _ => Ok(RetryDecision::GiveUp),
        }
    }

    async fn handle_unauthorized(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
        all: Vec<AuthChallenge>,
    ) -> Result<RetryDecision, AuthError> {
        let sent = sent_token(refusal.sent_headers);
        if all
            .iter()
            .any(|one| one.parameter("error") == Some(USE_DPOP_NONCE))
        {
            let binding = self.lock_state().binding.clone();
            let new = binding.is_some_and(|binding| {
                binding.store_nonce(&self.0.settings.server.origin(), refusal.headers)
            });
            return Ok(if new {
                RetryDecision::Retry
            } else {
                RetryDecision::GiveUp
            });
        }
        if self.has_newer_token(sent.as_ref()) && sent.is_some() {
            return Ok(RetryDecision::Retry);
        }
        // A request without a waiting caller does not start a sign-in.
        if request.operation.is_none() {
            return Ok(RetryDecision::GiveUp);
        }
        let origin = self.0.settings.server.origin();
        let over = |words: String| Err(AuthError::new(AuthErrorKind::Refused, words));
        if refusal.previous_rejections > 0 && sent.is_none() {
            let words =
                format!("the token for {origin} expired before the request was sent; try again");
            return over(words);
        }
        // An earlier rejection of this request may have concerned only the DPoP proof.
        if let Some(sent) = sent.as_ref().filter(|_| refusal.previous_rejections > 0)
            && self.is_unconfirmed(Some(sent))
        {
            return Err(self.record_useless_token(sent));
        }
        self.authorize(supported_challenge(all), sent).await?;
        let mut state = self.lock_state();
        state.unconfirmed = state.grant.as_ref().map(|grant| grant.access_token.clone());
        Ok(RetryDecision::Retry)
    }

    /// Handles 403 `insufficient_scope` by a step-up, at most [`MAX_STEP_UPS`] times per operation.
    async fn handle_forbidden(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
        all: Vec<AuthChallenge>,
    ) -> Result<RetryDecision, AuthError> {
        let Some(operation) = request.operation else {
            return Ok(RetryDecision::GiveUp);
        };
        let Some(challenge) = all
            .into_iter()
            .find(|one| one.parameter("error") == Some(INSUFFICIENT_SCOPE))
        else {
            return Ok(RetryDecision::GiveUp);
        };
        let wanted = challenge
            .parameter("scope")
            .map(ScopeSet::parse)
            .unwrap_or_default();
        let sent = sent_token(refusal.sent_headers);
        let enough = self
            .lock_state()
            .grant
            .as_ref()
            .is_some_and(|grant| grant.scopes.covers(&wanted));
        if self.has_newer_token(sent.as_ref()) && sent.is_some() && enough {
            return Ok(RetryDecision::Retry);
        }
        // Without a sign-in here no token is requested, so there is no attempt to count.
        if !matches!(self.0.settings.grant_type, GrantType::StoredOnly) {
            self.count_step_up(operation).map_err(|why| {
                let origin = self.0.settings.server.origin();
                let words = format!(
                    "{origin} requires the scope {:?} for this operation, {why}",
                    wanted.to_string()
                );
                AuthError::new(AuthErrorKind::LimitReached, words)
            })?;
        }
        self.authorize(Some(challenge), sent).await?;
        Ok(RetryDecision::Retry)
    }

    /// Returns whether a token replaced a rejected one and the server has not accepted it yet.
    fn is_unconfirmed(&self, sent: Option<&Secret>) -> bool {
        let state = self.lock_state();
        let untried = state.unconfirmed.as_ref().zip(sent);
        untried.is_some_and(|(untried, sent)| untried.matches(sent.reveal()))
    }

    /// Counts a step-up attempt.
    ///
    /// # Errors
    /// The limit is reached; the text says which.
    fn count_step_up(&self, operation: &str) -> Result<(), String> {
        let mut state = self.lock_state();
        state
            .step_ups
            .retain(|_, (_, first)| first.elapsed() < STEP_UP_WINDOW);
        if state.step_ups.len() >= MAX_COUNTED_OPERATIONS && !state.step_ups.contains_key(operation)
        {
            let minutes = STEP_UP_WINDOW.as_secs() / 60;
            return Err(format!(
                "but it already required more scopes for {MAX_COUNTED_OPERATIONS} other operations within {minutes} minutes, which is the limit; try again later"
            ));
        }
        let first = (0, Instant::now());
        let (steps, _) = state.step_ups.entry(operation.to_owned()).or_insert(first);
        *steps += 1;
        match *steps <= MAX_STEP_UPS {
            true => Ok(()),
            false => Err(format!(
                "but it rejected the token even after {MAX_STEP_UPS} requests for this scope; ask the operator of the server for access"
            )),
        }
    }
}

/// Returns the access token of the headers that were sent.
fn sent_token(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.split_once(' ').map(|(_, token)| Secret::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-18.
    #[test]
    fn limits_step_ups_per_operation_and_names_the_limit() {
        let login = OAuthClient::builder(Url::parse("https://a.test/mcp").unwrap()).build();
        for _ in 0..MAX_STEP_UPS {
            login.count_step_up("a").unwrap();
        }
        let why = login.count_step_up("a").unwrap_err();
        assert!(why.contains("after 2 requests"), "{why}");
        for n in 1..MAX_COUNTED_OPERATIONS {
            login.count_step_up(&n.to_string()).unwrap();
        }
        let why = login.count_step_up("one more").unwrap_err();
        assert!(!why.contains("2 times"), "{why}");
        assert!(
            why.contains("1024 other operations within 10 minutes"),
            "{why}"
        );
        login.count_step_up("1").unwrap();
    }
}
