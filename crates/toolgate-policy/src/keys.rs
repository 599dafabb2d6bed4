//! Keys of callers: each names one client of the gateway. Only their digests are kept.

mod book;
mod change;
mod row;
#[cfg(test)]
mod tests;

pub use book::Keys;

use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Caller, Error};

/// What every key begins with.
pub const KEY_PREFIX: &str = "tg_";

/// How long a revoked key is remembered as such.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The longest time until a key ends by itself: 100 years.
const LONGEST: Duration = Duration::from_secs(36_525 * 24 * 3600);

/// A key that was just made. It has no `Debug`, `Display` or `Serialize`, so that no log can have it; it is kept nowhere.
pub struct NewKey {
    text: String,
    old: Option<SystemTime>,
}

impl NewKey {
    /// The key itself: to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Until when the key whose place it took opens, too.
    pub fn old(&self) -> Option<SystemTime> {
        self.old
    }

    /// 256 random bits.
    fn make(old: Option<SystemTime>) -> Result<NewKey, KeyError> {
        let mut bytes = [0; 32];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| KeyError::NoRandom)?;
        let text = format!("{KEY_PREFIX}{}", hex(&bytes));
        Ok(NewKey { text, old })
    }
}

/// A key as it is listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyView {
    /// The name that its owner gave it.
    pub name: String,
    /// When it was made.
    pub created: SystemTime,
    /// When it ends by itself.
    pub expires: Option<SystemTime>,
    /// When it was withdrawn.
    pub revoked: Option<SystemTime>,
    /// Who made it, in words.
    pub by: String,
    /// When it opened something last, as far as that was kept: to a minute.
    pub used: Option<SystemTime>,
    /// Until when the key that was before it opens, too.
    pub old: Option<SystemTime>,
}

impl KeyView {
    /// Why it opens nothing any more, if so.
    pub fn over(&self, now: SystemTime) -> Option<Over> {
        match (self.revoked, self.expires) {
            (Some(_), _) => Some(Over::Revoked),
            (None, Some(end)) if end <= now => Some(Over::Expired),
            _ => None,
        }
    }
}

/// Why a key opens nothing any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Over {
    /// The operator withdrew it.
    Revoked,
    /// Its time has passed.
    Expired,
    /// Another one of its name took its place.
    Replaced,
}

impl Over {
    /// `revoked`, `expired` or `replaced`.
    pub fn as_str(self) -> &'static str {
        match self {
            Over::Revoked => "revoked",
            Over::Expired => "expired",
            Over::Replaced => "replaced",
        }
    }
}

/// Somebody who showed a key that opens. It holds no key.
#[derive(Clone, Debug)]
pub struct KeyPass {
    name: String,
    digest: Digest,
    holder: u64,
}

impl KeyPass {
    /// The caller whom the key names: `key:NAME`.
    pub fn caller(&self) -> Caller {
        caller(&self.name).held_by(self.holder)
    }
}

/// Why a key does not open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyRefused {
    /// There is none such.
    Unknown,
    /// There was, under this name.
    Over(String, Over),
}

/// Why a key was not made or withdrawn.
#[derive(Debug)]
pub enum KeyError {
    /// The name cannot be one.
    Name,
    /// There is a key of that name which opens.
    Taken,
    /// There is no key of that name which opens.
    Unknown,
    /// It was changed meanwhile.
    Changed,
    /// The key of that name has expired, at that time.
    Expired(String, SystemTime),
    /// The key of that name ends later already, at that time if ever.
    Later(String, Option<SystemTime>),
    /// Its end lies in the past.
    Past,
    /// Its end lies more than 100 years ahead.
    Far,
    /// There are as many as there may be.
    Full(usize),
    /// The system gives no random bytes.
    NoRandom,
    /// It could not be kept or recorded.
    Unkept(Error),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Name => f.write_str(
                "the name of a key has 1 to 64 letters, digits, '.', '_', '-' and '@'; choose such a name",
            ),
            KeyError::Taken => f.write_str(
                "there is a key of that name; `toolgate keys rotate` makes another one for it; else revoke it first, or choose another name",
            ),
            KeyError::Unknown => f.write_str("there is no valid key of that name; `toolgate keys list` shows them"),
            KeyError::Changed => f.write_str("somebody else changed the key of that name just now; look at `toolgate keys list`"),
            KeyError::Expired(name, _) => write!(f, "key:{name} has expired; `toolgate keys create {name}` makes a new one, and what was granted for it is forgotten"),
            KeyError::Later(name, _) => write!(f, "key:{name} ends later already; for an earlier end give it another key: `toolgate keys rotate {name} --expires TIME`"),
            KeyError::Far => f.write_str("the key would end more than 100 years from now; give an earlier time"),
            KeyError::Past => f.write_str("the key would have expired already; give a later time"),
            KeyError::Full(most) => write!(f, "there are {most} keys; revoke those that nobody uses, or raise caller_keys in [limits]"),
            KeyError::NoRandom => f.write_str("the system gives no random bytes"),
            KeyError::Unkept(error) => f.write_str(error.public()),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<Error> for KeyError {
    fn from(error: Error) -> KeyError {
        KeyError::Unkept(error)
    }
}

/// What callers with keys are named by.
const CALLER: &str = "key:";

fn caller(name: &str) -> Caller {
    Caller::new(format!("{CALLER}{name}"))
}

type Digest = [u8; 32];

/// A key has 256 random bits: one pass of a plain hash is enough.
fn digest(key: &str) -> Digest {
    let mut bytes = [0; 32];
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Takes the same time wherever the two differ.
fn same(one: &Digest, other: &Digest) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Digest> {
    let byte = |at: usize| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes?.try_into().ok().filter(|_| text.len() == 64)
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn at(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
