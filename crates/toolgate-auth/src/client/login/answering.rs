//! [`CredentialProvider`] of an OAuth client: headers, and responses to 401 and 403 challenges.

use super::{
    super::{
        AuthChallenge, AuthError, AuthErrorKind, CredentialProvider, CredentialRequest,
        OAuthCredential, RejectedResponse, RetryDecision, ScopeSet, challenges,
        dpop::{DPOP_HEADER, USE_DPOP_NONCE},
    },
    GrantType, OAuthClient,
    authorize::{INSUFFICIENT_SCOPE, ours},
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
            match self.fresh().await? {
                Some(grant) => self.with(&grant, request),
                None => Ok(HeaderMap::new()),
            }
        })
    }

    fn refused<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        Box::pin(self.after(request, refusal))
    }

    fn may_wait(&self) -> bool {
        matches!(self.0.set.way, GrantType::Person(_))
    }

    fn answered(&self, headers: &HeaderMap) {
        let binding = {
            let mut state = self.state();
            state.untried = None;
            state.binding.clone()
        };
        if let Some(binding) = binding {
            binding.hear(&self.0.set.server.origin(), headers);
        }
    }
}

impl OAuthClient {
    fn with(
        &self,
        grant: &OAuthCredential,
        request: CredentialRequest<'_>,
    ) -> Result<HeaderMap, AuthError> {
        let mut headers = HeaderMap::new();
        let scheme = if grant.bound { "DPoP" } else { "Bearer" };
        let value = HeaderValue::from_str(&format!("{scheme} {}", grant.access.reveal()));
        let mut value =
            value.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        if grant.bound {
            let url = Url::parse(&request.uri.to_string());
            let url =
                url.map_err(|bad| AuthError::new(AuthErrorKind::Unsupported, bad.to_string()))?;
            let proof =
                self.binding()?
                    .proof(request.method.as_str(), &url, Some(&grant.access))?;
            headers.insert(DPOP_HEADER, proof);
        }
        Ok(headers)
    }

    async fn after(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
    ) -> Result<RetryDecision, AuthError> {
        if refusal.before >= MAX_RETRIES {
            return Ok(RetryDecision::No);
        }
        let all = challenges(refusal.headers);
        match refusal.status {
            StatusCode::UNAUTHORIZED => self.unauthorized(request, refusal, all).await,
            StatusCode::FORBIDDEN => self.forbidden(request, refusal, all).await,
            _ => Ok(RetryDecision::No),
        }
    }

    async fn unauthorized(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
        all: Vec<AuthChallenge>,
    ) -> Result<RetryDecision, AuthError> {
        let sent = token(refusal.sent);
        if all
            .iter()
            .any(|one| one.get("error") == Some(USE_DPOP_NONCE))
        {
            let binding = self.state().binding.clone();
            let new = binding
                .is_some_and(|binding| binding.hear(&self.0.set.server.origin(), refusal.headers));
            return Ok(if new {
                RetryDecision::Yes
            } else {
                RetryDecision::No
            });
        }
        if self.is_newer(sent.as_ref()) && sent.is_some() {
            return Ok(RetryDecision::Yes);
        }
        // A request without a waiting caller does not start a sign-in.
        if request.operation.is_none() {
            return Ok(RetryDecision::No);
        }
        let origin = self.0.set.server.origin();
        let over = |words: String| Err(AuthError::new(AuthErrorKind::Refused, words));
        if refusal.before > 0 && sent.is_none() {
            let words = format!("the token for {origin} expired before it was used");
            return over(words);
        }
        // An earlier rejection of this request may have concerned only the DPoP proof.
        if let Some(sent) = sent.as_ref().filter(|_| refusal.before > 0)
            && self.is_untried(Some(sent))
        {
            return Err(self.useless(sent));
        }
        self.authorize(ours(all), sent).await?;
        let mut state = self.state();
        state.untried = state.grant.as_ref().map(|grant| grant.access.clone());
        Ok(RetryDecision::Yes)
    }

    /// Handles 403 `insufficient_scope` by a step-up, at most [`MAX_STEP_UPS`] times per operation.
    async fn forbidden(
        &self,
        request: CredentialRequest<'_>,
        refusal: RejectedResponse<'_>,
        all: Vec<AuthChallenge>,
    ) -> Result<RetryDecision, AuthError> {
        let Some(operation) = request.operation else {
            return Ok(RetryDecision::No);
        };
        let Some(challenge) = all
            .into_iter()
            .find(|one| one.get("error") == Some(INSUFFICIENT_SCOPE))
        else {
            return Ok(RetryDecision::No);
        };
        let wanted = challenge
            .get("scope")
            .map(ScopeSet::read)
            .unwrap_or_default();
        let sent = token(refusal.sent);
        let enough = self
            .state()
            .grant
            .as_ref()
            .is_some_and(|grant| grant.scopes.covers(&wanted));
        if self.is_newer(sent.as_ref()) && sent.is_some() && enough {
            return Ok(RetryDecision::Yes);
        }
        // Without a sign-in here no token is requested, so there is no attempt to count.
        if !matches!(self.0.set.way, GrantType::Nobody) {
            self.may_step(operation).map_err(|why| {
                let origin = self.0.set.server.origin();
                let words = format!(
                    "{origin} requires the scope {:?} for this, {why}",
                    wanted.to_string()
                );
                AuthError::new(AuthErrorKind::Limit, words)
            })?;
        }
        self.authorize(Some(challenge), sent).await?;
        Ok(RetryDecision::Yes)
    }

    /// Returns whether a token replaced a rejected one and the server has not accepted it yet.
    fn is_untried(&self, sent: Option<&Secret>) -> bool {
        let state = self.state();
        let untried = state.untried.as_ref().zip(sent);
        untried.is_some_and(|(untried, sent)| untried.is(sent.reveal()))
    }

    /// Counts a step-up attempt.
    ///
    /// # Errors
    /// The limit is reached; the text says which.
    fn may_step(&self, operation: &str) -> Result<(), String> {
        let mut state = self.state();
        state
            .steps
            .retain(|_, (_, first)| first.elapsed() < STEP_UP_WINDOW);
        if state.steps.len() >= MAX_COUNTED_OPERATIONS && !state.steps.contains_key(operation) {
            let minutes = STEP_UP_WINDOW.as_secs() / 60;
            return Err(format!(
                "and it required more scopes for {MAX_COUNTED_OPERATIONS} other operations within {minutes} minutes, which is the limit; try again later"
            ));
        }
        let first = (0, Instant::now());
        let (steps, _) = state.steps.entry(operation.to_owned()).or_insert(first);
        *steps += 1;
        match *steps <= MAX_STEP_UPS {
            true => Ok(()),
            false => Err(format!(
                "and rejected the token after the scope was requested {MAX_STEP_UPS} times"
            )),
        }
    }
}

/// Returns the access token of the headers that were sent.
fn token(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.split_once(' ').map(|(_, token)| Secret::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-18.
    #[test]
    fn step_ups_are_few_for_each_operation_and_the_words_are_true() {
        let login = OAuthClient::builder(Url::parse("https://a.test/mcp").unwrap()).build();
        for _ in 0..MAX_STEP_UPS {
            login.may_step("a").unwrap();
        }
        let why = login.may_step("a").unwrap_err();
        assert!(why.contains("requested 2 times"), "{why}");
        for n in 1..MAX_COUNTED_OPERATIONS {
            login.may_step(&n.to_string()).unwrap();
        }
        let why = login.may_step("one more").unwrap_err();
        assert!(!why.contains("2 times"), "{why}");
        assert!(
            why.contains("1024 other operations within 10 minutes"),
            "{why}"
        );
        login.may_step("1").unwrap();
    }
}
