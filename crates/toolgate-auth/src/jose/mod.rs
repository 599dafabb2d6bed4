//! JSON Web Signatures in the compact serialization (RFC 7515), implemented on `ring`.
//!
//! A JOSE crate brings its own key types and its own cryptography, or a second stack. This crate needs only three
//! signature algorithms and no encryption.

mod sign;

pub use sign::{InvalidKey, SigningKey};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// JWS signature algorithm: ES256, RS256 or EdDSA. `none` and shared secrets (HMAC) do not exist here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// ECDSA on P-256 with SHA-256 (`ES256`).
    Es256,
    /// RSA PKCS #1 v1.5 with SHA-256 (`RS256`).
    Rs256,
    /// Ed25519 (`EdDSA`).
    EdDsa,
}

impl SignatureAlgorithm {
    /// Returns the JWS name of the algorithm, the value of `alg`.
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::Es256 => "ES256",
            SignatureAlgorithm::Rs256 => "RS256",
            SignatureAlgorithm::EdDsa => "EdDSA",
        }
    }

    /// Returns the algorithm of a JWS `alg` name, which is case-sensitive.
    pub fn from_name(name: &str) -> Option<SignatureAlgorithm> {
        [
            SignatureAlgorithm::Es256,
            SignatureAlgorithm::Rs256,
            SignatureAlgorithm::EdDsa,
        ]
        .into_iter()
        .find(|known| known.name() == name)
    }
}

/// Encodes bytes as base64url without padding ([RFC 7515]).
///
/// [RFC 7515]: https://www.rfc-editor.org/rfc/rfc7515
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding ([RFC 7515]). `None` if it has padding, invalid characters or trailing bits.
///
/// [RFC 7515]: https://www.rfc-editor.org/rfc/rfc7515
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
