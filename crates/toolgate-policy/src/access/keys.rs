//! API keys of callers: each key identifies one client of the gateway. Only their digests are stored.

mod api_keys;
mod lifecycle;
mod row;
#[cfg(test)]
mod tests;

pub use api_keys::ApiKeys;

use crate::unix_time::{from_unix_millis, to_unix_millis};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{Caller, CallerAttributes, Error};
use toolgate_protocol::hex;

/// Prefix of every API key of a caller: `tg_`.
pub const KEY_PREFIX: &str = "tg_";

/// Retention of revoked and expired keys: 30 days.
const ENDED_KEY_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Maximum length of the name of a group, in bytes.
const MAX_GROUP_BYTES: usize = 255;
/// Maximum number of groups of a key.
const MAX_KEY_GROUPS: usize = 64;

/// Maximum lifetime of a key: 100 years.
const MAX_KEY_LIFETIME: Duration = Duration::from_secs(36_525 * 24 * 3600);

/// Newly created or rotated API key of a caller, whose secret can be shown once.
///
/// It has no `Debug`, `Display` or `Serialize`, so that no log can contain it, and it is never stored.
pub struct NewApiKey {
    text: String,
    old_valid_until: Option<SystemTime>,
}

impl NewApiKey {
    /// Returns the secret API key itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the time until which the API key that a rotation replaced stays valid, or `None`.
    pub fn old_valid_until(&self) -> Option<SystemTime> {
        self.old_valid_until
    }

    /// Generates a key of 256 random bits.
    fn generate(old: Option<SystemTime>) -> Result<NewApiKey, ApiKeyError> {
        let mut bytes = [0; 32];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| ApiKeyError::NoRandom)?;
        let text = format!("{KEY_PREFIX}{}", hex::encode(&bytes));
        Ok(NewApiKey {
            text,
            old_valid_until: old,
        })
    }
}

/// View of a caller's API key for lists, without the secret.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApiKeyView {
    /// Name of the API key, chosen by the operator; its caller is `key:NAME`.
    pub name: String,
    /// Creation time of the API key.
    pub created_at: SystemTime,
    /// Expiry of the API key; `None` for never.
    pub expires_at: Option<SystemTime>,
    /// Time at which the API key was revoked; `None` if it was not.
    pub revoked_at: Option<SystemTime>,
    /// Groups of the API key's caller, sorted.
    pub groups: Vec<String>,
    /// Name of the person who created the API key, for display.
    pub created_by: String,
    /// Time of the last use of the API key, as far as it is stored, to within a minute.
    pub last_used: Option<SystemTime>,
    /// Time until which the API key that a rotation replaced stays valid.
    pub old_valid_until: Option<SystemTime>,
}

impl ApiKeyView {
    /// Returns the reason why the API key is no longer valid at this time, or `None` if it is valid.
    pub fn end_reason(&self, now: SystemTime) -> Option<KeyEndReason> {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => Some(KeyEndReason::Revoked),
            (None, Some(end)) if end <= now => Some(KeyEndReason::Expired),
            _ => None,
        }
    }
}

/// Reason why an API key is no longer valid: revoked, expired or replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyEndReason {
    /// The operator revoked the API key.
    Revoked,
    /// The API key expired.
    Expired,
    /// A rotation replaced the API key, and its grace period has ended.
    Replaced,
}

impl KeyEndReason {
    /// Returns the reason as a word: `revoked`, `expired` or `replaced`.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyEndReason::Revoked => "revoked",
            KeyEndReason::Expired => "expired",
            KeyEndReason::Replaced => "replaced",
        }
    }
}

/// Proof that a caller presented a valid API key. It does not contain the key.
#[derive(Clone, Debug)]
pub struct VerifiedApiKey {
    name: String,
    digest: ApiKeyDigest,
    generation: u64,
    attributes: Arc<CallerAttributes>,
}

impl VerifiedApiKey {
    /// Returns the caller that the API key identifies, `key:NAME`, with its groups.
    pub fn caller(&self) -> Caller {
        caller(&self.name)
            .with_generation(self.generation)
            .with_attributes(self.attributes.clone())
    }
}

/// Reason why a presented API key is rejected.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ApiKeyRejection {
    /// The presented API key is unknown: no stored key has its digest.
    Unknown,
    /// The presented API key, of this name, is no longer valid for this reason.
    Ended(String, KeyEndReason),
    /// No API key can be checked now: the stored keys are too old, for this reason. It is for the operator only.
    Unavailable(String),
}

/// Error of creating, rotating, extending or revoking an API key.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApiKeyError {
    /// The name for the API key is invalid.
    InvalidName,
    /// A group for the API key has an invalid name, this one.
    InvalidGroup(String),
    /// A valid API key of this name already exists.
    NameInUse,
    /// No valid API key has this name.
    Unknown,
    /// The API key was changed concurrently, for example by another process.
    ChangedConcurrently,
    /// The API key of this name expired at this time.
    Expired(String, SystemTime),
    /// The API key of this name already expires later: at this time, or never.
    ExpiresLater(String, Option<SystemTime>),
    /// The requested expiry of the API key is in the past.
    ExpiryInPast,
    /// The requested expiry of the API key is more than 100 years ahead.
    ExpiryTooFar,
    /// The maximum number of API keys, this one, exists already.
    LimitReached(usize),
    /// The system's random number generator failed, so no API key could be created.
    NoRandom,
    /// The change of the API key could not be stored or recorded.
    NotStored(Error),
}

impl fmt::Display for ApiKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiKeyError::InvalidName => f.write_str(
                "the name of a key must be 1 to 64 ASCII letters, digits, '.', '_', '-' or '@'; choose another name",
            ),
            ApiKeyError::InvalidGroup(group) => write!(
                f,
                "{group:?} is not a valid group; write 1 to {MAX_GROUP_BYTES} characters without control characters, and at most {MAX_KEY_GROUPS} groups"
            ),
            ApiKeyError::NameInUse => f.write_str(
                "a valid key with that name already exists; replace it with `toolgate keys rotate`, revoke it first, or choose another name",
            ),
            ApiKeyError::Unknown => f.write_str("no valid key has that name; see `toolgate keys list`"),
            ApiKeyError::ChangedConcurrently => f.write_str("another process changed the key at the same time; check it with `toolgate keys list`, then try again"),
            ApiKeyError::Expired(name, _) => write!(f, "key:{name} has expired; create a new one with `toolgate keys create {name}`, which deletes the approvals and credentials of the old one"),
            ApiKeyError::ExpiresLater(name, _) => write!(f, "key:{name} already has a later expiry; for an earlier expiry, replace the key with `toolgate keys rotate {name} --expires TIME`"),
            ApiKeyError::ExpiryTooFar => f.write_str("the key would expire more than 100 years from now; choose an earlier time"),
            ApiKeyError::ExpiryInPast => f.write_str("the requested expiry of the key is in the past; choose a later time"),
            ApiKeyError::LimitReached(most) => write!(f, "there are already {most} keys, which is the limit; revoke unused keys, or raise caller_keys in [limits]"),
            ApiKeyError::NoRandom => f.write_str("the operating system provides no random numbers; check its random device, or restart the machine"),
            ApiKeyError::NotStored(error) => f.write_str(error.public_message()),
        }
    }
}

impl std::error::Error for ApiKeyError {}

impl From<Error> for ApiKeyError {
    fn from(error: Error) -> ApiKeyError {
        ApiKeyError::NotStored(error)
    }
}

/// Prefix of the names of callers with API keys.
const CALLER_PREFIX: &str = "key:";

fn caller(name: &str) -> Caller {
    Caller::new(format!("{CALLER_PREFIX}{name}"))
}

type ApiKeyDigest = [u8; 32];

/// A key has 256 random bits, so one pass of a plain hash is enough.
fn digest(key: &str) -> ApiKeyDigest {
    let mut bytes = [0; 32];
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Compares two digests in constant time.
fn equal_in_constant_time(one: &ApiKeyDigest, other: &ApiKeyDigest) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

/// Returns the digest that hexadecimal digits spell.
fn parse_digest(text: &str) -> Option<ApiKeyDigest> {
    hex::decode(text)?.try_into().ok()
}

fn is_valid_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}
