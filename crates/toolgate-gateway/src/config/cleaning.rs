//! How what a server sends and gets is cleaned: keys of `[server.NAME]`.

use super::{error::ConfigError, section::Section};
use toolgate_policy::{OnLeak, OnSecret};

/// How what a server sends and gets is cleaned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cleaning {
    /// What becomes of secrets that it sends.
    pub(crate) secrets: OnSecret,
    /// What becomes of calls that would send it secrets.
    pub(crate) leaks: OnLeak,
    /// Whether its pictures and sounds have to be what they say.
    pub(crate) media: bool,
    /// Whether its links may not lead to what runs.
    pub(crate) links: bool,
}

impl Default for Cleaning {
    fn default() -> Cleaning {
        Cleaning {
            secrets: OnSecret::Redact,
            leaks: OnLeak::Ask,
            media: true,
            links: true,
        }
    }
}

impl Cleaning {
    /// Reads its keys.
    pub(super) fn read(section: &Section<'_>) -> Result<Cleaning, ConfigError> {
        let mut cleaning = Cleaning::default();
        if let Some(field) = section.get("secrets") {
            cleaning.secrets = field.word(&[
                ("redact", OnSecret::Redact),
                ("warn", OnSecret::Warn),
                ("off", OnSecret::Pass),
            ])?;
        }
        if let Some(field) = section.get("leaks") {
            cleaning.leaks = field.word(&[
                ("ask", OnLeak::Ask),
                ("deny", OnLeak::Deny),
                ("warn", OnLeak::Warn),
                ("off", OnLeak::Pass),
            ])?;
        }
        let check = [("check", true), ("off", false)];
        if let Some(field) = section.get("media") {
            cleaning.media = field.word(&check)?;
        }
        if let Some(field) = section.get("links") {
            cleaning.links = field.word(&check)?;
        }
        Ok(cleaning)
    }
}
