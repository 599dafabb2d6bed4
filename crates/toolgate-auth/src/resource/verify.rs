//! Public keys as JWK (RFC 7517) and signature verification.

use crate::jose::decode;
use ring::{
    digest,
    signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
        RsaPublicKeyComponents, UnparsedPublicKey,
    },
};
use toolgate_protocol::json::Json;

/// Signature algorithms of DPoP proofs, as the metadata lists them.
pub(super) const DPOP_ALGORITHMS: &[&str] = &["ES256", "EdDSA", "PS256", "RS256"];

/// Signature algorithm of a token. `none` and shared secrets (HMAC) do not exist here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TokenAlgorithm {
    Es256,
    EdDsa,
    Ps256,
    Rs256,
}

impl TokenAlgorithm {
    /// Returns the algorithm of an `alg` name, which is case-sensitive.
    pub(super) fn from_name(name: &str) -> Option<TokenAlgorithm> {
        Some(match name {
            "ES256" => TokenAlgorithm::Es256,
            "EdDSA" | "Ed25519" => TokenAlgorithm::EdDsa,
            "PS256" => TokenAlgorithm::Ps256,
            "RS256" => TokenAlgorithm::Rs256,
            _ => return None,
        })
    }
}

/// Public key. Each kind verifies only its own algorithms, which prevents algorithm confusion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PublicKey {
    /// RSA modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// Point on P-256, uncompressed.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Parses a JWK; `None` for other kinds and for a key with a private part.
    pub(super) fn from_jwk(jwk: &Json) -> Option<PublicKey> {
        let text = |key: &str| jwk.get(key)?.string();
        let bytes = |key: &str| decode(&text(key)?);
        if jwk.get("d").is_some() || jwk.get("k").is_some() {
            return None;
        }
        let curve = text("crv");
        match (text("kty")?.as_str(), curve.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                (n.len() >= 256 && n.len() <= 1024 && e.len() <= 8).then_some(PublicKey::Rsa(n, e))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                (x.len() == 32 && y.len() == 32)
                    .then(|| PublicKey::P256([&[4], &x[..], &y[..]].concat()))
            }
            ("OKP", Some("Ed25519")) => {
                let x = bytes("x")?;
                (x.len() == 32).then_some(PublicKey::Ed25519(x))
            }
            _ => None,
        }
    }

    /// Verifies a signature over a text by an algorithm.
    pub(super) fn verifies(&self, by: TokenAlgorithm, text: &[u8], signature: &[u8]) -> bool {
        match (self, by) {
            (PublicKey::Rsa(n, e), TokenAlgorithm::Rs256 | TokenAlgorithm::Ps256) => {
                let parameters = match by {
                    TokenAlgorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                // `ring` requires numbers without leading zeros.
                let trimmed = |bytes: &'_ [u8]| {
                    let zeros = bytes.iter().take_while(|b| **b == 0).count();
                    bytes[zeros..].to_vec()
                };
                let key = RsaPublicKeyComponents {
                    n: trimmed(n),
                    e: trimmed(e),
                };
                key.verify(parameters, text, signature).is_ok()
            }
            (PublicKey::P256(point), TokenAlgorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(text, signature)
                    .is_ok()
            }
            (PublicKey::Ed25519(key), TokenAlgorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, key)
                    .verify(text, signature)
                    .is_ok()
            }
            _ => false,
        }
    }

    /// Returns the base64url thumbprint of a key (RFC 7638).
    pub(super) fn thumbprint(jwk: &Json) -> Option<String> {
        let text = |key: &str| jwk.get(key)?.string();
        let quoted = |key: &str| Some(serde_json::Value::from(text(key)?).to_string());
        let kind = text("kty")?;
        let members: &[&str] = match kind.as_str() {
            "RSA" => &["e", "kty", "n"],
            "EC" => &["crv", "kty", "x", "y"],
            "OKP" => &["crv", "kty", "x"],
            _ => return None,
        };
        let members: Option<Vec<String>> = members
            .iter()
            .map(|key| Some(format!("\"{key}\":{}", quoted(key)?)))
            .collect();
        let text = format!("{{{}}}", members?.join(","));
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        Some(crate::jose::encode(digest.as_ref()))
    }
}
