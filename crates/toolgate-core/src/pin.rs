//! What is known of a definition as it came from its server.

use std::sync::Arc;

/// How a definition stands to what was accepted before.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum PinState {
    /// Nothing of that name was accepted so far.
    New,
    /// It is what was accepted.
    Accepted,
    /// It is another one than was accepted.
    Changed,
}

impl PinState {
    /// The word in rules, in the record and in the console.
    pub fn as_str(self) -> &'static str {
        match self {
            PinState::New => "new",
            PinState::Accepted => "accepted",
            PinState::Changed => "changed",
        }
    }
}

/// What is known of a definition as it came from its server, before anything was cleaned or renamed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pinning {
    /// SHA-256 of its canonical form, hexadecimal.
    pub digest: Arc<str>,
    /// How it stands to what was accepted.
    pub state: PinState,
    /// Why callers may not know of it; `None` where they may.
    pub hidden: Option<Arc<str>>,
    /// What a person should look at: names that look like others and the like.
    pub flags: Vec<String>,
}

impl Pinning {
    /// Of an item that no server listed: it was made here, for a URI alone, and nothing in it could change.
    pub fn unlisted() -> Pinning {
        Pinning {
            digest: "".into(),
            state: PinState::Accepted,
            hidden: None,
            flags: Vec::new(),
        }
    }

    /// Whether it is that of an item that no server listed.
    pub fn is_unlisted(&self) -> bool {
        self.digest.is_empty()
    }
}
