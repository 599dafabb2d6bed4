//! A token from the beginning.

use super::{
    super::{
        AuthError, AuthErrorKind, Challenge, Found, Grant, OauthClient, Scopes, SignIn, challenges,
        code::Pending,
        discovery,
        dpop::Binding,
        endpoint::{Endpoint, NoToken},
        error::shown,
        grants,
        scopes::choose,
        tokens::Answer,
    },
    Bind, COOL, Login, Way,
};
use crate::{Secret, fetch::Request};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use std::{sync::Arc, time::Instant};
use tokio::task::JoinSet;

/// The error of a token that may too little.
pub(super) const MORE: &str = "insufficient_scope";

impl Login {
    /// Signs in, whether or not something is granted already; for when a person asks for it.
    ///
    /// # Errors
    /// There is no grant; what there was before is kept.
    pub async fn sign_in(&self) -> Result<Grant, AuthError> {
        self.load().await?;
        let challenge = self.probe().await?;
        let _one = self.flight().await;
        let found = self.discover(challenge.as_ref()).await?;
        self.begin(&found, challenge.as_ref()).await
    }

    /// What the server says to somebody without a token.
    async fn probe(&self) -> Result<Option<Challenge>, AuthError> {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let mut request = Request::json(self.0.set.server.clone(), &ping);
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers.insert(header::ACCEPT, both);
        request.headers.insert(
            HeaderName::from_static("mcp-protocol-version"),
            HeaderValue::from_static("2025-11-25"),
        );
        let fetched = self.0.fetcher.fetch(request).await?;
        let asks = fetched.status == StatusCode::UNAUTHORIZED;
        Ok(asks.then(|| ours(challenges(&fetched.headers))).flatten())
    }

    /// Gets a token that does what a refusal asks for; one at a time. `stale` is the token that was refused: where there
    /// is another by now, nothing is done.
    ///
    /// In a task of its own: who waits for it may be held up by something else, and would hold up all others who wait
    /// for the same token. It ends with who waits for it.
    pub(super) async fn authorize(
        &self,
        challenge: Option<Challenge>,
        stale: Option<Secret>,
    ) -> Result<(), AuthError> {
        let login = self.clone();
        let work = async move { login.authorized(challenge.as_ref(), stale.as_ref()).await };
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            _ => Err(AuthError::new(
                AuthErrorKind::Unreachable,
                "asking for a token was cut off",
            )),
        }
    }

    async fn authorized(
        &self,
        challenge: Option<&Challenge>,
        stale: Option<&Secret>,
    ) -> Result<(), AuthError> {
        let mut flight = Some(self.flight().await);
        if self.is_newer(stale) || self.was_kept(stale).await? {
            return Ok(());
        }
        self.is_cool(more(challenge))?;
        let found = self.discover(challenge).await?;
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

    /// Whether another process has a fresh token by now; then it is ours too.
    async fn was_kept(&self, stale: Option<&Secret>) -> Result<bool, AuthError> {
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        let other = |kept: &Grant| !stale.is_some_and(|stale| kept.access.is(stale.reveal()));
        match kept.filter(|kept| kept.is_fresh() && other(kept)) {
            Some(kept) => super::adopt(&mut self.state(), Some(kept)).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether what was granted can be renewed, by the one who granted it.
    fn can_renew(&self, found: &Found) -> bool {
        let state = self.state();
        state
            .grant
            .as_ref()
            .is_some_and(|grant| grant.refresh.is_some() && grant.issuer == found.server.issuer)
    }

    /// Whether there is a fresh token, and not the stale one.
    pub(super) fn is_newer(&self, stale: Option<&Secret>) -> bool {
        let state = self.state();
        let Some(grant) = &state.grant else {
            return false;
        };
        grant.is_fresh() && !stale.is_some_and(|stale| grant.access.is(stale.reveal()))
    }

    async fn begin(
        &self,
        found: &Found,
        challenge: Option<&Challenge>,
    ) -> Result<Grant, AuthError> {
        let done = self.flow(found, challenge).await;
        let person = matches!(self.0.set.way, Way::Person(_));
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

    /// A refusal without a person stands for a while: asking for the same again at once brings the same.
    fn is_cool(&self, more: Option<&str>) -> Result<(), AuthError> {
        let mut state = self.state();
        match &state.refused {
            Some((at, for_, error)) if at.elapsed() < COOL && for_.as_deref() == more => {
                Err(error.clone())
            }
            _ => {
                state.refused = None;
                Ok(())
            }
        }
    }

    /// Finds the authorization server, anew: the server may have another by now.
    async fn discover(&self, challenge: Option<&Challenge>) -> Result<Arc<Found>, AuthError> {
        let known = self
            .state()
            .grant
            .as_ref()
            .map(|grant| grant.issuer.clone());
        let known = known.or_else(|| self.0.set.identity.issuer().map(str::to_owned));
        let hint = challenge.and_then(|challenge| challenge.get("resource_metadata"));
        let found =
            discovery::find(&self.0.fetcher, &self.0.set.server, hint, known.as_deref()).await?;
        let found = Arc::new(found);
        let mut state = self.state();
        // What was asked of one authorization server is nothing to another.
        let same = state
            .found
            .as_ref()
            .is_none_or(|old| old.server.issuer == found.server.issuer);
        if !same {
            state.asked = Scopes::default();
        }
        state.found = Some(found.clone());
        Ok(found)
    }

    async fn flow(&self, found: &Found, challenge: Option<&Challenge>) -> Result<Grant, AuthError> {
        let (before, mut asked) = {
            let state = self.state();
            (state.grant.clone(), state.asked.clone())
        };
        if let Some(before) = before.filter(|grant| grant.issuer == found.server.issuer) {
            asked = asked.and(&before.scopes).and(&before.wanted);
        }
        let challenged = challenge
            .and_then(|challenge| challenge.get("scope"))
            .map(Scopes::read);
        let of_server = found.server.scopes.as_ref();
        let person = matches!(self.0.set.way, Way::Person(_));
        let scopes = choose(
            challenged.as_ref(),
            found.scopes.as_ref(),
            &asked,
            of_server,
            self.0.set.offline && person,
        );
        let binding = self.wanted_binding(found, challenge)?;
        if matches!(self.0.set.way, Way::Nobody) {
            let wanted = more(challenge).map(Scopes::read);
            self.want(found, wanted.as_ref()).await?;
            return Err(self.who_signs_in(found, wanted.as_ref()));
        }
        let (answer, client) = match self.ask(found, &scopes, binding.as_deref()).await {
            Err(error) if error.kind() == AuthErrorKind::Refused => {
                // What a server wants and its authorization server does not know would stop each sign-in to come.
                self.want_no_more().await?;
                return Err(error);
            }
            answer => answer?,
        };
        self.state().asked = scopes.clone();
        let grant = Grant {
            client: client.filter(|client| client.redirect.is_some()),
            ..granted(found, scopes, binding.as_deref(), answer)?
        };
        if let Err(error) = self.put(Some(grant.clone())).await {
            // Nobody could use it once this ends.
            self.state().grant = None;
            let _ = self.told(&grant).await;
            return Err(error);
        }
        Ok(grant)
    }

    fn wanted_binding(
        &self,
        found: &Found,
        challenge: Option<&Challenge>,
    ) -> Result<Option<Arc<Binding>>, AuthError> {
        let by_server =
            found.bound || challenge.is_some_and(|challenge| challenge.scheme == "dpop");
        if !by_server && self.0.set.bind != Bind::Always {
            return Ok(None);
        }
        if !found.server.binds {
            let words = format!(
                "tokens have to be bound to a key (DPoP), and the authorization server {} does not do that with ES256",
                shown(&found.server.issuer)
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        }
        self.binding().map(Some)
    }

    async fn ask(
        &self,
        found: &Found,
        scopes: &Scopes,
        binding: Option<&Binding>,
    ) -> Result<(Answer, Option<OauthClient>), AuthError> {
        let server = &found.server;
        if let Way::Person(person) = &self.0.set.way {
            let visited = self.visit(person.as_ref(), found, scopes, binding).await?;
            return Ok((visited.0, Some(visited.1)));
        }
        let client = self.0.set.identity.given(&server.issuer)?.ok_or_else(|| {
            let words = format!(
                "no client is set for {}; register one there and set its id",
                shown(&server.issuer)
            );
            AuthError::new(AuthErrorKind::Unsupported, words)
        })?;
        let endpoint = Endpoint::of(server, &client, &self.0.fetcher, binding);
        let answer = match &self.0.set.way {
            Way::Enterprise(enterprise) => enterprise.ask(found, scopes, &endpoint).await,
            Way::Workload(workload) => workload.ask(found, scopes, &endpoint).await,
            _ => grants::client_credentials(found, scopes, &endpoint).await,
        };
        answer.map(|answer| (answer, None)).map_err(|no| no.error)
    }

    /// Keeps what the server wants beyond what was granted, for the next sign-in.
    async fn want(&self, found: &Found, wanted: Option<&Scopes>) -> Result<(), AuthError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        let Some(kept) = kept.filter(|kept| kept.issuer == found.server.issuer) else {
            return Ok(());
        };
        if kept.wanted.covers(wanted) {
            return Ok(());
        }
        let wanted = kept.wanted.remembering(wanted);
        if wanted == kept.wanted {
            return Ok(());
        }
        self.keep_wanted(kept, wanted).await
    }

    async fn want_no_more(&self) -> Result<(), AuthError> {
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        match kept.filter(|kept| !kept.wanted.is_empty()) {
            Some(kept) => self.keep_wanted(kept, Scopes::default()).await,
            None => Ok(()),
        }
    }

    async fn keep_wanted(&self, kept: Grant, wanted: Scopes) -> Result<(), AuthError> {
        if let Some(grant) = &mut self.state().grant {
            grant.wanted = wanted.clone();
        }
        let kept = Grant { wanted, ..kept };
        self.0.set.store.keep(self.0.set.key(), Some(kept)).await?;
        Ok(())
    }

    /// For a person who reads that there is no token, or one that may too little.
    fn who_signs_in(&self, found: &Found, wanted: Option<&Scopes>) -> AuthError {
        let origin = self.0.set.server.origin();
        if found.guessed {
            let words = format!(
                "{origin} names no authorization server; set its credentials in its headers"
            );
            return AuthError::new(AuthErrorKind::Unsupported, words);
        }
        let how = self.0.set.how.as_ref().map(|how| format!("; {how}"));
        let with = match wanted.map(Scopes::to_string) {
            None => String::new(),
            Some(scopes) if scopes.is_empty() => " again, to allow more".to_owned(),
            Some(scopes) => format!(" again, to allow more: {}", shown(&scopes)),
        };
        let words = format!(
            "somebody has to sign in at {} for {origin}{with}{}",
            shown(&found.server.issuer),
            how.unwrap_or_default()
        );
        AuthError::new(AuthErrorKind::NeedsSignIn, words)
    }

    async fn visit(
        &self,
        person: &dyn SignIn,
        found: &Found,
        scopes: &Scopes,
        binding: Option<&Binding>,
    ) -> Result<(Answer, OauthClient), AuthError> {
        let inner = &self.0;
        let server = &found.server;
        let kept = inner.set.store.client(&server.issuer).await?;
        let wanted = match inner.set.identity.known(server)? {
            Some(given) => given.redirect,
            None => kept.and_then(|client| client.redirect),
        };
        let visit = person.begin(wanted.as_deref()).await?;
        let store = inner.set.store.as_ref();
        let identity = &inner.set.identity;
        let client = identity
            .at(server, visit.redirect(), &inner.fetcher, store)
            .await?;
        let pending = Pending::new(found, &client, visit.redirect())?;
        let query = visit.go(pending.url(scopes, inner.set.reach)?).await?;
        let code = pending.code(&query)?;
        let endpoint = Endpoint::of(server, &client, &inner.fetcher, binding);
        match pending.redeem(&code, &endpoint).await {
            Ok(answer) => Ok((answer, client)),
            Err(no) => Err(self.unknown_client(&client, no, &server.issuer).await?),
        }
    }

    /// A registration that the server has forgotten is forgotten here too, so that the next sign-in makes another.
    async fn unknown_client(
        &self,
        client: &OauthClient,
        no: NoToken,
        issuer: &str,
    ) -> Result<AuthError, AuthError> {
        let dynamic = client.redirect.is_some() && self.0.set.identity.issuer().is_none();
        if dynamic && no.code.as_deref() == Some("invalid_client") {
            self.0.set.store.keep_client(issuer, None).await?;
        }
        Ok(no.error)
    }
}

/// The scopes that a server wants beyond those of the token that it refused.
fn more(challenge: Option<&Challenge>) -> Option<&str> {
    let challenge = challenge.filter(|challenge| challenge.get("error") == Some(MORE))?;
    Some(challenge.get("scope").unwrap_or_default())
}

/// The challenge that we can answer: a bound token where the server wants one, else a bearer token.
pub(super) fn ours(all: Vec<Challenge>) -> Option<Challenge> {
    let mut all: Vec<Challenge> = all
        .into_iter()
        .filter(|one| one.scheme == "bearer" || one.scheme == "dpop")
        .collect();
    let bearer = all.iter().position(|one| one.scheme == "bearer");
    match bearer {
        Some(at) => Some(all.swap_remove(at)),
        None => all.into_iter().next(),
    }
}

fn granted(
    found: &Found,
    asked: Scopes,
    binding: Option<&Binding>,
    answer: Answer,
) -> Result<Grant, AuthError> {
    let bound = answer.kind == "dpop";
    let unsafe_ = |words: &str| {
        AuthError::new(
            AuthErrorKind::Unsafe,
            format!("{} {words}", shown(&found.server.issuer)),
        )
    };
    match (bound, binding) {
        (false, Some(_)) => {
            return Err(unsafe_(
                "gave a token that is not bound to our key, as it was asked for",
            ));
        }
        (true, None) => {
            return Err(unsafe_(
                "gave a token that is bound to a key, though none was sent",
            ));
        }
        (false, None) if answer.kind != "bearer" => {
            return Err(unsafe_("gave a token of a kind that we do not have"));
        }
        _ => {}
    }
    Ok(Grant {
        issuer: found.server.issuer.clone(),
        resource: found.resource.clone(),
        access: answer.access,
        bound,
        key: binding.map(|binding| binding.kept.clone()),
        until: answer.until,
        refresh: answer.refresh,
        scopes: answer.scopes.unwrap_or(asked),
        wanted: Scopes::default(),
        client: None,
    })
}
