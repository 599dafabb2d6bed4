//! Pins: comparison of a definition with the accepted one.

use std::sync::Arc;

/// State of a definition in comparison with its pin, the accepted digest.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PinState {
    /// No definition of that name has been accepted.
    New,
    /// The definition is the accepted one.
    Accepted,
    /// The definition differs from the accepted one.
    Changed,
}

impl PinState {
    /// Returns the name of the pin state in rules, in the audit log and in the console.
    pub fn as_str(self) -> &'static str {
        match self {
            PinState::New => "new",
            PinState::Accepted => "accepted",
            PinState::Changed => "changed",
        }
    }
}

/// Pin state of an item's original definition, before sanitizing and renaming.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DefinitionPin {
    /// SHA-256 of the definition's canonical form, hexadecimal.
    pub digest: Arc<str>,
    /// Result of the comparison with the accepted definition.
    pub state: PinState,
    /// Reason why the item is hidden from callers; `None` if it is visible.
    pub hidden_reason: Option<Arc<str>>,
    /// Findings for a person who reviews the definition, for example names that resemble other names.
    pub review_flags: Vec<String>,
}

impl DefinitionPin {
    /// Creates the pin state of a visible item.
    pub fn new(digest: impl Into<Arc<str>>, state: PinState) -> DefinitionPin {
        DefinitionPin {
            digest: digest.into(),
            state,
            hidden_reason: None,
            review_flags: Vec::new(),
        }
    }
}

impl DefinitionPin {
    /// Creates the pin state of an item that no server listed. The gateway created it for a URI, so its definition
    /// cannot change.
    pub fn unlisted() -> DefinitionPin {
        DefinitionPin {
            digest: "".into(),
            state: PinState::Accepted,
            hidden_reason: None,
            review_flags: Vec::new(),
        }
    }

    /// Returns true if no server listed the item, so that its definition cannot change.
    pub fn is_unlisted(&self) -> bool {
        self.digest.is_empty()
    }
}
