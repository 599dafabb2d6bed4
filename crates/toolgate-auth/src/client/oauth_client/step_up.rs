//! Scopes that a server demanded while no user could sign in; the next sign-in requests them.

use super::{
    super::{AuthError, AuthErrorKind, DiscoveredResource, ScopeSet, error::sanitize_for_display},
    OAuthClient,
};

impl OAuthClient {
    /// Stores the additional scopes that the server demanded.
    pub(super) async fn store_demanded_scopes(
        &self,
        found: &DiscoveredResource,
        wanted: Option<&ScopeSet>,
    ) -> Result<(), AuthError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let issuer = &found.server.issuer;
        self.update_demanded_scopes(Some(issuer), |before| before.with_demanded(wanted))
            .await
    }

    /// Deletes the additional scopes.
    pub(super) async fn clear_demanded_scopes(&self) -> Result<(), AuthError> {
        self.update_demanded_scopes(None, |_| ScopeSet::default())
            .await
    }

    /// Updates the additional scopes under the refresh lock. This writes the whole credential, and a concurrent refresh
    /// would otherwise be overwritten with the used refresh token.
    async fn update_demanded_scopes(
        &self,
        of: Option<&str>,
        change: impl FnOnce(&ScopeSet) -> ScopeSet,
    ) -> Result<(), AuthError> {
        let (store, key) = (&self.0.settings.store, self.0.settings.key());
        let _turn = store.refresh_lock(key).await?;
        let kept = store.grant(key).await?;
        let Some(mut kept) = kept.filter(|kept| of.is_none_or(|of| kept.issuer == of)) else {
            return Ok(());
        };
        let wanted = change(&kept.demanded_scopes);
        if kept.demanded_scopes == wanted {
            return Ok(());
        }
        if let Some(grant) = &mut self.lock_state().grant {
            grant.demanded_scopes = wanted.clone();
        }
        kept.demanded_scopes = wanted;
        store.put(key, Some(kept)).await?;
        Ok(())
    }

    /// Builds the error that tells a user to sign in because a token or a scope is missing.
    pub(super) fn sign_in_error(
        &self,
        found: &DiscoveredResource,
        wanted: Option<&ScopeSet>,
    ) -> AuthError {
        let origin = self.0.settings.server.origin();
        let how = self
            .0
            .settings
            .sign_in_hint
            .as_ref()
            .map(|how| format!("; {how}"));
        let with = match wanted.map(ScopeSet::to_string) {
            None => String::new(),
            Some(scopes) if scopes.is_empty() => " again, to allow more".to_owned(),
            Some(scopes) => format!(" again, to allow more: {}", sanitize_for_display(&scopes)),
        };
        let why = match self.refresh_failure().filter(|_| wanted.is_none()) {
            Some(why) => format!(", because the credential cannot be refreshed: {why}"),
            None => String::new(),
        };
        // A server of 2025-03-26 may work like this, and so does one that supports only other credentials.
        let unless = match found.is_fallback {
            true => {
                "; the server names no authorization server, so if it does not use OAuth, configure its credentials as headers"
            }
            false => "",
        };
        let words = format!(
            "a user has to sign in at {} for {origin}{with}{why}{}{unless}",
            sanitize_for_display(&found.server.issuer),
            how.unwrap_or_default()
        );
        AuthError::new(AuthErrorKind::NeedsSignIn, words)
    }
}
