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
    pub(crate) on_new: NewDefinitionAction,
    /// Action for a changed definition.
    pub(crate) on_change: ChangedDefinitionAction,
    /// Action for confusable names.
    pub(crate) confusable_names: ConfusableNameAction,
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
        settings.on_new = read_on_new(&section, "first")?.unwrap_or_default();
        settings.on_change = read_on_change(&section, "change")?.unwrap_or_default();
        if let Some(field) = section.get("look_alikes") {
            settings.confusable_names = field.one_of(&[
                ("flag", ConfusableNameAction::Flag),
                ("hide", ConfusableNameAction::Hide),
            ])?;
        }
        Ok(settings)
    }
}

/// Reads the action for a new definition.
pub(super) fn read_on_new(
    section: &ConfigSection<'_>,
    key: &str,
) -> Result<Option<NewDefinitionAction>, ConfigError> {
    let words = [
        ("accept", NewDefinitionAction::Accept),
        ("ask", NewDefinitionAction::Ask),
    ];
    section
        .get(key)
        .map(|field| field.one_of(&words))
        .transpose()
}

/// Reads the action for a changed definition.
pub(super) fn read_on_change(
    section: &ConfigSection<'_>,
    key: &str,
) -> Result<Option<ChangedDefinitionAction>, ConfigError> {
    let words = [
        ("hide", ChangedDefinitionAction::Hide),
        ("warn", ChangedDefinitionAction::Warn),
        ("allow", ChangedDefinitionAction::Allow),
    ];
    section
        .get(key)
        .map(|field| field.one_of(&words))
        .transpose()
}
