//! Sign-out: deletes the stored credential and revokes its tokens.
//!
//! Source: RFC 7009.

use super::{
    super::{AuthError, OAuthCredential, discovery, token_endpoint::TokenEndpoint},
    OAuthClient,
    refresh::client_of_credential,
};

/// Outcome of a sign-out at an MCP server: deletion and revocation of its OAuth credential. In every case the stored
/// credential is deleted.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignedOut {
    /// No credential was stored.
    NotSignedIn,
    /// The credential was deleted, but not revoked: its issuer has no revocation endpoint. The tokens stay valid until
    /// they expire.
    Deleted(String),
    /// The credential was deleted, and the issuer revoked its tokens.
    Revoked(String),
    /// The credential was deleted, but its revocation failed. The tokens stay valid until they expire.
    RevocationFailed(String, AuthError),
}

impl OAuthClient {
    /// Deletes the stored OAuth credential and revokes its tokens if the authorization server supports that. A failed
    /// revocation does not restore the credential.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn sign_out(&self) -> Result<SignedOut, AuthError> {
        self.sign_out_then(|| ()).await
    }

    /// Signs out like [`sign_out`](OAuthClient::sign_out) and calls `forgotten` between deletion and revocation. The
    /// revocation that follows takes time.
    ///
    /// # Errors
    /// The store cannot be read or written.
    #[doc(hidden)]
    pub async fn sign_out_then(
        &self,
        forgotten: impl FnOnce() + Send,
    ) -> Result<SignedOut, AuthError> {
        let _one = self.acquire_flight().await;
        let (store, key) = (&self.0.settings.store, self.0.settings.key());
        let kept = {
            let _turn = store.refresh_lock(key).await?;
            let kept = store.grant(key).await?;
            self.store_credential(None).await?;
            kept
        };
        let Some(grant) = kept else {
            return Ok(SignedOut::NotSignedIn);
        };
        forgotten();
        let out = self.revoke(&grant).await;
        // A user often signs in again because something is wrong, so the next sign-in starts with a new registration.
        // A failure to delete the old one does not fail the sign-out.
        let _ = self.forget_registration(&grant).await;
        Ok(out)
    }

    /// Revokes the tokens of a credential that is no longer stored, if its issuer supports revocation ([RFC 7009]).
    ///
    /// [RFC 7009]: https://www.rfc-editor.org/rfc/rfc7009
    pub async fn revoke(&self, credential: &OAuthCredential) -> SignedOut {
        let issuer = credential.issuer.clone();
        match self.try_revoke(credential).await {
            Ok(true) => SignedOut::Revoked(issuer),
            Ok(false) => SignedOut::Deleted(issuer),
            Err(error) => SignedOut::RevocationFailed(issuer, error),
        }
    }

    /// Returns whether the issuer revoked the tokens. Only the issuer receives them, never the MCP server.
    pub(super) async fn try_revoke(&self, grant: &OAuthCredential) -> Result<bool, AuthError> {
        let found = discovery::issuer(&self.0.fetcher, &grant.issuer).await?;
        let Some((server, revocation)) = found.and_then(|found| {
            let revocation = found.revocation_endpoint.clone()?;
            Some((found, revocation))
        }) else {
            return Ok(false);
        };
        let set = &self.0.settings;
        let Some(client) =
            client_of_credential(&set.identity, &server, set.store.as_ref(), grant).await?
        else {
            return Ok(false);
        };
        let endpoint = TokenEndpoint {
            url: &revocation,
            ..TokenEndpoint::from_metadata(&server, &client, &self.0.fetcher, None)
        };
        // Refresh token first: most servers also revoke the access tokens of the same grant.
        if let Some(refresh) = &grant.refresh_token {
            let form = [
                ("token", refresh.reveal()),
                ("token_type_hint", "refresh_token"),
            ];
            endpoint.send_form(&form).await?;
        }
        let form = [
            ("token", grant.access_token.reveal()),
            ("token_type_hint", "access_token"),
        ];
        match endpoint.send_form(&form).await {
            // Some servers cannot revoke signed access tokens. Without the refresh token, those expire soon.
            Err(_) if grant.refresh_token.is_some() => Ok(true),
            done => done.map(|()| true),
        }
    }
}
