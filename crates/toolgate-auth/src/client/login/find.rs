//! Which authorization server is asked.

use super::{
    super::{AuthError, Challenge, Found, Grant, Scopes, challenges, discovery},
    Login,
    authorize::ours,
};
use crate::{
    Url,
    fetch::{Fetched, Request},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use std::sync::Arc;

/// Most redirects of the first request, as a transport follows them.
const REDIRECTS: usize = 3;

impl Login {
    /// What the server says to somebody without a token. Where it says nothing that can be read, its metadata is looked
    /// for at the known places.
    pub(super) async fn probe(&self) -> Option<Challenge> {
        let fetched = self.ping().await?;
        let asks = fetched.status == StatusCode::UNAUTHORIZED;
        asks.then(|| ours(challenges(&fetched.headers))).flatten()
    }

    /// Asks the server, and follows it within its origin, as a transport does.
    async fn ping(&self) -> Option<Fetched> {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let mut url = self.0.set.server.clone();
        for _ in 0..=REDIRECTS {
            let mut request = Request::json(url.clone(), &ping);
            let both = HeaderValue::from_static("application/json, text/event-stream");
            request.headers.insert(header::ACCEPT, both);
            request.headers.insert(
                HeaderName::from_static("mcp-protocol-version"),
                HeaderValue::from_static("2025-11-25"),
            );
            let fetched = self.0.fetcher.fetch_here(request).await.ok()?;
            match fetched.status {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    let to = fetched.headers.get(header::LOCATION)?.to_str().ok()?;
                    let to: Url = url.follow(to).ok()?;
                    url = Some(to).filter(|to| to.same_origin(&url))?;
                }
                _ => return Some(fetched),
            }
        }
        None
    }

    /// Finds the authorization server, anew: the server may have another by now. `may` says whether one is asked now.
    pub(super) async fn discover(
        &self,
        challenge: Option<&Challenge>,
        may: impl Fn(&str) -> Result<(), AuthError>,
    ) -> Result<Arc<Found>, AuthError> {
        let granted = self.state().grant.clone();
        let known = granted.as_ref().map(|grant| grant.issuer.as_str());
        let known = known.or_else(|| self.0.set.identity.issuer());
        let hint = challenge.and_then(|challenge| challenge.get("resource_metadata"));
        let (fetcher, server) = (&self.0.fetcher, &self.0.set.server);
        let found = discovery::find(fetcher, server, hint, known, may).await;
        let found = match (found, granted) {
            // Who granted something is not given up for a guess.
            (Ok(found), Some(granted))
                if found.guessed && granted.issuer != found.server.issuer =>
            {
                return self.by_grant(&granted).await;
            }
            (found, _) => Arc::new(found?),
        };
        let mut state = self.state();
        // What was asked of one authorization server is nothing to another.
        let same = state
            .server
            .as_ref()
            .is_none_or(|old| old.issuer == found.server.issuer);
        if !same {
            state.asked = Scopes::default();
        }
        state.server = Some(Arc::new(found.server.clone()));
        Ok(found)
    }

    /// The one who granted something, for more of the same.
    pub(super) async fn by_grant(&self, grant: &Grant) -> Result<Arc<Found>, AuthError> {
        let server = self.granter(&grant.issuer).await?;
        Ok(Arc::new(Found {
            resource: grant.resource.clone(),
            scopes: None,
            bound: grant.bound,
            // Whoever granted something there was sent there.
            guessed: false,
            server: (*server).clone(),
        }))
    }
}
