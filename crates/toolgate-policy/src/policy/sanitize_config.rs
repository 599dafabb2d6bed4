//! Settings of the sanitizers and of the checks of outbound arguments.

use crate::{
    ErrorSanitizer, LinkSanitizer, MediaSanitizer, OutboundSecrets, Placeholders, SecretRedactor,
    UntrustedMarker,
};

/// Settings of the sanitizers of content from servers, and of the checks of outbound arguments. All are on by default
/// except `untrusted_marker`.
///
/// ```
/// use toolgate_policy::{
///     ErrorTextMode, OnOutboundSecret, OnPlaceholder, OnSecret, PerServer, Policy, SanitizeConfig,
/// };
///
/// let mut config = SanitizeConfig::default();
/// config.secrets.on_secret = PerServer::all(OnSecret::Redact).with("vault", OnSecret::Warn);
/// config.outbound_secrets.found = PerServer::all(OnOutboundSecret::Deny);
/// config.placeholders.found = PerServer::all(OnPlaceholder::Deny);
/// config.media.max_base64_bytes = 1 << 20;
/// config.links.allowed_schemes.insert("wiki".to_owned(), vec!["https".to_owned()]);
/// config.errors.text = PerServer::all(ErrorTextMode::Class);
/// config.untrusted_marker.mark = PerServer::all(true);
/// let mut policy = Policy::for_program();
/// policy.sanitizers = config;
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SanitizeConfig {
    /// Sanitizer for secrets (tokens, keys) in content from servers.
    pub secrets: SecretRedactor,
    /// Rule for calls with secrets (tokens, keys) in their arguments.
    pub outbound_secrets: OutboundSecrets,
    /// Rule for calls with redaction placeholders of this program (`[redacted:RULE]`) in their arguments.
    pub placeholders: Placeholders,
    /// Sanitizer that verifies images and audio from servers against their declared types.
    pub media: MediaSanitizer,
    /// Sanitizer that withholds links to executable content.
    pub links: LinkSanitizer,
    /// Sanitizer of error messages from servers as passed to callers.
    pub errors: ErrorSanitizer,
    /// Sanitizer that marks texts in results as untrusted content from a server. Default: none.
    pub untrusted_marker: UntrustedMarker,
}
