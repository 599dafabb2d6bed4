//! [`Credentials`] of an OAuth client: headers, and responses to 401 and 403 challenges.

use super::{
    super::{
        Again, AuthError, AuthErrorKind, Challenge, Credentials, Grant, Leaving, Refusal, Scopes,
        challenges,
        dpop::{PROOF, WANTS_NONCE},
    },
    Login, Way,
    authorize::{MORE, ours},
};
use crate::{Secret, Url};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::{Duration, Instant};

/// Maximum number of retries of one request.
const AGAIN: u32 = 3;
/// Maximum number of step-up attempts of one operation within [`WINDOW`].
const STEPS: u32 = 2;
/// Period in which step-up attempts are counted.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Maximum number of operations with counted step-up attempts.
const OPERATIONS: usize = 1024;

impl Credentials for Login {
    fn headers<'a>(&'a self, request: Leaving<'a>) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        Box::pin(async move {
            match self.fresh().await? {
                Some(grant) => self.with(&grant, request),
                None => Ok(HeaderMap::new()),
            }
        })
    }

    fn refused<'a>(
        &'a self,
        request: Leaving<'a>,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Again, AuthError>> {
        Box::pin(self.after(request, refusal))
    }

    fn may_wait(&self) -> bool {
        matches!(self.0.set.way, Way::Person(_))
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

impl Login {
    fn with(&self, grant: &Grant, request: Leaving<'_>) -> Result<HeaderMap, AuthError> {
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
            headers.insert(PROOF, proof);
        }
        Ok(headers)
    }

    async fn after(&self, request: Leaving<'_>, refusal: Refusal<'_>) -> Result<Again, AuthError> {
        if refusal.before >= AGAIN {
            return Ok(Again::No);
        }
        let all = challenges(refusal.headers);
        match refusal.status {
            StatusCode::UNAUTHORIZED => self.unauthorized(request, refusal, all).await,
            StatusCode::FORBIDDEN => self.forbidden(request, refusal, all).await,
            _ => Ok(Again::No),
        }
    }

    async fn unauthorized(
        &self,
        request: Leaving<'_>,
        refusal: Refusal<'_>,
        all: Vec<Challenge>,
    ) -> Result<Again, AuthError> {
        let sent = token(refusal.sent);
        if all.iter().any(|one| one.get("error") == Some(WANTS_NONCE)) {
            let binding = self.state().binding.clone();
            let new = binding
                .is_some_and(|binding| binding.hear(&self.0.set.server.origin(), refusal.headers));
            return Ok(if new { Again::Yes } else { Again::No });
        }
        if self.is_newer(sent.as_ref()) && sent.is_some() {
            return Ok(Again::Yes);
        }
        // A request without a waiting caller does not start a sign-in.
        if request.operation.is_none() {
            return Ok(Again::No);
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
        Ok(Again::Yes)
    }

    /// Handles 403 `insufficient_scope` by a step-up, at most [`STEPS`] times per operation.
    async fn forbidden(
        &self,
        request: Leaving<'_>,
        refusal: Refusal<'_>,
        all: Vec<Challenge>,
    ) -> Result<Again, AuthError> {
        let Some(operation) = request.operation else {
            return Ok(Again::No);
        };
        let Some(challenge) = all.into_iter().find(|one| one.get("error") == Some(MORE)) else {
            return Ok(Again::No);
        };
        let wanted = challenge.get("scope").map(Scopes::read).unwrap_or_default();
        let sent = token(refusal.sent);
        let enough = self
            .state()
            .grant
            .as_ref()
            .is_some_and(|grant| grant.scopes.covers(&wanted));
        if self.is_newer(sent.as_ref()) && sent.is_some() && enough {
            return Ok(Again::Yes);
        }
        // Without a sign-in here no token is requested, so there is no attempt to count.
        if !matches!(self.0.set.way, Way::Nobody) {
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
        Ok(Again::Yes)
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
        state.steps.retain(|_, (_, first)| first.elapsed() < WINDOW);
        if state.steps.len() >= OPERATIONS && !state.steps.contains_key(operation) {
            let minutes = WINDOW.as_secs() / 60;
            return Err(format!(
                "and it required more scopes for {OPERATIONS} other operations within {minutes} minutes, which is the limit; try again later"
            ));
        }
        let first = (0, Instant::now());
        let (steps, _) = state.steps.entry(operation.to_owned()).or_insert(first);
        *steps += 1;
        match *steps <= STEPS {
            true => Ok(()),
            false => Err(format!(
                "and rejected the token after the scope was requested {STEPS} times"
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
        let login = Login::builder(Url::parse("https://a.test/mcp").unwrap()).build();
        for _ in 0..STEPS {
            login.may_step("a").unwrap();
        }
        let why = login.may_step("a").unwrap_err();
        assert!(why.contains("requested 2 times"), "{why}");
        for n in 1..OPERATIONS {
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
