//! `[pins]`: how the gateway handles new, changed and confusable definitions.

use super::{
    error::ConfigError,
    section::{ConfigField, ConfigSection},
};
use toolgate_policy::{ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction};

/// Default pin settings for servers without their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PinSettings {
    /// Action for a new definition.
    pub(crate) first: NewDefinitionAction,
    /// Action for a changed definition.
    pub(crate) change: ChangedDefinitionAction,
    /// Action for confusable names.
    pub(crate) look_alikes: ConfusableNameAction,
}

const KEYS: &[&str] = &["first", "change", "look_alikes"];

impl PinSettings {
    /// Reads `[pins]`, which may be absent.
    pub(super) fn read(field: Option<ConfigField<'_>>) -> Result<PinSettings, ConfigError> {
        let mut settings = PinSettings::default();
        let Some(field) = field else {
            return Ok(settings);
        };
        let section = field.section("[pins]", "a section that begins with [pins]", KEYS)?;
        settings.first = first(&section, "first")?.unwrap_or_default();
        settings.change = change(&section, "change")?.unwrap_or_default();
        if let Some(field) = section.get("look_alikes") {
            settings.look_alikes = field.word(&[
                ("flag", ConfusableNameAction::Flag),
                ("hide", ConfusableNameAction::Hide),
            ])?;
        }
        Ok(settings)
    }
}

/// Reads the action for a new definition.
pub(super) fn first(
    section: &ConfigSection<'_>,
    key: &str,
) -> Result<Option<NewDefinitionAction>, ConfigError> {
    let words = [
        ("accept", NewDefinitionAction::Accept),
        ("ask", NewDefinitionAction::Ask),
    ];
    section.get(key).map(|field| field.word(&words)).transpose()
}

/// Reads the action for a changed definition.
pub(super) fn change(
    section: &ConfigSection<'_>,
    key: &str,
) -> Result<Option<ChangedDefinitionAction>, ConfigError> {
    let words = [
        ("hide", ChangedDefinitionAction::Hide),
        ("warn", ChangedDefinitionAction::Warn),
        ("allow", ChangedDefinitionAction::Allow),
    ];
    section.get(key).map(|field| field.word(&words)).transpose()
}
