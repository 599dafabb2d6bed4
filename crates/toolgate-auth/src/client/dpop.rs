//! DPoP: access tokens that are bound to a key, so that a stolen token is useless.
//!
//! Source: RFC 9449.

use super::{AuthError, AuthErrorKind, pkce::random_token};
use crate::{
    Secret, Url,
    clock::now,
    jose::{self, SigningKey},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Header of the DPoP proof of a request.
pub(super) const DPOP_HEADER: HeaderName = HeaderName::from_static("dpop");
/// Response header with the nonce for the next proof.
pub(super) const DPOP_NONCE_HEADER: HeaderName = HeaderName::from_static("dpop-nonce");
/// Error code by which a server demands a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";
/// Maximum length of a nonce in bytes.
const MAX_NONCE_BYTES: usize = 1024;
/// Maximum number of origins with a stored nonce.
const MAX_NONCE_ORIGINS: usize = 16;

/// DPoP key and the nonces that servers issued, by origin.
pub(super) struct DpopKey {
    key: SigningKey,
    /// Private key in PKCS #8, Base64; stored with the tokens that it binds.
    pub(super) stored: Secret,
    nonces: Mutex<HashMap<String, String>>,
}

impl DpopKey {
    /// Restores the stored key, or generates a new one.
    pub(super) fn new(kept: Option<&Secret>) -> Result<DpopKey, AuthError> {
        let failed = |words: String| AuthError::new(AuthErrorKind::Store, words);
        let (key, kept) = match kept {
            Some(kept) => {
                let key = SigningKey::from_stored(kept).map_err(|bad| {
                    failed(format!(
                        "the stored DPoP key is damaged: {bad}; sign in again"
                    ))
                })?;
                (key, kept.clone())
            }
            None => SigningKey::generate()
                .map_err(|why| failed(format!("no DPoP key can be created: {why}")))?,
        };
        Ok(DpopKey {
            key,
            stored: kept,
            nonces: Mutex::default(),
        })
    }

    /// Creates the DPoP proof of one request. `token` is the access token that the request carries.
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&Secret>,
    ) -> Result<HeaderValue, AuthError> {
        let mut claims = json!({
            "jti": random_token()?,
            "htm": method,
            // RFC 9449, section 4.2: `htu` has no query and no fragment.
            "htu": format!("{}{}", url.origin(), url.path()),
            "iat": now(),
        });
        if let Some(token) = token {
            claims["ath"] = jose::encode(digest(&SHA256, token.reveal().as_bytes())).into();
        }
        if let Some(nonce) = self.lock_nonces().get(&url.origin()) {
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

    /// Stores the nonce of a response. Returns whether it differs from the previous one.
    pub(super) fn store_nonce(&self, origin: &str, headers: &HeaderMap) -> bool {
        let nonce = headers
            .get(DPOP_NONCE_HEADER)
            .and_then(|nonce| nonce.to_str().ok());
        let Some(nonce) = nonce.filter(|nonce| !nonce.is_empty() && nonce.len() <= MAX_NONCE_BYTES)
        else {
            return false;
        };
        let mut nonces = self.lock_nonces();
        if nonces.len() >= MAX_NONCE_ORIGINS && !nonces.contains_key(origin) {
            nonces.clear();
        }
        nonces
            .insert(origin.to_owned(), nonce.to_owned())
            .as_deref()
            != Some(nonce)
    }

    fn lock_nonces(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    /// Returns header and claims of a proof after verifying its signature with the embedded key.
    fn read(proof: &HeaderValue) -> (Value, Value) {
        assert!(proof.is_sensitive(), "it is not printed");
        let (text, signature) = proof.to_str().unwrap().rsplit_once('.').unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        let part = |part: &str| jose::decode(part).unwrap();
        let value = |text: &str| serde_json::from_slice::<Value>(&part(text)).unwrap();
        let header = value(header);
        let of = |name: &str| part(header["jwk"][name].as_str().unwrap());
        let point = [vec![4], of("x"), of("y")].concat();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(text.as_bytes(), &part(signature)).unwrap();
        (header, value(claims))
    }

    /// Holds: XAUTH-04.
    #[test]
    fn proof_covers_one_request_and_contains_only_the_public_key() {
        let binding = DpopKey::new(None).unwrap();
        let url = Url::parse("https://a.test:8443/mcp?key=s3cret").unwrap();
        let (header, claims) = read(&binding.proof("POST", &url, None).unwrap());
        assert_eq!(
            (&header["typ"], &header["alg"]),
            (&json!("dpop+jwt"), &json!("ES256"))
        );
        let jwk: Vec<&String> = header["jwk"].as_object().unwrap().keys().collect();
        assert_eq!(jwk, ["crv", "kty", "x", "y"], "nothing of the private key");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(
            claims["htu"], "https://a.test:8443/mcp",
            "without its query"
        );
        assert!(claims["iat"].as_u64().unwrap().abs_diff(now()) < 60);
        assert!(claims.get("ath").is_none() && claims.get("nonce").is_none());
        // Example token and hash of RFC 9449, section 7.1.
        let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
        let (_, with) = read(&binding.proof("GET", &url, Some(&token)).unwrap());
        assert_eq!(with["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(with["htm"], "GET");
        assert_ne!(with["jti"], claims["jti"], "each is another one");
        // Restoring from the stored key results in the same key.
        let again = DpopKey::new(Some(&binding.stored)).unwrap();
        let (kept, _) = read(&again.proof("POST", &url, None).unwrap());
        assert_eq!(kept["jwk"], header["jwk"]);
    }

    #[test]
    fn nonces_are_stored_per_origin() {
        let binding = DpopKey::new(None).unwrap();
        let said = |nonce: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(DPOP_NONCE_HEADER, nonce.parse().unwrap());
            headers
        };
        let (a, b) = ("https://a.test", "https://b.test");
        let nonce = |origin: &str| {
            let url = Url::parse(&format!("{origin}/x")).unwrap();
            read(&binding.proof("POST", &url, None).unwrap()).1["nonce"].clone()
        };
        assert!(binding.store_nonce(a, &said("n1")) && !binding.store_nonce(a, &said("n1")));
        assert_eq!((nonce(a), nonce(b)), (json!("n1"), Value::Null));
        assert!(binding.store_nonce(a, &said("n2")) && binding.store_nonce(b, &said("n1")));
        assert_eq!((nonce(a), nonce(b)), (json!("n2"), json!("n1")));
        let long = "n".repeat(MAX_NONCE_BYTES + 1);
        assert!(!binding.store_nonce(a, &said(&long)) && !binding.store_nonce(a, &said("")));
        assert!(!binding.store_nonce(a, &HeaderMap::new()));
        assert_eq!(nonce(a), "n2");
        for n in 0..=MAX_NONCE_ORIGINS {
            binding.store_nonce(&format!("https://{n}.test"), &said("n"));
        }
        assert!(binding.lock_nonces().len() <= MAX_NONCE_ORIGINS);
    }
}
