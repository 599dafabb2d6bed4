//! A sign-out: what was granted is forgotten, and given back to who granted it.
//!
//! Source: RFC 7009.

use super::{
    super::{AuthError, Grant, discovery, endpoint::Endpoint},
    Login,
    renew::kept_client,
};

/// What came of a sign-out. In each case nothing is kept any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignedOut {
    /// Nothing was granted.
    Nothing,
    /// It is forgotten here. Its issuer has no way to take tokens back, so they are good until they end.
    Forgotten(String),
    /// Its issuer took it back.
    Revoked(String),
    /// It is forgotten here, and its issuer was not told: the tokens are good until they end.
    Unsaid(String, AuthError),
}

impl Login {
    /// Forgets what was granted, and gives it back to the authorization server where that takes it. What cannot be
    /// given back is forgotten too.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn sign_out(&self) -> Result<SignedOut, AuthError> {
        self.sign_out_telling(|| ()).await
    }

    /// The same, and tells as soon as it is forgotten: giving it back may take a while.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn sign_out_telling(
        &self,
        forgotten: impl FnOnce() + Send,
    ) -> Result<SignedOut, AuthError> {
        let _one = self.flight().await;
        let (store, key) = (&self.0.set.store, self.0.set.key());
        let kept = {
            let _turn = store.turn(key).await?;
            let kept = store.grant(key).await?;
            self.put(None).await?;
            kept
        };
        let Some(grant) = kept else {
            return Ok(SignedOut::Nothing);
        };
        forgotten();
        let out = self.give_back(&grant).await;
        // Whoever signs in again because something is wrong begins with a client of which nothing is wrong. Where that
        // cannot be forgotten, he is signed out all the same.
        let _ = self.forget_registration(&grant).await;
        Ok(out)
    }

    /// Gives a grant back that is kept no more, where its issuer takes it.
    pub async fn give_back(&self, grant: &Grant) -> SignedOut {
        let issuer = grant.issuer.clone();
        match self.told(grant).await {
            Ok(true) => SignedOut::Revoked(issuer),
            Ok(false) => SignedOut::Forgotten(issuer),
            Err(error) => SignedOut::Unsaid(issuer, error),
        }
    }

    /// Whether the issuer took it back. The server itself is not asked: only who granted it gets the tokens.
    pub(super) async fn told(&self, grant: &Grant) -> Result<bool, AuthError> {
        let found = discovery::issuer(&self.0.fetcher, &grant.issuer).await?;
        let Some((server, revocation)) = found.and_then(|found| {
            let revocation = found.revocation.clone()?;
            Some((found, revocation))
        }) else {
            return Ok(false);
        };
        let set = &self.0.set;
        let Some(client) = kept_client(&set.identity, &server, set.store.as_ref(), grant).await?
        else {
            return Ok(false);
        };
        let endpoint = Endpoint {
            url: &revocation,
            ..Endpoint::of(&server, &client, &self.0.fetcher, None)
        };
        // The refresh token first: with it most servers take back all that came of it.
        if let Some(refresh) = &grant.refresh {
            let form = [
                ("token", refresh.reveal()),
                ("token_type_hint", "refresh_token"),
            ];
            endpoint.tell(&form).await?;
        }
        let form = [
            ("token", grant.access.reveal()),
            ("token_type_hint", "access_token"),
        ];
        match endpoint.tell(&form).await {
            // Some take no signed access tokens back: without the other, those end soon.
            Err(_) if grant.refresh.is_some() => Ok(true),
            done => done.map(|()| true),
        }
    }
}
