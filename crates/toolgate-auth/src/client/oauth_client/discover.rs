//! Discovery of the authorization server of an OAuth client.

use super::{
    super::{
        AuthChallenge, AuthError, DiscoveredResource, OAuthCredential, ScopeSet, discovery,
        parse_challenges,
    },
    OAuthClient,
    authorize::supported_challenge,
};
use crate::{
    Url,
    fetch::{FetchRequest, FetchResponse},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use std::sync::Arc;

/// Maximum number of redirects of the probe, as in a transport.
const MAX_PROBE_REDIRECTS: usize = 3;

impl OAuthClient {
    /// Returns the challenge that the server sends to a request without a token. Without one, discovery uses the
    /// well-known URLs.
    pub(super) async fn probe(&self) -> Option<AuthChallenge> {
        let fetched = self.ping().await?;
        let asks = fetched.status == StatusCode::UNAUTHORIZED;
        asks.then(|| supported_challenge(parse_challenges(&fetched.headers)))
            .flatten()
    }

    /// Sends `ping` and follows redirects within the origin, as a transport does.
    async fn ping(&self) -> Option<FetchResponse> {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let mut url = self.0.settings.server.clone();
        for _ in 0..=MAX_PROBE_REDIRECTS {
            let mut request = FetchRequest::json(url.clone(), &ping);
            let both = HeaderValue::from_static("application/json, text/event-stream");
            request.headers.insert(header::ACCEPT, both);
            request.headers.insert(
                HeaderName::from_static("mcp-protocol-version"),
                HeaderValue::from_static("2025-11-25"),
            );
            let fetched = self.0.fetcher.fetch_without_redirects(request).await.ok()?;
            match fetched.status {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    let to = fetched.headers.get(header::LOCATION)?.to_str().ok()?;
                    let to: Url = url.resolve(to).ok()?;
                    url = Some(to).filter(|to| to.same_origin(&url))?;
                }
                _ => return Some(fetched),
            }
        }
        None
    }

    /// Discovers the authorization server again, because it may have changed. `may` returns an error for an issuer that
    /// must not be contacted now.
    pub(super) async fn discover(
        &self,
        challenge: Option<&AuthChallenge>,
        may: impl Fn(&str) -> Result<(), AuthError>,
    ) -> Result<Arc<DiscoveredResource>, AuthError> {
        let granted = self.lock_state().grant.clone();
        let known = granted.as_ref().map(|grant| grant.issuer.as_str());
        let known = known.or_else(|| self.0.settings.identity.issuer());
        let hint = challenge.and_then(|challenge| challenge.parameter("resource_metadata"));
        let (fetcher, server) = (&self.0.fetcher, &self.0.settings.server);
        let found = discovery::discover(fetcher, server, hint, known, may).await;
        let found = match (found, granted) {
            // The issuer of the stored credential is not replaced by a guess.
            (Ok(found), Some(granted))
                if found.is_fallback && granted.issuer != found.server.issuer =>
            {
                return self.discovered_for(&granted).await;
            }
            (found, _) => Arc::new(found?),
        };
        let mut state = self.lock_state();
        // Scopes that were requested at one authorization server mean nothing to another.
        let same = state
            .server
            .as_ref()
            .is_none_or(|old| old.issuer == found.server.issuer);
        if !same {
            state.requested_scopes = ScopeSet::default();
        }
        state.server = Some(Arc::new(found.server.clone()));
        Ok(found)
    }

    /// Returns the issuer of a stored credential as the discovery result.
    pub(super) async fn discovered_for(
        &self,
        grant: &OAuthCredential,
    ) -> Result<Arc<DiscoveredResource>, AuthError> {
        let server = self.issuer_metadata(&grant.issuer).await?;
        Ok(Arc::new(DiscoveredResource {
            resource: grant.resource.clone(),
            scopes: None,
            requires_dpop: grant.is_dpop_bound,
            // A sign-in at this issuer succeeded before, so it is not a guess.
            is_fallback: false,
            server: (*server).clone(),
        }))
    }
}
