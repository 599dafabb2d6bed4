//! Second reader of the list of passkeys and of WebAuthn signatures, with no code of the gateway.

use crate::checkpoints::unhex;
use crate::hex;
use crate::json::{self, RecordValue};
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use std::path::Path;

/// Algorithms by the first bytes of a SubjectPublicKeyInfo: the bytes before the key, and the length of the key.
const ALGORITHMS: [(&str, usize, &dyn VerificationAlgorithm); 3] = [
    (
        "3059301306072a8648ce3d020106082a8648ce3d030107034200",
        65,
        &ECDSA_P256_SHA256_ASN1,
    ),
    ("302a300506032b6570032100", 32, &ED25519),
    (
        "30820122300d06092a864886f70d01010105000382010f00",
        270,
        &RSA_PKCS1_2048_8192_SHA256,
    ),
];
/// Flags of an authenticator: the user was present, and it verified the user.
const PRESENT_AND_VERIFIED: u8 = 0x05;

/// An enrolled passkey.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Passkey {
    credential: String,
    pub(crate) person: String,
    key: Vec<u8>,
    host: String,
    is_admin: bool,
}

/// List of passkeys: its changes with their digests, and the passkeys after each.
#[derive(Clone, Debug, Default)]
pub(crate) struct PasskeyChain {
    digests: Vec<String>,
    /// Passkeys after the change with the same index.
    states: Vec<Vec<Passkey>>,
}

impl PasskeyChain {
    /// Reads the list of a file, which must contain the change with the digest `anchor`.
    pub(crate) fn read(path: &Path, anchor: &str) -> Result<PasskeyChain, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("the list of passkeys cannot be read: {e}"))?;
        let mut chain = PasskeyChain::default();
        for (at, line) in text.lines().enumerate() {
            chain
                .append(line)
                .ok_or_else(|| format!("change {} of the list of passkeys is not valid", at + 1))?;
        }
        match chain.digests.iter().any(|digest| digest == anchor) {
            true => Ok(chain),
            false => Err("the list of passkeys lacks the change of --passkey-anchor".to_owned()),
        }
    }

    fn append(&mut self, line: &str) -> Option<()> {
        let entry = json::read_any(line.as_bytes())?;
        let text = entry.str("text")?;
        let change = json::read(text.as_bytes())?;
        let before = self.digests.last().map_or("", String::as_str);
        if change.str("format")? != "toolgate-passkeys-v1" || change.str("previous")? != before {
            return None;
        }
        let mut now = self.states.last().cloned().unwrap_or_default();
        let about = match change.str("type")? {
            "enroll" => {
                let request = change.str("request")?;
                let new = passkey(request)?;
                let proof = entry.get("proof")?;
                let is_new = now.iter().all(|one| one.credential != new.credential);
                if !is_new || proof.str("credential")? != new.credential {
                    return None;
                }
                verify(proof, request, &new)?;
                now.push(new.clone());
                new
            }
            "remove" => {
                let credential = change.str("credential")?;
                let at = now.iter().position(|one| one.credential == credential)?;
                now.remove(at)
            }
            _ => return None,
        };
        match self.states.last() {
            None if !about.is_admin => return None,
            None => {}
            Some(enrolled) => {
                let by = entry.get("by")?;
                let signer = find(enrolled, by.str("credential")?)?;
                verify(by, text, signer)?;
                if !signer.is_admin && (about.is_admin || about.person != signer.person) {
                    return None;
                }
            }
        }
        if !now.iter().any(|one| one.is_admin) {
            return None;
        }
        self.digests.push(sha256(text.as_bytes()));
        self.states.push(now);
        Some(())
    }

    /// Returns the position of a change with this digest.
    pub(crate) fn position(&self, digest: &str) -> Option<usize> {
        self.digests.iter().position(|one| one == digest)
    }

    /// Verifies a signature of a text by a passkey that was enrolled after the change at this position.
    pub(crate) fn verify(
        &self,
        at: usize,
        signature: &RecordValue,
        text: &str,
    ) -> Option<&Passkey> {
        let passkey = find(self.states.get(at)?, signature.str("credential")?)?;
        verify(signature, text, passkey)?;
        Some(passkey)
    }
}

fn find<'a>(passkeys: &'a [Passkey], credential: &str) -> Option<&'a Passkey> {
    passkeys.iter().find(|one| one.credential == credential)
}

/// Reads the passkey of a request for enrollment.
fn passkey(request: &str) -> Option<Passkey> {
    let request = json::read(request.as_bytes())?;
    if request.str("format")? != "toolgate-passkey-request-v1" {
        return None;
    }
    let RecordValue::Bool(is_admin) = request.get("admin")? else {
        return None;
    };
    Some(Passkey {
        credential: request.str("credential")?.to_owned(),
        person: request.str("person")?.to_owned(),
        key: unhex(request.str("key")?)?,
        host: request.str("relying_party")?.to_owned(),
        is_admin: *is_admin,
    })
}

/// Verifies the signature of a passkey over the digest of a text (WebAuthn assertion).
fn verify(signature: &RecordValue, text: &str, passkey: &Passkey) -> Option<()> {
    let part = |name: &str| unhex(signature.str(name)?);
    let (data, client) = (part("authenticator_data")?, part("client_data")?);
    let host = digest(&SHA256, passkey.host.as_bytes());
    let is_verified = data.len() >= 37 && data[32] & PRESENT_AND_VERIFIED == PRESENT_AND_VERIFIED;
    if !is_verified || data[..32] != *host.as_ref() {
        return None;
    }
    check_client_data(std::str::from_utf8(&client).ok()?, text, &passkey.host)?;
    let signed = [&data[..], digest(&SHA256, &client).as_ref()].concat();
    let (algorithm, key) = ALGORITHMS
        .into_iter()
        .find_map(|(prefix, length, algorithm)| {
            let key = passkey.key.strip_prefix(&*unhex(prefix)?)?;
            (key.len() == length).then_some((algorithm, key))
        })?;
    let verified = UnparsedPublicKey::new(algorithm, key).verify(&signed, &part("signature")?);
    verified.ok()
}

/// Checks client data in the form that WebAuthn prescribes for its serialization, section 5.8.1.1.
fn check_client_data(client: &str, text: &str, host: &str) -> Option<()> {
    let challenge = base64url(digest(&SHA256, text.as_bytes()).as_ref());
    let start = format!("{{\"type\":\"webauthn.get\",\"challenge\":\"{challenge}\",\"origin\":\"");
    let (origin, rest) = client.strip_prefix(&start)?.split_once('"')?;
    let (scheme, authority) = origin.split_once("://")?;
    let own = authority
        .split_once(':')
        .map_or(authority, |(name, _)| name);
    let is_secure = scheme == "https" || (scheme == "http" && host == "localhost");
    let rest = rest.strip_prefix(",\"crossOrigin\":false").unwrap_or(rest);
    // What may follow is from later versions of the standard. It must not say again what was checked.
    let checked = [
        "\"type\"",
        "\"challenge\"",
        "\"origin\"",
        "rossOrigin",
        "opOrigin",
    ];
    let repeats = checked.iter().any(|name| rest.contains(name)) || rest.contains('\\');
    let ends = rest == "}" || (rest.starts_with(',') && rest.ends_with('}'));
    (own == host && is_secure && ends && !repeats && !origin.contains('\\')).then_some(())
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..=chunk.len() {
            let letter = bits >> (18 - 6 * place) & 63;
            out.push(char::from(LETTERS[letter as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_base64url_without_padding() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
        ] {
            assert_eq!(base64url(bytes), expected);
        }
    }

    #[test]
    fn client_data_has_the_form_of_the_standard_and_no_other() {
        let challenge = base64url(digest(&SHA256, b"text").as_ref());
        let client = |origin: &str, rest: &str| {
            format!(
                "{{\"type\":\"webauthn.get\",\"challenge\":\"{challenge}\",\"origin\":\"{origin}\"{rest}"
            )
        };
        let check = |client: &str| check_client_data(client, "text", "localhost").is_some();
        let own = "http://localhost:8665";
        for rest in [
            "}",
            ",\"crossOrigin\":false}",
            ",\"crossOrigin\":false,\"other_keys_can_be_added_here\":\"x\"}",
        ] {
            assert!(check(&client(own, rest)), "{rest}");
            assert!(!check(&client("http://127.0.0.1:8665", rest)));
            assert!(!check(&client("http://evil.test", rest)));
            assert!(check_client_data(&client(own, rest), "other", "localhost").is_none());
        }
        for rest in [
            ",\"crossOrigin\":true}",
            ",\"crossOrigin\":false,\"crossOrigin\":true}",
            ",\"topOrigin\":\"https://evil.test\"}",
            ",\"origin\":\"https://evil.test\"}",
            ",\"\\u006frigin\":\"https://evil.test\"}",
            "",
            "}}x",
        ] {
            assert!(!check(&client(own, rest)), "{rest}");
        }
        let wrong = client(own, "}").replace("webauthn.get", "webauthn.create");
        assert!(!check(&wrong));
    }
}
