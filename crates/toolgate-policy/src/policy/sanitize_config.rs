//! Settings of the sanitizers and of the checks of outbound arguments.

use crate::{
    ErrorSanitizer, LinkSanitizer, MediaSanitizer, OutboundSecrets, Placeholders, SecretRedactor,
    UntrustedMarker,
};

/// Settings of the sanitizers and of the checks of outbound arguments. All are on by default except `untrusted_marker`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SanitizeConfig {
    /// Handling of secrets in server content.
    pub secrets: SecretRedactor,
    /// Handling of calls with secrets in their arguments.
    pub outbound_secrets: OutboundSecrets,
    /// Handling of calls with placeholders of this program in their arguments.
    pub placeholders: Placeholders,
    /// Verification of images and audio against their declared types.
    pub media: MediaSanitizer,
    /// Handling of links to executable content.
    pub links: LinkSanitizer,
    /// Error text of servers as passed to callers.
    pub errors: ErrorSanitizer,
    /// Marking of server results as untrusted. Default: none.
    pub untrusted_marker: UntrustedMarker,
}
