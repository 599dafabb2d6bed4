//! Sanitizer for text from servers: removes everything that a person would not see.

mod classes;
mod clean;
#[cfg(test)]
mod tests;

pub use clean::sanitize_text;

/// Returns whether nothing in the strings of a JSON text must be removed from a message. Also `false` if an escape could
/// hide a character.
pub(crate) fn is_clean_json(json: &str) -> bool {
    clean::is_clean(json, TextKind::Message)
}

use crate::sanitize::edit::{ContentLocation, StringEditor, edit_strings};
use clean::TextKind;
use std::{borrow::Cow, sync::Arc};
use toolgate_core::{
    DecisionLog, Error, Item, Json, Origin, SanitizeContext, Sanitizer, UntrustedContent,
};

/// Sanitizer that removes control characters, terminal sequences and invisible characters from all content of servers.
///
/// Joiners, direction marks and variation selectors stay where a script or an emoji needs them. The content of
/// results also keeps Windows line endings, form feeds, a byte order mark at the start and private use characters.
/// An agent that reads a file and writes it back must not change it.
pub struct TextSanitizer;

/// The counter of a call for the characters that were removed from its result.
const REMOVED_COUNTER: &str = "removed_chars";

impl Sanitizer for TextSanitizer {
    fn name(&self) -> &'static str {
        "text"
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        edit_strings(value, &mut TextSanitizerPass::default())
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let of_result = matches!(
            value,
            UntrustedContent::Output(_) | UntrustedContent::Error(_)
        );
        let mut cleaning = TextSanitizerPass::default();
        let edited = edit_strings(value, &mut cleaning);
        if of_result && cleaning.removed > 0 {
            asked.decision_log.count(REMOVED_COUNTER, cleaning.removed);
        }
        edited
    }
}

/// Returns the number of characters that were removed from the result of a call, or replaced by a line feed.
pub(crate) fn removed(trail: &DecisionLog) -> u64 {
    let counts = trail.counts().into_iter();
    let ours = counts.filter(|(name, _)| name == REMOVED_COUNTER);
    ours.map(|(_, count)| count).sum()
}

/// A sanitizing pass over one value.
#[derive(Default)]
struct TextSanitizerPass {
    /// Number of characters removed so far.
    removed: u64,
}

impl TextSanitizerPass {
    fn string(&mut self, text: &str, kind: TextKind) -> Option<String> {
        match clean::sanitized(text, kind, &mut self.removed) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }
}

impl StringEditor for TextSanitizerPass {
    fn text(&mut self, text: &str) -> Option<String> {
        self.string(text, TextKind::Message)
    }

    fn json(&mut self, place: ContentLocation, json: &Json) -> Option<(Json, bool)> {
        let kind = match place {
            ContentLocation::Block(_) | ContentLocation::Contents | ContentLocation::Structured => {
                TextKind::Content
            }
            ContentLocation::Definition | ContentLocation::Other => TextKind::Message,
        };
        // Nearly all values are clean.
        if clean::is_clean(json.as_str(), kind) {
            return None;
        }
        let mut keys = false;
        let clean = json.map_strings(&mut |at| {
            let kind = match kind {
                TextKind::Content if at.key => TextKind::Key,
                kind => kind,
            };
            let clean = self.string(at.text, kind)?;
            keys |= at.key;
            Some(clean)
        });
        clean.map(|clean| (clean, keys))
    }

    fn flaw(&self) -> &'static str {
        "control or invisible characters"
    }
}
