//! Token request of an OAuth client: scopes, grant type, and storage of the new credential.

use super::{
    super::{
        AuthChallenge, AuthError, AuthErrorKind, DiscoveredResource, OAuthCredential,
        RegisteredClient, ScopeSet, dpop::DpopKey, endpoint::TokenEndpoint, error::shown, grants,
        scopes::choose, tokens::TokenResponse,
    },
    DpopPolicy, GrantType, OAuthClient,
    authorize::more,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Timeout for the revocation of a replaced credential.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(10);

impl OAuthClient {
    pub(super) async fn flow(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<OAuthCredential, AuthError> {
        let (before, mut asked) = {
            let state = self.state();
            (state.grant.clone(), state.asked.clone())
        };
        if let Some(before) = before.filter(|grant| grant.issuer == found.server.issuer) {
            asked = asked.and(&before.scopes).and(&before.wanted);
        }
        let challenged = challenge
            .and_then(|challenge| challenge.get("scope"))
            .map(ScopeSet::read);
        let of_server = found.server.scopes.as_ref();
        let person = matches!(self.0.set.way, GrantType::Person(_));
        let chosen = choose(
            challenged.as_ref(),
            found.scopes.as_ref(),
            &asked,
            of_server,
            self.0.set.identity.offline && person,
        );
        let scopes = self.0.set.scopes.clone().unwrap_or(chosen);
        let binding = self.wanted_binding(found, challenge)?;
        if matches!(self.0.set.way, GrantType::Nobody) {
            let wanted = more(challenge).map(ScopeSet::read);
            self.want(found, wanted.as_ref()).await?;
            return Err(self.who_signs_in(found, wanted.as_ref()));
        }
        let (answer, client) = match self.ask(found, &scopes, binding.as_deref()).await {
            Err(error) if error.kind() == AuthErrorKind::Refused => {
                // Scopes that the authorization server does not know would make every later sign-in fail.
                self.want_no_more().await?;
                return Err(error);
            }
            answer => answer?,
        };
        self.state().asked = scopes.clone();
        let grant = OAuthCredential {
            client: client.filter(|client| client.redirect.is_some()),
            ..granted(found, scopes, binding.as_deref(), answer)?
        };
        match self.replace(&grant).await {
            Ok(Some(old)) if is_of_another_family(&old, &grant) => {
                let _ = timeout(REVOCATION_TIMEOUT, self.told(&old)).await;
                Ok(grant)
            }
            Ok(_) => Ok(grant),
            Err(error) => {
                // A credential that cannot be stored would be lost when the process ends, so it is revoked.
                self.state().grant = None;
                let _ = self.told(&grant).await;
                Err(error)
            }
        }
    }

    /// Stores a new credential and returns the previous one.
    async fn replace(&self, grant: &OAuthCredential) -> Result<Option<OAuthCredential>, AuthError> {
        let (store, key) = (&self.0.set.store, self.0.set.key());
        let _turn = store.turn(key).await?;
        let old = store.grant(key).await?;
        self.put(Some(grant.clone())).await?;
        Ok(old)
    }

    fn wanted_binding(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<Option<Arc<DpopKey>>, AuthError> {
        let by_server =
            found.bound || challenge.is_some_and(|challenge| challenge.scheme == "dpop");
        if !by_server && self.0.set.bind != DpopPolicy::Always {
            return Ok(None);
        }
        if !found.server.binds {
            let words = format!(
                "DPoP-bound tokens are required, and the authorization server {} does not support them with ES256",
                shown(&found.server.issuer)
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        }
        self.binding().map(Some)
    }

    async fn ask(
        &self,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
        binding: Option<&DpopKey>,
    ) -> Result<(TokenResponse, Option<RegisteredClient>), AuthError> {
        let server = &found.server;
        if let GrantType::Person(person) = &self.0.set.way {
            let visited = self.visit(person.as_ref(), found, scopes, binding).await?;
            return Ok((visited.0, Some(visited.1)));
        }
        if found.guessed && self.0.set.identity.issuer().is_none() {
            let words = format!(
                "{} names no authorization server; client credentials are sent only to an authorization server that the server or the operator names",
                self.0.set.server.origin()
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        }
        let client = self.0.set.identity.given(&server.issuer)?.ok_or_else(|| {
            let words = format!(
                "no client is configured for {}; register one there and set its client_id",
                shown(&server.issuer)
            );
            AuthError::new(AuthErrorKind::Unsupported, words)
        })?;
        let endpoint = TokenEndpoint::of(server, &client, &self.0.fetcher, binding);
        let answer = match &self.0.set.way {
            GrantType::Enterprise(enterprise) => enterprise.ask(found, scopes, &endpoint).await,
            GrantType::Workload(workload) => workload.ask(found, scopes, &endpoint).await,
            _ => grants::client_credentials(found, scopes, &endpoint).await,
        };
        answer.map(|answer| (answer, None)).map_err(|no| no.error)
    }
}

/// Returns whether revoking the old credential leaves the new one valid. An authorization server may revoke everything
/// that a user granted to the same client (RFC 7009, section 2.1).
fn is_of_another_family(old: &OAuthCredential, new: &OAuthCredential) -> bool {
    let other = match (&old.client, &new.client) {
        (Some(old), Some(new)) => old.id != new.id,
        _ => false,
    };
    old.issuer != new.issuer || other
}

fn granted(
    found: &DiscoveredResource,
    asked: ScopeSet,
    binding: Option<&DpopKey>,
    answer: TokenResponse,
) -> Result<OAuthCredential, AuthError> {
    let bound = answer.kind == "dpop";
    let unsafe_ = |words: &str| {
        AuthError::new(
            AuthErrorKind::Unsafe,
            format!("{} {words}", shown(&found.server.issuer)),
        )
    };
    match (bound, binding) {
        (false, Some(_)) => {
            return Err(unsafe_("issued a token without the requested DPoP binding"));
        }
        (true, None) => {
            return Err(unsafe_(
                "issued a DPoP-bound token, although no proof was sent",
            ));
        }
        (false, None) if answer.kind != "bearer" => {
            return Err(unsafe_("issued a token of an unsupported type"));
        }
        _ => {}
    }
    Ok(OAuthCredential {
        issuer: found.server.issuer.clone(),
        resource: found.resource.clone(),
        access: answer.access,
        bound,
        key: binding.map(|binding| binding.kept.clone()),
        until: answer.until,
        refresh: answer.refresh,
        scopes: answer.scopes.unwrap_or(asked),
        wanted: ScopeSet::default(),
        client: None,
    })
}
