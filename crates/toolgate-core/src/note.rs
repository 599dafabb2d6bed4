//! Notes on definitions that the gateway changed, does not check, withholds or drops, with the reasons.
//!
//! A note is for the operator. `toolgate tools`, `toolgate status`, `toolgate check --servers`, the console, standard
//! error and the audit log show it. A layer that marks an item calls [`Item::with_note`](crate::Item::with_note).

use std::{fmt, sync::Arc};
use toolgate_protocol::method::definition::ItemKind;

/// Action of the gateway on a definition or list, such as dropped, withheld or repaired.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum NoteAction {
    /// The list could not be read. The last good list is used if there is one.
    ListFailed,
    /// The item is not offered, because its definition is invalid beyond repair.
    Dropped,
    /// The item exists, and callers can neither see it in a list nor use it.
    Withheld,
    /// The item is offered, and a part of its schema is not checked.
    PartlyChecked,
    /// The item is offered with a corrected definition.
    Repaired,
}

impl NoteAction {
    /// Returns the name of the action in the console, on the command line and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteAction::ListFailed => "failed",
            NoteAction::Dropped => "dropped",
            NoteAction::Withheld => "withheld",
            NoteAction::PartlyChecked => "partly checked",
            NoteAction::Repaired => "repaired",
        }
    }
}

/// Note for the operator on one item: an action of the gateway, and its reason.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct ItemNote {
    /// Action of the gateway on the item.
    pub action: NoteAction,
    /// Reason of the action; one line without control characters.
    pub reason: Arc<str>,
}

impl ItemNote {
    /// Creates a note on an item; the reason becomes one line of at most 300 characters.
    pub fn new(action: NoteAction, reason: &str) -> ItemNote {
        ItemNote {
            action,
            reason: one_line(reason, MAX_REASON_CHARS).into(),
        }
    }
}

/// Note for the operator on a definition of a server, or on one of its lists.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct DefinitionNote {
    /// Configured id of the server.
    pub server: Arc<str>,
    /// Kind of the item or of the list.
    pub kind: ItemKind,
    /// Name of the item at its server, or position in the list; empty for the list as a whole.
    pub name: Arc<str>,
    /// Action of the gateway, and its reason.
    pub note: ItemNote,
}

impl DefinitionNote {
    /// Creates a note on a definition; name and reason become one line each, of bounded length.
    pub fn new(
        server: Arc<str>,
        kind: ItemKind,
        name: &str,
        action: NoteAction,
        reason: &str,
    ) -> DefinitionNote {
        DefinitionNote {
            server,
            kind,
            name: one_line(name, MAX_NAME_CHARS).into(),
            note: ItemNote::new(action, reason),
        }
    }

    /// Creates a note from one that an item of the server carries. The name is empty for a list as a whole.
    pub fn from_note(
        server: impl Into<Arc<str>>,
        kind: ItemKind,
        name: impl Into<Arc<str>>,
        note: ItemNote,
    ) -> DefinitionNote {
        DefinitionNote {
            server: server.into(),
            kind,
            name: name.into(),
            note,
        }
    }
}

impl fmt::Display for DefinitionNote {
    /// Writes the note without the server: `tool a: dropped: why`, or `tool list: failed: why`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (
            self.kind.as_str(),
            if self.name.is_empty() {
                "list"
            } else {
                &self.name
            },
        );
        write!(
            f,
            "{kind} {name}: {}: {}",
            self.note.action.as_str(),
            self.note.reason
        )
    }
}

/// Reason why an item is withheld if the operator's configuration hides it. The item has no note, and callers get the
/// error for unknown items.
#[doc(hidden)]
pub const HIDDEN_BY_CONFIG: &str = "the configuration hides it";
/// Maximum length of a note's reason, in characters.
pub(crate) const MAX_REASON_CHARS: usize = 300;
/// Maximum length of a name in a note, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 128;
/// Maximum number of notes on one item.
pub(crate) const MAX_NOTES_PER_ITEM: usize = 8;
/// Maximum number of notes on one list of a server, besides those of its items.
#[doc(hidden)]
pub const MAX_NOTES_PER_LIST: usize = 200;

/// Returns a server's text as one line: control characters become spaces.
fn one_line(text: &str, limit: usize) -> String {
    let mut chars = text.chars();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = chars.by_ref().take(limit).map(plain).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_of_bounded_length() {
        let long = "x\n\u{1b}".repeat(MAX_REASON_CHARS);
        let note = DefinitionNote::new(
            "s".into(),
            ItemKind::Tool,
            &long,
            NoteAction::Dropped,
            &long,
        );
        for (text, limit) in [
            (&note.name, MAX_NAME_CHARS),
            (&note.note.reason, MAX_REASON_CHARS),
        ] {
            assert_eq!(text.chars().count(), limit + 1);
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
}
