//! Public keys of passkeys: ES256, EdDSA and RS256.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};

/// SubjectPublicKeyInfo of a P-256 key, before its uncompressed point.
pub(super) const P256_SPKI_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// SubjectPublicKeyInfo of an Ed25519 key, before the key.
pub(super) const ED25519_SPKI_PREFIX: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// SubjectPublicKeyInfo of an RSA key of 2048 bits with the exponent 65537, before its RSAPublicKey. Windows Hello has
/// such keys.
const RSA_2048_SPKI_PREFIX: &[u8] = &[
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
    0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00,
];
/// Length of the RSAPublicKey after it.
const RSA_2048_KEY_BYTES: usize = 270;

/// Public key of a passkey: ES256, EdDSA, or RS256 with 2048 bits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PasskeyPublicKey {
    spki: Vec<u8>,
    algorithm: KeyAlgorithm,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum KeyAlgorithm {
    P256,
    Ed25519,
    Rsa2048,
}

impl KeyAlgorithm {
    fn prefix(self) -> &'static [u8] {
        match self {
            KeyAlgorithm::P256 => P256_SPKI_PREFIX,
            KeyAlgorithm::Ed25519 => ED25519_SPKI_PREFIX,
            KeyAlgorithm::Rsa2048 => RSA_2048_SPKI_PREFIX,
        }
    }

    fn fits(self, key: &[u8]) -> bool {
        match self {
            KeyAlgorithm::P256 => key.len() == 65 && key[0] == 4,
            KeyAlgorithm::Ed25519 => key.len() == 32,
            KeyAlgorithm::Rsa2048 => key.len() == RSA_2048_KEY_BYTES,
        }
    }
}

impl PasskeyPublicKey {
    /// Reads a public key from its SubjectPublicKeyInfo (DER), as `getPublicKey()` of a browser returns it. `None` for
    /// another algorithm or form.
    #[must_use]
    pub fn from_spki(spki: &[u8]) -> Option<PasskeyPublicKey> {
        let all = [
            KeyAlgorithm::P256,
            KeyAlgorithm::Ed25519,
            KeyAlgorithm::Rsa2048,
        ];
        let algorithm = all.into_iter().find(|algorithm| {
            let key = spki.strip_prefix(algorithm.prefix());
            key.is_some_and(|key| algorithm.fits(key))
        })?;
        Some(PasskeyPublicKey {
            spki: spki.to_vec(),
            algorithm,
        })
    }

    /// Returns the SubjectPublicKeyInfo (DER).
    #[must_use]
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// Returns whether the signature of these bytes is that of the key.
    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let key = &self.spki[self.algorithm.prefix().len()..];
        let verified = match self.algorithm {
            KeyAlgorithm::P256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key).verify(signed, signature)
            }
            KeyAlgorithm::Ed25519 => {
                UnparsedPublicKey::new(&ED25519, key).verify(signed, signature)
            }
            KeyAlgorithm::Rsa2048 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::{
        rand::SystemRandom,
        signature::{Ed25519KeyPair, KeyPair},
    };

    #[test]
    fn reads_keys_of_the_known_algorithms_only() {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let spki = [ED25519_SPKI_PREFIX, pair.public_key().as_ref()].concat();
        let key = PasskeyPublicKey::from_spki(&spki).unwrap();
        assert!(key.verifies(b"x", pair.sign(b"x").as_ref()) && key.spki() == spki);
        assert!(!key.verifies(b"y", pair.sign(b"x").as_ref()));
        assert!(PasskeyPublicKey::from_spki(&spki[..43]).is_none());
        assert!(PasskeyPublicKey::from_spki(&[spki.as_slice(), &[0]].concat()).is_none());
        assert!(PasskeyPublicKey::from_spki(&[0x30; 294]).is_none());
        assert!(PasskeyPublicKey::from_spki(&[]).is_none());
        // A compressed point has another first byte.
        let point = [P256_SPKI_PREFIX, &[3; 65]].concat();
        assert!(PasskeyPublicKey::from_spki(&point).is_none());
        let rsa = [RSA_2048_SPKI_PREFIX, &[0x30; RSA_2048_KEY_BYTES]].concat();
        let rsa = PasskeyPublicKey::from_spki(&rsa).unwrap();
        assert!(!rsa.verifies(b"x", pair.sign(b"x").as_ref()));
    }
}
