//! What a server wants beyond what was granted, where nobody is there to sign in for it: kept for the next sign-in.

use super::{
    super::{AuthError, AuthErrorKind, Found, Scopes, error::shown},
    Login,
};

impl Login {
    /// Keeps what the server wants beyond what was granted.
    pub(super) async fn want(
        &self,
        found: &Found,
        wanted: Option<&Scopes>,
    ) -> Result<(), AuthError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let issuer = &found.server.issuer;
        self.keep_wanted(Some(issuer), |before| before.remembering(wanted))
            .await
    }

    /// Forgets that.
    pub(super) async fn want_no_more(&self) -> Result<(), AuthError> {
        self.keep_wanted(None, |_| Scopes::default()).await
    }

    /// The whole grant is written: nobody may renew it meanwhile, or a refresh token that was used would come back.
    async fn keep_wanted(
        &self,
        of: Option<&str>,
        change: impl FnOnce(&Scopes) -> Scopes,
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

    /// For a person who reads that there is no token, or one that may too little.
    pub(super) fn who_signs_in(&self, found: &Found, wanted: Option<&Scopes>) -> AuthError {
        let origin = self.0.set.server.origin();
        let how = self.0.set.how.as_ref().map(|how| format!("; {how}"));
        let with = match wanted.map(Scopes::to_string) {
            None => String::new(),
            Some(scopes) if scopes.is_empty() => " again, to allow more".to_owned(),
            Some(scopes) => format!(" again, to allow more: {}", shown(&scopes)),
        };
        let why = match self.why_not_renewed().filter(|_| wanted.is_none()) {
            Some(why) => format!(", as what was granted is not renewed: {why}"),
            None => String::new(),
        };
        // Servers of 2025-03-26 may be so, and so are those that know other credentials only.
        let unless = match found.guessed {
            true => {
                "; it names no authorization server: if it has no sign-in, set its credentials in its headers"
            }
            false => "",
        };
        let words = format!(
            "somebody has to sign in at {} for {origin}{with}{why}{}{unless}",
            shown(&found.server.issuer),
            how.unwrap_or_default()
        );
        AuthError::new(AuthErrorKind::NeedsSignIn, words)
    }
}
