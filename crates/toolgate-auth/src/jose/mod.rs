//! JSON Web Signatures in the compact serialization (RFC 7515), implemented on `ring`.
//!
//! A JOSE crate brings its own key types and its own cryptography, or a second stack. This crate needs only three
//! signature algorithms and no encryption.

mod sign;

pub use sign::{BadKey, SigningKey};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Signature algorithm. `none` and shared secrets (HMAC) do not exist here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256 (`ES256`).
    Es256,
    /// RSA PKCS #1 v1.5 with SHA-256 (`RS256`).
    Rs256,
    /// Ed25519 (`EdDSA`).
    EdDsa,
}

impl Algorithm {
    /// Returns the `alg` name of headers and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// Returns the algorithm of an `alg` name, which is case-sensitive.
    pub fn named(name: &str) -> Option<Algorithm> {
        [Algorithm::Es256, Algorithm::Rs256, Algorithm::EdDsa]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// Encodes bytes as base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url. `None` if it has padding, invalid characters or trailing bits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
