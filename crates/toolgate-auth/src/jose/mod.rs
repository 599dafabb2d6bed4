//! Signed texts in the compact form (RFC 7515), by hand on ring: header, payload and signature in Base64, with dots.
//!
//! A crate for this brings its own key types and its own crypto, or a second stack; what is used here is three
//! algorithms and no encryption.

mod sign;

pub use sign::{BadKey, SigningKey};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// How a text is signed. Others do not exist here: `none` cannot be said, and a shared secret neither.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Its name in headers and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// The one of that name; names are case-sensitive.
    pub fn named(name: &str) -> Option<Algorithm> {
        [Algorithm::Es256, Algorithm::Rs256, Algorithm::EdDsa]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// Bytes in Base64 for URLs, without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a Base64 for URLs, where it has no padding and no bits left over.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
