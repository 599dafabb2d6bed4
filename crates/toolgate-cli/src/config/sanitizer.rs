//! Sanitizer settings: keys of `[server.NAME]`.

use super::{
    error::ConfigError,
    section::{ConfigField, ConfigSection},
};
use toolgate_policy::{ErrorTextMode, OnOutboundSecret, OnPlaceholder, OnSecret};

/// Sanitizer settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct SanitizerSettings {
    /// Action for secrets that the server sends.
    pub(crate) secrets: OnSecret,
    /// Action for calls whose arguments contain secrets.
    pub(crate) outbound_secrets: OnOutboundSecret,
    /// Action for calls whose arguments contain the gateway's own redaction placeholders.
    pub(crate) placeholders: OnPlaceholder,
    /// True if images and audio must match their declared media type.
    pub(crate) media: bool,
    /// True if links to executable content are blocked.
    pub(crate) links: bool,
    /// Allowlist of URI schemes for links.
    pub(crate) schemes: Option<Vec<String>>,
    /// Error text that callers receive.
    pub(crate) error_text: ErrorTextMode,
    /// True if results are marked as untrusted content.
    pub(crate) mark_untrusted: bool,
}

impl Default for SanitizerSettings {
    fn default() -> SanitizerSettings {
        SanitizerSettings {
            secrets: OnSecret::Redact,
            outbound_secrets: OnOutboundSecret::Ask,
            placeholders: OnPlaceholder::Ask,
            media: true,
            links: true,
            schemes: None,
            error_text: ErrorTextMode::Message,
            mark_untrusted: false,
        }
    }
}

impl SanitizerSettings {
    /// Reads the keys of a server's section.
    pub(super) fn read(section: &ConfigSection<'_>) -> Result<SanitizerSettings, ConfigError> {
        let mut cleaning = SanitizerSettings::default();
        if let Some(field) = section.get("secrets") {
            cleaning.secrets = field.one_of(&[
                ("redact", OnSecret::Redact),
                ("warn", OnSecret::Warn),
                ("off", OnSecret::Pass),
            ])?;
        }
        if let Some(field) = section.get("outbound_secrets") {
            cleaning.outbound_secrets = field.one_of(&[
                ("ask", OnOutboundSecret::Ask),
                ("deny", OnOutboundSecret::Deny),
                ("warn", OnOutboundSecret::Warn),
                ("off", OnOutboundSecret::Pass),
            ])?;
        }
        if let Some(field) = section.get("placeholders") {
            cleaning.placeholders = field.one_of(&[
                ("ask", OnPlaceholder::Ask),
                ("deny", OnPlaceholder::Deny),
                ("allow", OnPlaceholder::Allow),
            ])?;
        }
        let check = [("check", true), ("off", false)];
        if let Some(field) = section.get("media") {
            cleaning.media = field.one_of(&check)?;
        }
        match section.get("links") {
            Some(field) if field.is_list() => cleaning.schemes = Some(read_schemes(&field)?),
            Some(field) => cleaning.links = field.one_of(&check)?,
            None => {}
        }
        if let Some(field) = section.get("error_text") {
            let words = [
                ("message", ErrorTextMode::Message),
                ("class", ErrorTextMode::Class),
            ];
            cleaning.error_text = field.one_of(&words)?;
        }
        if let Some(field) = section.get("mark_untrusted") {
            cleaning.mark_untrusted = field.boolean()?;
        }
        Ok(cleaning)
    }
}

/// Reads an allowlist of lower-case URI schemes.
fn read_schemes(field: &ConfigField<'_>) -> Result<Vec<String>, ConfigError> {
    let one = |field: &ConfigField<'_>| {
        let text = field.text()?;
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
        match text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(rest) {
            true => Ok(text.to_owned()),
            false => Err(field.key_error(format!(
                "contains {text:?}, which is not a URI scheme; write one such as \"https\""
            ))),
        }
    };
    let fields = field.list("an array of schemes such as [\"https\"]")?;
    fields.iter().map(one).collect()
}
