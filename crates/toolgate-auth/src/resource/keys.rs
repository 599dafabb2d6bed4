//! JWK set of an issuer, and signature verification with it.

use super::verify::{PublicKey, TokenAlgorithm};
use toolgate_protocol::json::{Json, JsonKind};

/// Maximum number of keys that are read from a JWK set.
const MAX_KEYS: usize = 64;

/// Public key of a JWK set.
struct JsonWebKey {
    id: Option<String>,
    alg: Option<String>,
    public: PublicKey,
}

impl JsonWebKey {
    fn from_jwk(jwk: &Json) -> Option<JsonWebKey> {
        let text = |key: &str| jwk.get(key).and_then(|value| value.string());
        // A key for another use verifies nothing.
        if text("use").is_some_and(|used| used != "sig") {
            return None;
        }
        Some(JsonWebKey {
            id: text("kid"),
            alg: text("alg"),
            public: PublicKey::from_jwk(jwk)?,
        })
    }

    fn matches(&self, (id, alg): KeyReference<'_>) -> bool {
        let named = match (id, self.id.as_deref()) {
            (Some(wanted), Some(id)) => wanted == id,
            // A token without `kid` may be signed by any key; a key without `kid` never matches a token with one.
            (None, _) => true,
            (Some(_), None) => false,
        };
        named && self.alg.as_deref().is_none_or(|own| own == alg)
    }
}

/// Key id and algorithm that a token names. The id is optional.
pub(super) type KeyReference<'a> = (Option<&'a str>, &'a str);

/// Signature of a token, its input, and the key that the token names.
pub(super) struct SignedText<'a> {
    pub(super) key: KeyReference<'a>,
    pub(super) algorithm: TokenAlgorithm,
    pub(super) text: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// Result of a signature verification with a JWK set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SignatureCheck {
    /// A key of the set verifies the signature.
    Valid,
    /// The named key does not verify the signature.
    Invalid,
    /// The key may be missing from the set.
    UnknownKey,
}

/// JWK set of an issuer (JWKS).
pub(super) struct JwkSet(Vec<JsonWebKey>);

impl JwkSet {
    /// Parses a JWK set; `None` if the document is not one.
    pub(super) fn parse(document: &Json) -> Option<JwkSet> {
        let set = document.get("keys")?;
        if set.kind() != JsonKind::Array {
            return None;
        }
        let keys = set.items().take(MAX_KEYS);
        Some(JwkSet(
            keys.filter_map(|jwk| JsonWebKey::from_jwk(&jwk)).collect(),
        ))
    }

    /// Returns whether a key of the set has the named id, or could be meant if no id is named.
    pub(super) fn has_key(&self, named: KeyReference<'_>) -> bool {
        self.0.iter().any(|key| key.matches(named))
    }

    pub(super) fn verify(&self, signed: &SignedText<'_>) -> SignatureCheck {
        let mut fitting = self.0.iter().filter(|key| key.matches(signed.key));
        let (by, text, signature) = (signed.algorithm, signed.text, signed.signature);
        match fitting.any(|key| key.public.verifies(by, text, signature)) {
            true => SignatureCheck::Valid,
            false if signed.key.0.is_some() && self.has_key(signed.key) => SignatureCheck::Invalid,
            false => SignatureCheck::UnknownKey,
        }
    }
}
