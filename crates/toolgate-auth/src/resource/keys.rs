//! JWK set of an issuer, and signature verification with it.

use super::verify::{PublicKey, Signed};
use toolgate_wire::json::{Json, Kind};

/// Maximum number of keys that are read from a JWK set.
const MOST: usize = 64;

/// Public key of a JWK set.
struct Key {
    id: Option<String>,
    alg: Option<String>,
    public: PublicKey,
}

impl Key {
    fn read(jwk: &Json) -> Option<Key> {
        let text = |key: &str| jwk.get(key).and_then(|value| value.string());
        // A key for another use verifies nothing.
        if text("use").is_some_and(|used| used != "sig") {
            return None;
        }
        Some(Key {
            id: text("kid"),
            alg: text("alg"),
            public: PublicKey::read(jwk)?,
        })
    }

    fn fits(&self, (id, alg): Named<'_>) -> bool {
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
pub(super) type Named<'a> = (Option<&'a str>, &'a str);

/// Signature of a token, its input, and the key that the token names.
pub(super) struct SignedText<'a> {
    pub(super) named: Named<'a>,
    pub(super) by: Signed,
    pub(super) text: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// Result of a signature verification with a JWK set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// A key of the set verifies the signature.
    Good,
    /// The named key does not verify the signature.
    Wrong,
    /// The key may be missing from the set.
    Unknown,
}

/// JWK set of an issuer (JWKS).
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// Parses a JWK set; `None` if the document is not one.
    pub(super) fn read(document: &Json) -> Option<KeySet> {
        let set = document.get("keys")?;
        if set.kind() != Kind::Array {
            return None;
        }
        let keys = set.items().take(MOST);
        Some(KeySet(keys.filter_map(|jwk| Key::read(&jwk)).collect()))
    }

    /// Returns whether a key of the set has the named id, or could be meant if no id is named.
    pub(super) fn has(&self, named: Named<'_>) -> bool {
        self.0.iter().any(|key| key.fits(named))
    }

    pub(super) fn judge(&self, signed: &SignedText<'_>) -> Verdict {
        let mut fitting = self.0.iter().filter(|key| key.fits(signed.named));
        let (by, text, signature) = (signed.by, signed.text, signed.signature);
        match fitting.any(|key| key.public.verifies(by, text, signature)) {
            true => Verdict::Good,
            false if signed.named.0.is_some() && self.has(signed.named) => Verdict::Wrong,
            false => Verdict::Unknown,
        }
    }
}
