//! A change of the list of passkeys: enrollment or removal, as the text that passkeys sign.

use super::{PasskeyPublicKey, canonical};
use serde_json::{Value, json};
use toolgate_protocol::hex;

/// Format of the text of a change.
const CHANGE_FORMAT: &str = "toolgate-passkeys-v1";
/// Format of the text of a request for enrollment.
const REQUEST_FORMAT: &str = "toolgate-passkey-request-v1";
/// Maximum length of an id of a credential in bytes, as WebAuthn sets it.
const MAX_CREDENTIAL_BYTES: usize = 1023;
/// Maximum length of a name or a label in characters.
const MAX_NAME_CHARS: usize = 200;

/// A passkey that may sign approvals of its person.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EnrolledPasskey {
    /// Id of the credential.
    pub credential: Vec<u8>,
    /// Name of the person, as that of an approver.
    pub person: String,
    /// Label for lists, such as the name of the device.
    pub label: String,
    /// Public key of the passkey.
    pub key: PasskeyPublicKey,
    /// Id of the relying party for which it was made.
    pub relying_party: String,
    /// True if it may sign the enrollment and removal of other people's passkeys.
    pub is_admin: bool,
    /// Time of its enrollment in milliseconds since 1970.
    pub enrolled_at: u64,
}

/// Request to enroll a passkey, as a text that the new passkey signs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PasskeyRequest {
    text: String,
    passkey: EnrolledPasskey,
}

impl PasskeyRequest {
    /// Creates a request for a passkey of a person.
    ///
    /// # Errors
    /// A part is too long, or a name is empty or has control characters.
    pub fn new(
        (credential, key): (&[u8], &PasskeyPublicKey),
        person: &str,
        label: &str,
        relying_party: &str,
        is_admin: bool,
    ) -> Result<PasskeyRequest, &'static str> {
        let text = canonical(&json!({
            "format": REQUEST_FORMAT, "credential": hex::encode(credential), "key": hex::encode(key.spki()),
            "person": person, "label": label, "relying_party": relying_party, "admin": is_admin,
        }));
        PasskeyRequest::read(&text).ok_or(
            "the name or the label of the passkey is empty, too long or has control characters; choose another one",
        )
    }

    /// Reads a request. `None` if it is malformed.
    #[must_use]
    pub fn read(text: &str) -> Option<PasskeyRequest> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value["format"] != REQUEST_FORMAT || canonical(&value) != text {
            return None;
        }
        let word = |key: &str| value[key].as_str().map(str::to_owned);
        let is_name = |name: &String| {
            let length = name.chars().count();
            (1..=MAX_NAME_CHARS).contains(&length) && !name.chars().any(char::is_control)
        };
        let credential = hex::decode(value["credential"].as_str()?)?;
        let passkey = EnrolledPasskey {
            credential: Some(credential)
                .filter(|id| (1..=MAX_CREDENTIAL_BYTES).contains(&id.len()))?,
            person: word("person").filter(is_name)?,
            label: word("label").filter(is_name)?,
            key: PasskeyPublicKey::from_spki(&hex::decode(value["key"].as_str()?)?)?,
            relying_party: word("relying_party").filter(is_name)?,
            is_admin: value["admin"].as_bool()?,
            enrolled_at: 0,
        };
        Some(PasskeyRequest {
            text: text.to_owned(),
            passkey,
        })
    }

    /// Returns the text, whose digest the new passkey signs.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the passkey to enroll. Its time is not set yet.
    #[must_use]
    pub fn passkey(&self) -> &EnrolledPasskey {
        &self.passkey
    }
}

/// Change of the list of passkeys.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PasskeyChange {
    /// Enrollment of the passkey of a request.
    Enroll(Box<PasskeyRequest>),
    /// Removal of the passkey with this credential.
    Remove(Vec<u8>),
}

impl PasskeyChange {
    /// Returns the text of the change after the one with the digest `previous`, at a time in milliseconds since 1970.
    pub(super) fn text(&self, previous: &str, at: u64) -> String {
        let mut value =
            json!({"format": CHANGE_FORMAT, "previous": previous, "at": at.to_string()});
        let (kind, key, text) = match self {
            PasskeyChange::Enroll(request) => ("enroll", "request", request.text().to_owned()),
            PasskeyChange::Remove(credential) => ("remove", "credential", hex::encode(credential)),
        };
        value["type"] = kind.into();
        value[key] = text.into();
        canonical(&value)
    }

    /// Reads the text of a change with the digest of the change before it and its time. `None` if it is malformed.
    pub(super) fn read(text: &str) -> Option<(PasskeyChange, String, u64)> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value["format"] != CHANGE_FORMAT || canonical(&value) != text {
            return None;
        }
        let change = match value["type"].as_str()? {
            "enroll" => {
                let request = PasskeyRequest::read(value["request"].as_str()?)?;
                PasskeyChange::Enroll(Box::new(request))
            }
            "remove" => PasskeyChange::Remove(hex::decode(value["credential"].as_str()?)?),
            _ => return None,
        };
        let previous = value["previous"].as_str()?.to_owned();
        Some((change, previous, value["at"].as_str()?.parse().ok()?))
    }
}
