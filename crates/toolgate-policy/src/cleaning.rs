//! How what comes back is cleaned, and what may not go out: the settings of these duties together.

use crate::{Errors, Foreign, Leaks, Links, Media, Placeholders, Secrets};

/// How what comes back is cleaned, and what may not go out. All of it is on by default but the marks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cleaning {
    /// What becomes of secrets that servers send.
    pub secrets: Secrets,
    /// What becomes of calls with secrets in their arguments.
    pub leaks: Leaks,
    /// What becomes of calls with placeholders of this program in their arguments.
    pub placeholders: Placeholders,
    /// Whether pictures and sounds have to be what they say.
    pub media: Media,
    /// Whether links may lead to what runs.
    pub links: Links,
    /// What callers get of the words of errors.
    pub errors: Errors,
    /// Whose results are marked as foreign; nobody's.
    pub foreign: Foreign,
}
