//! Token request of an OAuth client: scopes, grant type, and storage of the new credential.

use super::{
    super::{
        AuthChallenge, AuthError, AuthErrorKind, DiscoveredResource, OAuthCredential,
        RegisteredClient, ScopeSet, dpop::DpopKey, error::sanitize_for_display, grants,
        scopes::select_scopes, token_endpoint::TokenEndpoint, tokens::TokenResponse,
    },
    DpopPolicy, GrantType, OAuthClient,
    authorize::demanded_scopes,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Timeout for the revocation of a replaced credential.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(10);

impl OAuthClient {
    pub(super) async fn authorization_flow(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<OAuthCredential, AuthError> {
        let (before, mut asked) = {
            let state = self.lock_state();
            (state.grant.clone(), state.requested_scopes.clone())
        };
        if let Some(before) = before.filter(|grant| grant.issuer == found.server.issuer) {
            asked = asked.union(&before.scopes).union(&before.demanded_scopes);
        }
        let challenged = challenge
            .and_then(|challenge| challenge.parameter("scope"))
            .map(ScopeSet::parse);
        let of_server = found.server.scopes.as_ref();
        let person = matches!(self.0.settings.grant_type, GrantType::AuthorizationCode(_));
        let chosen = select_scopes(
            challenged.as_ref(),
            found.scopes.as_ref(),
            &asked,
            of_server,
            self.0.settings.identity.wants_refresh_token && person,
        );
        let scopes = self.0.settings.scopes.clone().unwrap_or(chosen);
        let binding = self.required_dpop_key(found, challenge)?;
        if matches!(self.0.settings.grant_type, GrantType::StoredOnly) {
            let wanted = demanded_scopes(challenge).map(ScopeSet::parse);
            self.store_demanded_scopes(found, wanted.as_ref()).await?;
            return Err(self.sign_in_error(found, wanted.as_ref()));
        }
        let (answer, client) = match self.request_token(found, &scopes, binding.as_deref()).await {
            Err(error) if error.kind() == AuthErrorKind::Refused => {
                // Scopes that the authorization server does not know would make every later sign-in fail.
                self.clear_demanded_scopes().await?;
                return Err(error);
            }
            answer => answer?,
        };
        self.lock_state().requested_scopes = scopes.clone();
        let grant = OAuthCredential {
            client: client.filter(|client| client.redirect_uri.is_some()),
            ..credential_from(found, scopes, binding.as_deref(), answer)?
        };
        match self.replace_credential(&grant).await {
            Ok(Some(old)) if is_revocable_alone(&old, &grant) => {
                let _ = timeout(REVOCATION_TIMEOUT, self.try_revoke(&old)).await;
                Ok(grant)
            }
            Ok(_) => Ok(grant),
            Err(error) => {
                // A credential that cannot be stored would be lost when the process ends, so it is revoked.
                self.lock_state().grant = None;
                let _ = self.try_revoke(&grant).await;
                Err(error)
            }
        }
    }

    /// Stores a new credential and returns the previous one.
    async fn replace_credential(
        &self,
        grant: &OAuthCredential,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        let (store, key) = (&self.0.settings.store, self.0.settings.key());
        let _turn = store.refresh_lock(key).await?;
        let old = store.grant(key).await?;
        self.store_credential(Some(grant.clone())).await?;
        Ok(old)
    }

    fn required_dpop_key(
        &self,
        found: &DiscoveredResource,
        challenge: Option<&AuthChallenge>,
    ) -> Result<Option<Arc<DpopKey>>, AuthError> {
        let by_server =
            found.requires_dpop || challenge.is_some_and(|challenge| challenge.scheme == "dpop");
        if !by_server && self.0.settings.dpop != DpopPolicy::Always {
            return Ok(None);
        }
        if !found.server.supports_dpop {
            let words = format!(
                "DPoP-bound tokens are required, but the authorization server {} does not support them with ES256; ask its operator to enable that",
                sanitize_for_display(&found.server.issuer)
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        }
        self.dpop_key().map(Some)
    }

    async fn request_token(
        &self,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
        binding: Option<&DpopKey>,
    ) -> Result<(TokenResponse, Option<RegisteredClient>), AuthError> {
        let server = &found.server;
        if let GrantType::AuthorizationCode(person) = &self.0.settings.grant_type {
            let visited = self
                .authorize_in_browser(person.as_ref(), found, scopes, binding)
                .await?;
            return Ok((visited.0, Some(visited.1)));
        }
        if found.is_fallback && self.0.settings.identity.issuer().is_none() {
            let words = format!(
                "{} names no authorization server, and client credentials are sent only to a named one; set the issuer of the client",
                self.0.settings.server.origin()
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        }
        let client = self
            .0
            .settings
            .identity
            .configured_client(&server.issuer)?
            .ok_or_else(|| {
                let words = format!(
                    "no client_id is configured for the authorization server {}; register a client there and set its client_id",
                    sanitize_for_display(&server.issuer)
                );
                AuthError::new(AuthErrorKind::Unsupported, words)
            })?;
        let endpoint = TokenEndpoint::from_metadata(server, &client, &self.0.fetcher, binding);
        let answer = match &self.0.settings.grant_type {
            GrantType::Enterprise(enterprise) => {
                enterprise.request_token(found, scopes, &endpoint).await
            }
            GrantType::Workload(workload) => workload.request_token(found, scopes, &endpoint).await,
            _ => grants::client_credentials(found, scopes, &endpoint).await,
        };
        answer.map(|answer| (answer, None)).map_err(|no| no.error)
    }
}

/// Returns whether revoking the old credential leaves the new one valid. An authorization server may revoke everything
/// that a user granted to the same client (RFC 7009, section 2.1).
fn is_revocable_alone(old: &OAuthCredential, new: &OAuthCredential) -> bool {
    let other = match (&old.client, &new.client) {
        (Some(old), Some(new)) => old.id != new.id,
        _ => false,
    };
    old.issuer != new.issuer || other
}

fn credential_from(
    found: &DiscoveredResource,
    asked: ScopeSet,
    binding: Option<&DpopKey>,
    answer: TokenResponse,
) -> Result<OAuthCredential, AuthError> {
    let bound = answer.token_type == "dpop";
    let unsafe_ = |words: &str| {
        AuthError::new(
            AuthErrorKind::Unsafe,
            format!("{} {words}", sanitize_for_display(&found.server.issuer)),
        )
    };
    match (bound, binding) {
        (false, Some(_)) => {
            return Err(unsafe_(
                "issued a token without the requested DPoP binding, so it is not used",
            ));
        }
        (true, None) => {
            return Err(unsafe_(
                "issued a DPoP-bound token, although the request had no DPoP proof, so it is not used",
            ));
        }
        (false, None) if answer.token_type != "bearer" => {
            return Err(unsafe_(
                "issued a token that is neither a bearer token nor DPoP-bound; other types are not supported",
            ));
        }
        _ => {}
    }
    Ok(OAuthCredential {
        issuer: found.server.issuer.clone(),
        resource: found.resource.clone(),
        access_token: answer.access_token,
        is_dpop_bound: bound,
        dpop_key: binding.map(|binding| binding.stored.clone()),
        expires_at: answer.expires_at,
        refresh_token: answer.refresh_token,
        scopes: answer.scopes.unwrap_or(asked),
        demanded_scopes: ScopeSet::default(),
        client: None,
    })
}
