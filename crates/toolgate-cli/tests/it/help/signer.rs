//! A key that signs tokens and proofs (ES256).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

/// A key of its own.
pub(crate) struct Signer {
    key: EcdsaKeyPair,
    rng: SystemRandom,
}

impl Signer {
    pub(crate) fn new() -> Signer {
        let (rng, alg) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(alg, &rng).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(alg, pkcs8.as_ref(), &rng).unwrap();
        Signer { key, rng }
    }

    /// Returns the public key for signature verification.
    pub(crate) fn jwk(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])})
    }

    /// These claims under this head, signed.
    pub(crate) fn sign(&self, head: &Value, claims: &Value) -> String {
        let part = |value: &Value| encode(value.to_string().as_bytes());
        let text = format!("{}.{}", part(head), part(claims));
        let signature = self.key.sign(&self.rng, text.as_bytes()).unwrap();
        format!("{text}.{}", encode(signature.as_ref()))
    }
}

/// Base64 as tokens have it.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
