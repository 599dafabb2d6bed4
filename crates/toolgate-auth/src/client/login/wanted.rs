//! Scopes that a server demanded while no user could sign in; the next sign-in requests them.

use super::{
    super::{AuthError, AuthErrorKind, DiscoveredResource, ScopeSet, error::shown},
    OAuthClient,
};

impl OAuthClient {
    /// Stores the additional scopes that the server demanded.
    pub(super) async fn want(
        &self,
        found: &DiscoveredResource,
        wanted: Option<&ScopeSet>,
    ) -> Result<(), AuthError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let issuer = &found.server.issuer;
        self.keep_wanted(Some(issuer), |before| before.remembering(wanted))
            .await
    }

    /// Deletes the additional scopes.
    pub(super) async fn want_no_more(&self) -> Result<(), AuthError> {
        self.keep_wanted(None, |_| ScopeSet::default()).await
    }

    /// Updates the additional scopes under the refresh lock. This writes the whole credential, and a concurrent refresh
    /// would otherwise be overwritten with the used refresh token.
    async fn keep_wanted(
        &self,
        of: Option<&str>,
        change: impl FnOnce(&ScopeSet) -> ScopeSet,
    ) -> Result<(), AuthError> {
        let (store, key) = (&self.0.set.store, self.0.set.key());
        let _turn = store.turn(key).await?;
        let kept = store.grant(key).await?;
        let Some(mut kept) = kept.filter(|kept| of.is_none_or(|of| kept.issuer == of)) else {
            return Ok(());
        };
        let wanted = change(&kept.wanted);
        if kept.wanted == wanted {
            return Ok(());
        }
        if let Some(grant) = &mut self.state().grant {
            grant.wanted = wanted.clone();
        }
        kept.wanted = wanted;
        store.keep(key, Some(kept)).await?;
        Ok(())
    }

    /// Builds the error that tells a user to sign in because a token or a scope is missing.
    pub(super) fn who_signs_in(
        &self,
        found: &DiscoveredResource,
        wanted: Option<&ScopeSet>,
    ) -> AuthError {
        let origin = self.0.set.server.origin();
        let how = self.0.set.how.as_ref().map(|how| format!("; {how}"));
        let with = match wanted.map(ScopeSet::to_string) {
            None => String::new(),
            Some(scopes) if scopes.is_empty() => " again, to allow more".to_owned(),
            Some(scopes) => format!(" again, to allow more: {}", shown(&scopes)),
        };
        let why = match self.why_not_renewed().filter(|_| wanted.is_none()) {
            Some(why) => format!(", because the credential cannot be refreshed: {why}"),
            None => String::new(),
        };
        // A server of 2025-03-26 may work like this, and so does one that supports only other credentials.
        let unless = match found.guessed {
            true => {
                "; it names no authorization server: if it has no sign-in, configure its credentials as headers"
            }
            false => "",
        };
        let words = format!(
            "a user has to sign in at {} for {origin}{with}{why}{}{unless}",
            shown(&found.server.issuer),
            how.unwrap_or_default()
        );
        AuthError::new(AuthErrorKind::NeedsSignIn, words)
    }
}
