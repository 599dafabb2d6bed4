//! JWT signatures with a private key.

use super::{SignatureAlgorithm, encode};
use crate::Secret;
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair},
};
use serde_json::{Value, json};
use std::fmt;

/// Private key that signs JWTs. It has no `Debug` and `Display`.
///
/// ```
/// use serde_json::json;
/// use toolgate_auth::jose::SigningKey;
///
/// let (key, kept) = SigningKey::generate()?;
/// let signed = key.sign(json!({"typ": "JWT"}), &json!({"sub": "ann"}))?;
/// assert_eq!(signed.split('.').count(), 3);
/// // The stored key is the same key.
/// assert_eq!(SigningKey::from_stored(&kept)?.public_jwk(), key.public_jwk());
/// # Ok::<(), toolgate_auth::jose::InvalidKey>(())
/// ```
pub struct SigningKey {
    key: PrivateKey,
    algorithm: SignatureAlgorithm,
}

enum PrivateKey {
    Ecdsa(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    Ed(Ed25519KeyPair),
}

/// Error of an invalid private key. Its text does not quote the key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidKey(&'static str);

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidKey {}

impl SigningKey {
    /// Generates an ES256 signing key. Returns it together with its PKCS #8 form in Base64, for storage.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn generate() -> Result<(SigningKey, Secret), InvalidKey> {
        let rng = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &rng)
            .map_err(|_| InvalidKey("the operating system provides no random numbers; check its random device, or restart the machine"))?;
        let key = SigningKey::from_der(SignatureAlgorithm::Es256, pkcs8.as_ref())?;
        Ok((key, Secret::new(STANDARD.encode(pkcs8.as_ref()))))
    }

    /// Restores an ES256 signing key from the stored form that [`SigningKey::generate`] returned.
    ///
    /// # Errors
    /// [`InvalidKey`]: the text is not such a key.
    pub fn from_stored(text: &Secret) -> Result<SigningKey, InvalidKey> {
        let der = STANDARD
            .decode(text.reveal())
            .map_err(|_| InvalidKey("it is not Base64"))?;
        SigningKey::from_der(SignatureAlgorithm::Es256, &der)
    }

    /// Parses a private signing key in PEM (`BEGIN PRIVATE KEY`, PKCS #8).
    ///
    /// # Errors
    /// [`InvalidKey`]: another format, or a key for another algorithm.
    pub fn from_pem(algorithm: SignatureAlgorithm, pem: &Secret) -> Result<SigningKey, InvalidKey> {
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let inner = pem
            .reveal()
            .split_once(begin)
            .and_then(|(_, rest)| rest.split_once(end));
        let (inner, _) = inner.ok_or(InvalidKey(
            "it has no BEGIN PRIVATE KEY line; convert it with: openssl pkcs8 -topk8 -nodes",
        ))?;
        let packed: String = inner.split_ascii_whitespace().collect();
        let der = STANDARD
            .decode(packed)
            .map_err(|_| InvalidKey("the text between its BEGIN and END lines is not Base64"))?;
        SigningKey::from_der(algorithm, &der)
    }

    fn from_der(algorithm: SignatureAlgorithm, der: &[u8]) -> Result<SigningKey, InvalidKey> {
        let wrong = |_| InvalidKey("it is not a private key for this algorithm");
        let key = match algorithm {
            SignatureAlgorithm::Es256 => {
                let kind = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
                EcdsaKeyPair::from_pkcs8(kind, der, &SystemRandom::new()).map(PrivateKey::Ecdsa)
            }
            SignatureAlgorithm::Rs256 => {
                RsaKeyPair::from_pkcs8(der).map(|key| PrivateKey::Rsa(Box::new(key)))
            }
            SignatureAlgorithm::EdDsa => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(PrivateKey::Ed)
            }
        };
        Ok(SigningKey {
            key: key.map_err(wrong)?,
            algorithm,
        })
    }

    /// Returns the JWS algorithm of the signing key.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns the public key as a JWK; `None` if it is not a P-256 key.
    pub fn public_jwk(&self) -> Option<Value> {
        let PrivateKey::Ecdsa(key) = &self.key else {
            return None;
        };
        // Uncompressed point: one byte, then x and y.
        let point = key.public_key().as_ref();
        let (x, y) = point.get(1..)?.split_at_checked(32)?;
        Some(json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)}))
    }

    /// Signs claims and returns a JWT in the compact serialization. Sets `alg` in the header.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn sign(&self, mut header: Value, claims: &Value) -> Result<String, InvalidKey> {
        header["alg"] = self.algorithm.name().into();
        let text = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        let signature = self.signature(text.as_bytes())?;
        Ok(format!("{text}.{}", encode(signature)))
    }

    fn signature(&self, text: &[u8]) -> Result<Vec<u8>, InvalidKey> {
        let failed = |_| {
            InvalidKey(
                "the private key cannot sign: the operating system provides no random numbers; check its random device, or restart the machine",
            )
        };
        let rng = SystemRandom::new();
        match &self.key {
            PrivateKey::Ecdsa(key) => Ok(key.sign(&rng, text).map_err(failed)?.as_ref().to_vec()),
            PrivateKey::Ed(key) => Ok(key.sign(text).as_ref().to_vec()),
            PrivateKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA256, &rng, text, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::decode;

    #[test]
    fn signatures_verify_with_the_public_key() {
        let (key, kept) = SigningKey::generate().unwrap();
        let key = SigningKey::from_stored(&kept).unwrap_or(key);
        let signed = key.sign(json!({"typ": "x"}), &json!({"iss": "a"})).unwrap();
        let (text, signature) = signed.rsplit_once('.').unwrap();
        let header = decode(text.split('.').next().unwrap()).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header, json!({"typ": "x", "alg": "ES256"}));
        let jwk = key.public_jwk().unwrap();
        let part = |name: &str| decode(jwk[name].as_str().unwrap()).unwrap();
        let point = [vec![4], part("x"), part("y")].concat();
        let public = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
        let signature = decode(signature).unwrap();
        assert!(public.verify(text.as_bytes(), &signature).is_ok());
        assert!(public.verify(b"other", &signature).is_err());
    }

    #[test]
    fn every_algorithm_signs_by_its_name() {
        let rsa = include_str!("of-tests.pem").to_owned();
        let ed = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let ed = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(ed.as_ref())
        );
        let check = |algorithm,
                     pem: &str,
                     name: &str,
                     how: &'static dyn signature::VerificationAlgorithm| {
            let key = SigningKey::from_pem(algorithm, &Secret::new(pem)).unwrap();
            let public = match &key.key {
                PrivateKey::Rsa(key) => key.public().as_ref().to_vec(),
                PrivateKey::Ed(key) => key.public_key().as_ref().to_vec(),
                PrivateKey::Ecdsa(key) => key.public_key().as_ref().to_vec(),
            };
            assert_eq!(key.algorithm(), algorithm);
            // The caller cannot choose the algorithm.
            let signed = key
                .sign(json!({"alg": "none"}), &json!({"iss": "a"}))
                .unwrap();
            let (text, signed) = signed.rsplit_once('.').unwrap();
            let (header, claims) = text.split_once('.').unwrap();
            let read = |part| serde_json::from_slice::<Value>(&decode(part).unwrap()).unwrap();
            assert_eq!(read(header), json!({"alg": name}));
            assert_eq!(read(claims), json!({"iss": "a"}));
            let public = signature::UnparsedPublicKey::new(how, public);
            let signed = decode(signed).unwrap();
            assert!(public.verify(text.as_bytes(), &signed).is_ok(), "{name}");
            assert!(public.verify(b"other", &signed).is_err(), "{name}");
        };
        check(
            SignatureAlgorithm::Rs256,
            &rsa,
            "RS256",
            &signature::RSA_PKCS1_2048_8192_SHA256,
        );
        check(SignatureAlgorithm::EdDsa, &ed, "EdDSA", &signature::ED25519);
        for (algorithm, pem) in [
            (SignatureAlgorithm::Rs256, &ed),
            (SignatureAlgorithm::Es256, &ed),
            (SignatureAlgorithm::EdDsa, &rsa),
            (SignatureAlgorithm::Es256, &rsa),
        ] {
            assert!(SigningKey::from_pem(algorithm, &Secret::new(pem.as_str())).is_err());
        }
    }

    #[test]
    fn rejects_a_malformed_key_without_quoting_it() {
        for pem in [
            "",
            "s3cret",
            "-----BEGIN EC PRIVATE KEY-----\ns3cret\n-----END EC PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\ns3cret!\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ] {
            for algorithm in [
                SignatureAlgorithm::Es256,
                SignatureAlgorithm::Rs256,
                SignatureAlgorithm::EdDsa,
            ] {
                let bad = SigningKey::from_pem(algorithm, &Secret::new(pem))
                    .err()
                    .unwrap();
                assert!(!bad.to_string().contains("s3cret"), "{bad}");
            }
        }
    }
}
