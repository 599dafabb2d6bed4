//! What happens to definitions that are new, change or look like others: `[pins]`.

use super::{
    error::ConfigError,
    section::{Field, Section},
};
use toolgate_policy::{First, LookAlikes, OnChange};

/// What happens to definitions, where a server has no setting of its own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PinSettings {
    /// At first sight.
    pub(crate) first: First,
    /// After a change.
    pub(crate) change: OnChange,
    /// Where names look alike.
    pub(crate) look_alikes: LookAlikes,
}

const KEYS: &[&str] = &["first", "change", "look_alikes"];

impl PinSettings {
    /// Reads `[pins]`, where it is.
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

/// What happens at first sight.
pub(super) fn first(section: &Section<'_>, key: &str) -> Result<Option<First>, ConfigError> {
    let words = [("accept", First::Accept), ("ask", First::Ask)];
    section.get(key).map(|field| field.word(&words)).transpose()
}

/// What happens after a change.
pub(super) fn change(section: &Section<'_>, key: &str) -> Result<Option<OnChange>, ConfigError> {
    let words = [
        ("hide", OnChange::Hide),
        ("warn", OnChange::Warn),
        ("allow", OnChange::Allow),
    ];
    section.get(key).map(|field| field.word(&words)).transpose()
}
