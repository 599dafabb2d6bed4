//! The public keys of an issuer, and which of them a token is signed by.

use super::verify::{PublicKey, Signed};
use toolgate_wire::json::{Json, Kind};

/// Keys of a set that are read.
const MOST: usize = 64;

/// One key of a set.
struct Key {
    id: Option<String>,
    alg: Option<String>,
    public: PublicKey,
}

impl Key {
    fn read(jwk: &Json) -> Option<Key> {
        let text = |key: &str| jwk.get(key).and_then(|value| value.string());
        // A key for something else verifies nothing.
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
            // A token that names no key may be of any of them; one that names a key is not of a nameless one.
            (None, _) => true,
            (Some(_), None) => false,
        };
        named && self.alg.as_deref().is_none_or(|own| own == alg)
    }
}

/// The key that a token names, if it does, and its algorithm.
pub(super) type Named<'a> = (Option<&'a str>, &'a str);

/// What a token says of its signature, and the signature.
pub(super) struct SignedText<'a> {
    pub(super) named: Named<'a>,
    pub(super) by: Signed,
    pub(super) text: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// What a set of keys says of a signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is of one of them.
    Good,
    /// It is not of the key that is named.
    Wrong,
    /// It may be of a key that is not in the set.
    Unknown,
}

/// The keys of an issuer.
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// Reads a set; `None` for what is none.
    pub(super) fn read(document: &Json) -> Option<KeySet> {
        let set = document.get("keys")?;
        if set.kind() != Kind::Array {
            return None;
        }
        let keys = set.items().take(MOST);
        Some(KeySet(keys.filter_map(|jwk| Key::read(&jwk)).collect()))
    }

    /// Whether one of them has that name, or may be meant without one.
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
