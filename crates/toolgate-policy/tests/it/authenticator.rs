//! Authenticator in software: makes passkeys, and signs with them whatever a test says.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

/// SubjectPublicKeyInfo of a P-256 key, before its point.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Flags: the user was present, and was verified.
pub(crate) const VERIFIED: u8 = 0x05;

/// A passkey.
pub(crate) struct SoftPasskey {
    pub(crate) credential: Vec<u8>,
    key: EcdsaKeyPair,
}

/// Parts that a passkey signs, each as an attacker may choose it.
#[derive(Clone)]
pub(crate) struct Signing {
    pub(crate) rp: String,
    pub(crate) flags: u8,
    pub(crate) client_data: String,
}

impl Signing {
    /// Parts that a browser makes for a challenge at this origin.
    pub(crate) fn new(rp: &str, origin: &str, challenge: &[u8]) -> Signing {
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        Signing {
            rp: rp.to_owned(),
            flags: VERIFIED,
            client_data: format!(
                "{{\"type\":\"webauthn.get\",\"challenge\":\"{challenge}\",\"origin\":\"{origin}\",\"crossOrigin\":false}}"
            ),
        }
    }
}

impl SoftPasskey {
    pub(crate) fn new(name: &str) -> SoftPasskey {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        SoftPasskey {
            credential: name.as_bytes().to_vec(),
            key: EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap(),
        }
    }

    /// Returns the public key as a browser does.
    pub(crate) fn spki(&self) -> Vec<u8> {
        [&P256_PREFIX, self.key.public_key().as_ref()].concat()
    }

    /// Signs, and returns the assertion as a page sends it.
    pub(crate) fn sign(&self, what: &Signing) -> Value {
        let mut data = digest(&SHA256, what.rp.as_bytes()).as_ref().to_vec();
        data.extend([what.flags, 0, 0, 0, 1]);
        self.sign_parts(&data, what.client_data.as_bytes())
    }

    pub(crate) fn sign_parts(&self, data: &[u8], client_data: &[u8]) -> Value {
        let hash = digest(&SHA256, client_data);
        let signed = [data, hash.as_ref()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        json!({
            "credential": hex(&self.credential), "authenticator_data": hex(data),
            "client_data": hex(client_data), "signature": hex(signature.as_ref()),
        })
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}
