//! `[pins]`: how the gateway handles new, changed and confusable definitions.

use super::{
    error::ConfigError,
    section::{Field, Section},
};
use toolgate_policy::{First, LookAlikes, OnChange};

/// Default pin settings for servers without their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PinSettings {
    /// Action for a new definition.
    pub(crate) first: First,
    /// Action for a changed definition.
    pub(crate) change: OnChange,
    /// Action for confusable names.
    pub(crate) look_alikes: LookAlikes,
}

const KEYS: &[&str] = &["first", "change", "look_alikes"];

impl PinSettings {
    /// Reads `[pins]`, which may be absent.
    pub(super) fn read(field: Option<Field<'_>>) -> Result<PinSettings, ConfigError> {
        let mut settings = PinSettings::default();
        let Some(field) = field else {
            return Ok(settings);
        };
        let section = field.section("[pins]", "a section that begins with [pins]", KEYS)?;
        settings.first = first(&section, "first")?.unwrap_or_default();
        settings.change = change(&section, "change")?.unwrap_or_default();
        if let Some(field) = section.get("look_alikes") {
            settings.look_alikes =
                field.word(&[("flag", LookAlikes::Flag), ("hide", LookAlikes::Hide)])?;
        }
        Ok(settings)
    }
}

/// Reads the action for a new definition.
pub(super) fn first(section: &Section<'_>, key: &str) -> Result<Option<First>, ConfigError> {
    let words = [("accept", First::Accept), ("ask", First::Ask)];
    section.get(key).map(|field| field.word(&words)).transpose()
}

/// Reads the action for a changed definition.
pub(super) fn change(section: &Section<'_>, key: &str) -> Result<Option<OnChange>, ConfigError> {
    let words = [
        ("hide", OnChange::Hide),
        ("warn", OnChange::Warn),
        ("allow", OnChange::Allow),
    ];
    section.get(key).map(|field| field.word(&words)).transpose()
}
