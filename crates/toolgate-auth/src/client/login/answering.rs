//! What a transport asks.

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

/// How often one request may be sent again.
const AGAIN: u32 = 3;
/// How often one operation may ask for more within [`WINDOW`].
const STEPS: u32 = 2;
/// How long step-ups are counted.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Most operations whose step-ups are counted.
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
        // Nobody is taken to a sign-in by what nobody waits for.
        if request.operation.is_none() {
            return Ok(Again::No);
        }
        let origin = self.0.set.server.origin();
        let over = |words: String| Err(AuthError::new(AuthErrorKind::Refused, words));
        if refusal.before > 0 && sent.is_none() {
            let words = format!("the token that was granted for {origin} ended before it was used");
            return over(words);
        }
        // A refusal before this one may have been about the proof alone.
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

    /// A token that may too little: more is asked for, a few times for each operation.
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
        // Where nobody signs in here, nothing is asked for: there is nothing to count.
        if !matches!(self.0.set.way, Way::Nobody) {
            self.may_step(operation).map_err(|why| {
                let origin = self.0.set.server.origin();
                let words = format!(
                    "{origin} wants the scope {:?} for this, {why}",
                    wanted.to_string()
                );
                AuthError::new(AuthErrorKind::Limit, words)
            })?;
        }
        self.authorize(Some(challenge), sent).await?;
        Ok(Again::Yes)
    }

    /// Whether a token was had because another was refused, and none was taken since.
    fn is_untried(&self, sent: Option<&Secret>) -> bool {
        let state = self.state();
        let untried = state.untried.as_ref().zip(sent);
        untried.is_some_and(|(untried, sent)| untried.is(sent.reveal()))
    }

    /// Counts a step-up.
    ///
    /// # Errors
    /// Why there may be no more.
    fn may_step(&self, operation: &str) -> Result<(), String> {
        let mut state = self.state();
        state.steps.retain(|_, (_, first)| first.elapsed() < WINDOW);
        if state.steps.len() >= OPERATIONS && !state.steps.contains_key(operation) {
            let minutes = WINDOW.as_secs() / 60;
            return Err(format!(
                "and so it did for {OPERATIONS} others within {minutes} minutes; nothing is asked for until some of them are over"
            ));
        }
        let first = (0, Instant::now());
        let (steps, _) = state.steps.entry(operation.to_owned()).or_insert(first);
        *steps += 1;
        match *steps <= STEPS {
            true => Ok(()),
            false => Err(format!(
                "and did not take the token after it was asked for {STEPS} times"
            )),
        }
    }
}

/// The token that was sent.
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
        assert!(why.contains("asked for 2 times"), "{why}");
        for n in 1..OPERATIONS {
            login.may_step(&n.to_string()).unwrap();
        }
        let why = login.may_step("one more").unwrap_err();
        assert!(!why.contains("2 times"), "{why}");
        assert!(why.contains("1024 others within 10 minutes"), "{why}");
        login.may_step("1").unwrap();
    }
}
