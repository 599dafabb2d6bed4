//! Verification of WebAuthn assertions.
//!
//! Standard: [Web Authentication Level 3](https://www.w3.org/TR/webauthn-3/#sctn-verifying-assertion), section 7.2.

use super::PasskeyPublicKey;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::fmt;
use toolgate_protocol::{
    hex,
    json::{Json, JsonKind, JsonLimits},
};

/// Maximum length of each part of an assertion in bytes.
const MAX_PART_BYTES: usize = 4096;
/// Length of authenticator data without extensions.
const MIN_AUTHENTICATOR_DATA_BYTES: usize = 37;
/// Flag: the user was present.
const USER_PRESENT: u8 = 0x01;
/// Flag: the authenticator verified the user, by PIN or biometrics.
const USER_VERIFIED: u8 = 0x04;

/// Relying party of passkeys: its id, a host name, and the origins of its pages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RelyingParty {
    /// Id of the relying party: the host name of its pages.
    pub id: String,
    /// Origins of its pages, such as `https://tools.example.com`. Empty for any secure origin of its host.
    pub origins: Vec<String>,
}

impl RelyingParty {
    /// Creates a relying party whose pages have this origin.
    #[must_use]
    pub fn new(id: &str, origin: &str) -> RelyingParty {
        RelyingParty {
            id: id.to_owned(),
            origins: vec![origin.to_owned()],
        }
    }

    /// Creates a relying party with any secure origin of its host.
    pub(super) fn any_origin(id: &str) -> RelyingParty {
        RelyingParty {
            id: id.to_owned(),
            origins: Vec::new(),
        }
    }

    fn has_origin(&self, origin: &str) -> bool {
        if !self.origins.is_empty() {
            return self.origins.iter().any(|own| own == origin);
        }
        let (scheme, authority) = origin.split_once("://").unwrap_or_default();
        let host = authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host);
        host == self.id && (scheme == "https" || (scheme == "http" && host == "localhost"))
    }
}

/// Signature of a passkey over a challenge (WebAuthn assertion), as a browser returns it.
#[derive(Clone, Eq, PartialEq)]
pub struct PasskeyAssertion {
    /// Id of the credential.
    pub credential: Vec<u8>,
    /// Authenticator data: relying party, flags and counter.
    pub authenticator_data: Vec<u8>,
    /// Client data in JSON: challenge and origin.
    pub client_data: Vec<u8>,
    /// Signature over both.
    pub signature: Vec<u8>,
}

impl PasskeyAssertion {
    /// Reads an assertion from JSON, whose members are hexadecimal. `None` if a part is missing, malformed or too long.
    #[must_use]
    pub fn read(value: &Value) -> Option<PasskeyAssertion> {
        let bytes = |key: &str| {
            let text = value.get(key)?.as_str()?;
            (text.len() <= 2 * MAX_PART_BYTES).then(|| hex::decode(text))?
        };
        Some(PasskeyAssertion {
            credential: bytes("credential")?,
            authenticator_data: bytes("authenticator_data")?,
            client_data: bytes("client_data")?,
            signature: bytes("signature")?,
        })
    }

    /// Writes the assertion as JSON, whose members are hexadecimal.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "credential": hex::encode(&self.credential), "authenticator_data": hex::encode(&self.authenticator_data),
            "client_data": hex::encode(&self.client_data), "signature": hex::encode(&self.signature),
        })
    }

    /// Verifies that the passkey with this public key signed the challenge on a page of the relying party, and that it
    /// verified its user.
    ///
    /// # Errors
    /// The reason for which the assertion is not valid.
    pub(super) fn verify(
        &self,
        key: &PasskeyPublicKey,
        party: &RelyingParty,
        challenge: &[u8; 32],
    ) -> Result<(), &'static str> {
        self.check_client_data(party, challenge)?;
        let data = &self.authenticator_data;
        if data.len() < MIN_AUTHENTICATOR_DATA_BYTES {
            return Err("the authenticator data is too short");
        }
        if data[..32] != *digest(&SHA256, party.id.as_bytes()).as_ref() {
            return Err("the passkey signed for another site");
        }
        let flags = data[32];
        if flags & USER_PRESENT == 0 || flags & USER_VERIFIED == 0 {
            return Err("the passkey did not verify its user, by a PIN or biometrics");
        }
        let hash = digest(&SHA256, &self.client_data);
        let signed = [data.as_slice(), hash.as_ref()].concat();
        match key.verifies(&signed, &self.signature) {
            true => Ok(()),
            false => Err("the signature of the passkey is not valid"),
        }
    }

    fn check_client_data(
        &self,
        party: &RelyingParty,
        challenge: &[u8; 32],
    ) -> Result<(), &'static str> {
        // The strict reader: two values of one member could be read differently by two readers.
        let read = Json::read(self.client_data.clone(), &JsonLimits::default());
        let data = read.map_err(|_| "the client data is not valid JSON")?;
        let text = |key: &str| data.get(key).and_then(|value| value.string());
        if data.kind() != JsonKind::Object || text("type").as_deref() != Some("webauthn.get") {
            return Err("the client data is not that of an assertion");
        }
        if text("challenge") != Some(URL_SAFE_NO_PAD.encode(challenge)) {
            return Err("the passkey signed something else");
        }
        let origin = text("origin").unwrap_or_default();
        if !party.has_origin(&origin) {
            return Err("the passkey signed on a page of another origin");
        }
        let crossed = data.get("crossOrigin");
        let crossed = crossed.is_some_and(|crossed| crossed.bool() != Some(false));
        if crossed || data.get("topOrigin").is_some() {
            return Err("the passkey signed in a frame of another page");
        }
        Ok(())
    }
}

impl fmt::Debug for PasskeyAssertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasskeyAssertion")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::public_key::P256_SPKI_PREFIX;
    use super::*;
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
    };

    /// Authenticator of a test: signs what it is given.
    pub(crate) struct TestAuthenticator {
        pub(crate) credential: Vec<u8>,
        key: EcdsaKeyPair,
    }

    impl TestAuthenticator {
        pub(crate) fn new(name: &str) -> TestAuthenticator {
            let random = SystemRandom::new();
            let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
            TestAuthenticator {
                credential: name.as_bytes().to_vec(),
                key: EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap(),
            }
        }

        pub(crate) fn public_key(&self) -> PasskeyPublicKey {
            let spki = [P256_SPKI_PREFIX, self.key.public_key().as_ref()].concat();
            PasskeyPublicKey::from_spki(&spki).unwrap()
        }

        pub(crate) fn sign(&self, challenge: &[u8; 32]) -> PasskeyAssertion {
            let data = json!({"type": "webauthn.get", "challenge": URL_SAFE_NO_PAD.encode(challenge), "origin": "https://t.test", "crossOrigin": false});
            self.sign_data("t.test", 0x05, &data.to_string())
        }

        pub(crate) fn sign_data(&self, party: &str, flags: u8, data: &str) -> PasskeyAssertion {
            let mut authenticator_data = digest(&SHA256, party.as_bytes()).as_ref().to_vec();
            authenticator_data.extend([flags, 0, 0, 0, 1]);
            let hash = digest(&SHA256, data.as_bytes());
            let signed = [authenticator_data.as_slice(), hash.as_ref()].concat();
            let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
            PasskeyAssertion {
                credential: self.credential.clone(),
                authenticator_data,
                client_data: data.as_bytes().to_vec(),
                signature: signature.as_ref().to_vec(),
            }
        }
    }

    pub(crate) fn party() -> RelyingParty {
        RelyingParty::new("t.test", "https://t.test")
    }

    #[test]
    fn accepts_an_assertion_and_no_altered_one() {
        let (key, challenge) = (TestAuthenticator::new("a"), [7; 32]);
        let (public, other) = (key.public_key(), TestAuthenticator::new("b").public_key());
        let good = key.sign(&challenge);
        assert_eq!(good.verify(&public, &party(), &challenge), Ok(()));
        assert_eq!(PasskeyAssertion::read(&good.json()), Some(good.clone()));
        assert!(good.verify(&other, &party(), &challenge).is_err());
        assert!(good.verify(&public, &party(), &[8; 32]).is_err());
        let elsewhere = RelyingParty {
            id: "other.test".to_owned(),
            ..party()
        };
        assert!(good.verify(&public, &elsewhere, &challenge).is_err());
        type Change = fn(&mut PasskeyAssertion);
        let changes: [Change; 6] = [
            |a| a.signature[9] ^= 1,
            |a| a.authenticator_data[33] ^= 1,
            |a| a.authenticator_data.truncate(36),
            |a| a.authenticator_data.push(0),
            |a| a.client_data.push(b' '),
            |a| a.signature.clear(),
        ];
        for change in changes {
            let mut altered = good.clone();
            change(&mut altered);
            assert!(altered.verify(&public, &party(), &challenge).is_err());
        }
    }

    #[test]
    fn rejects_what_a_page_of_another_site_or_an_unverified_user_signed() {
        let (key, challenge) = (TestAuthenticator::new("a"), [7; 32]);
        let public = key.public_key();
        let text = URL_SAFE_NO_PAD.encode(challenge);
        let data = |kind: &str, origin: &str, more: &str| {
            format!(
                "{{\"type\":\"{kind}\",\"challenge\":\"{text}\",\"origin\":\"{origin}\"{more}}}"
            )
        };
        let verify = |party_id: &str, flags: u8, data: &str| {
            let signed = key.sign_data(party_id, flags, data);
            signed.verify(&public, &party(), &challenge).is_ok()
        };
        let (get, own) = ("webauthn.get", "https://t.test");
        let good = data(get, own, "");
        assert!(verify("t.test", 0x05, &good) && verify("t.test", 0x1d, &good));
        for (party_id, flags, data) in [
            ("t.test", 0x04, good.clone()),
            ("t.test", 0x01, good.clone()),
            ("t.test", 0x00, good.clone()),
            ("evil.test", 0x05, good.clone()),
            ("t.test", 0x05, data("webauthn.create", own, "")),
            ("t.test", 0x05, data("payment.get", own, "")),
            ("t.test", 0x05, data(get, "https://evil.test", "")),
            ("t.test", 0x05, data(get, "https://a.t.test", "")),
            ("t.test", 0x05, data(get, "http://t.test", "")),
            ("t.test", 0x05, data(get, "https://t.test:444", "")),
            ("t.test", 0x05, data(get, own, ",\"crossOrigin\":true")),
            ("t.test", 0x05, data(get, own, ",\"crossOrigin\":\"no\"")),
            (
                "t.test",
                0x05,
                data(get, own, ",\"topOrigin\":\"https://evil.test\""),
            ),
            (
                "t.test",
                0x05,
                data(get, "https://evil.test", ",\"origin\":\"https://t.test\""),
            ),
            ("t.test", 0x05, "[]".to_owned()),
            ("t.test", 0x05, String::new()),
        ] {
            assert!(!verify(party_id, flags, &data), "{party_id} {flags} {data}");
        }
    }

    #[test]
    fn an_old_signature_may_come_from_another_port_of_its_host_only() {
        let any = RelyingParty::any_origin("localhost");
        assert!(any.has_origin("http://localhost:9") && any.has_origin("https://localhost"));
        assert!(!any.has_origin("http://127.0.0.1:9") && !any.has_origin("localhost"));
        let any = RelyingParty::any_origin("t.test");
        assert!(any.has_origin("https://t.test") && !any.has_origin("http://t.test"));
        assert!(!any.has_origin("https://evil-t.test") && !any.has_origin("https://a.t.test"));
    }
}
