//! Sanitizer settings: keys of `[server.NAME]`.

use super::reader::{CheckSwitch, ConfigWord, Word, WordVisitor, inline_schema};
use schemars::json_schema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Visitor},
};
use std::fmt;
use toolgate_policy::{ErrorTextMode, OnOutboundSecret, OnPlaceholder, OnSecret};

/// Sanitizer settings of a server.
#[derive(Clone, Debug, PartialEq)]
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
            secrets: OnSecret::default(),
            outbound_secrets: OnOutboundSecret::default(),
            placeholders: OnPlaceholder::default(),
            media: true,
            links: true,
            schemes: None,
            error_text: ErrorTextMode::default(),
            mark_untrusted: false,
        }
    }
}

impl ConfigWord for OnSecret {
    const WORDS: &'static [(&'static str, OnSecret)] = &[
        ("redact", OnSecret::Redact),
        ("warn", OnSecret::Warn),
        ("off", OnSecret::Pass),
    ];
}

impl ConfigWord for OnOutboundSecret {
    const WORDS: &'static [(&'static str, OnOutboundSecret)] = &[
        ("ask", OnOutboundSecret::Ask),
        ("deny", OnOutboundSecret::Deny),
        ("warn", OnOutboundSecret::Warn),
        ("off", OnOutboundSecret::Pass),
    ];
}

impl ConfigWord for OnPlaceholder {
    const WORDS: &'static [(&'static str, OnPlaceholder)] = &[
        ("ask", OnPlaceholder::Ask),
        ("deny", OnPlaceholder::Deny),
        ("allow", OnPlaceholder::Allow),
    ];
}

impl ConfigWord for ErrorTextMode {
    const WORDS: &'static [(&'static str, ErrorTextMode)] = &[
        ("message", ErrorTextMode::Message),
        ("class", ErrorTextMode::Class),
    ];
}

/// Check of links as written: `"check"`, `"off"`, or an allowlist of URI schemes.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum LinkSetting {
    /// Links to executable content are blocked, or no links.
    #[serde(serialize_with = "Word::<CheckSwitch>::serialize")]
    Switch(CheckSwitch),
    /// Only links with these schemes pass.
    Schemes(Vec<String>),
}

impl Default for LinkSetting {
    fn default() -> LinkSetting {
        LinkSetting::Switch(CheckSwitch::default())
    }
}

impl<'de> Deserialize<'de> for LinkSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkSetting, D::Error> {
        deserializer.deserialize_any(LinkVisitor)
    }
}

struct LinkVisitor;

impl<'de> Visitor<'de> for LinkVisitor {
    type Value = LinkSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or an array of URI schemes")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<LinkSetting, E> {
        WordVisitor(CheckSwitch::WORDS)
            .visit_str(word)
            .map(LinkSetting::Switch)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LinkSetting, A::Error> {
        let mut schemes = Vec::new();
        while let Some(UriScheme(scheme)) = list.next_element()? {
            schemes.push(scheme);
        }
        Ok(LinkSetting::Schemes(schemes))
    }
}

inline_schema!(LinkSetting, |generator| json_schema!({"anyOf": [
    Word::<CheckSwitch>::json_schema(generator),
    {"type": "array", "items": {"type": "string"}, "examples": [["https"]]},
]}));

/// URI scheme in lower case.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct UriScheme(String);

impl TryFrom<String> for UriScheme {
    type Error = String;

    fn try_from(text: String) -> Result<UriScheme, String> {
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
        match text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(rest) {
            true => Ok(UriScheme(text)),
            false => Err(format!(
                "contains {text:?}, which is not a URI scheme in lower case; write one such as \"https\""
            )),
        }
    }
}
