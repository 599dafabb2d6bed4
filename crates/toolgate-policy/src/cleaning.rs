//! Settings of the sanitizers and of the checks of outbound arguments.

use crate::{Errors, Foreign, Leaks, Links, Media, Placeholders, Secrets};

/// Settings of the sanitizers and of the checks of outbound arguments. All are on by default except `foreign`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cleaning {
    /// Handling of secrets in server content.
    pub secrets: Secrets,
    /// Handling of calls with secrets in their arguments.
    pub leaks: Leaks,
    /// Handling of calls with placeholders of this program in their arguments.
    pub placeholders: Placeholders,
    /// Verification of images and audio against their declared types.
    pub media: Media,
    /// Handling of links to executable content.
    pub links: Links,
    /// Error text of servers as passed to callers.
    pub errors: Errors,
    /// Marking of server results as untrusted. Default: none.
    pub foreign: Foreign,
}
