//! Tokens that are bound to a key, so that who steals one cannot use it.
//!
//! Source: RFC 9449.

use super::{AuthError, AuthErrorKind, pkce::random, tokens::now};
use crate::{
    Secret, Url,
    jose::{self, SigningKey},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// The proof of a request.
pub(super) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// What a server wants in the next proof.
pub(super) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error that asks for it.
pub(super) const WANTS_NONCE: &str = "use_dpop_nonce";
/// Longest nonce.
const LONGEST: usize = 1024;
/// Most origins whose nonces are kept.
const ORIGINS: usize = 16;

/// A key, and the nonces that servers gave for it.
pub(super) struct Binding {
    key: SigningKey,
    /// The private key, to be kept with what it binds.
    pub(super) kept: Secret,
    nonces: Mutex<HashMap<String, String>>,
}

impl Binding {
    /// A new key, or the one that was kept.
    pub(super) fn new(kept: Option<&Secret>) -> Result<Binding, AuthError> {
        let failed = |bad: jose::BadKey| {
            AuthError::new(AuthErrorKind::Store, format!("the key of a token: {bad}"))
        };
        let (key, kept) = match kept {
            Some(kept) => (SigningKey::kept(kept).map_err(failed)?, kept.clone()),
            None => SigningKey::generate().map_err(failed)?,
        };
        Ok(Binding {
            key,
            kept,
            nonces: Mutex::default(),
        })
    }

    /// A proof for one request. `token` is what goes along, where there is one.
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&Secret>,
    ) -> Result<HeaderValue, AuthError> {
        let mut claims = json!({
            "jti": random()?,
            "htm": method,
            // Without a query.
            "htu": format!("{}{}", url.origin(), url.path()),
            "iat": now(),
        });
        if let Some(token) = token {
            claims["ath"] = jose::encode(digest(&SHA256, token.reveal().as_bytes())).into();
        }
        if let Some(nonce) = self.nonces().get(&url.origin()) {
            claims["nonce"] = nonce.as_str().into();
        }
        let header = json!({"typ": "dpop+jwt", "jwk": self.key.public_jwk()});
        let failed = |words: String| AuthError::new(AuthErrorKind::Store, words);
        let proof = self
            .key
            .sign(header, &claims)
            .map_err(|bad| failed(bad.to_string()))?;
        let mut proof = HeaderValue::from_str(&proof).map_err(|bad| failed(bad.to_string()))?;
        proof.set_sensitive(true);
        Ok(proof)
    }

    /// Keeps the nonce of a response; true where it is another one than before.
    pub(super) fn hear(&self, origin: &str, headers: &HeaderMap) -> bool {
        let nonce = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok());
        let Some(nonce) = nonce.filter(|nonce| !nonce.is_empty() && nonce.len() <= LONGEST) else {
            return false;
        };
        let mut nonces = self.nonces();
        if nonces.len() >= ORIGINS && !nonces.contains_key(origin) {
            nonces.clear();
        }
        nonces
            .insert(origin.to_owned(), nonce.to_owned())
            .as_deref()
            != Some(nonce)
    }

    fn nonces(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
