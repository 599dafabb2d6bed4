//! `[pins]`: how the gateway handles new, changed and confusable definitions.

use super::reader::{ConfigWord, Word};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_policy::{ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction};

/// Default pin settings for servers without their own.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PinSettings {
    /// Action for a new definition.
    #[serde(rename = "first", with = "Word::<NewDefinitionAction>")]
    pub(crate) on_new: NewDefinitionAction,
    /// Action for a changed definition.
    #[serde(rename = "change", with = "Word::<ChangedDefinitionAction>")]
    pub(crate) on_change: ChangedDefinitionAction,
    /// Action for names that look like other names.
    #[serde(rename = "look_alikes", with = "Word::<ConfusableNameAction>")]
    pub(crate) confusable_names: ConfusableNameAction,
}

impl ConfigWord for NewDefinitionAction {
    const WORDS: &'static [(&'static str, NewDefinitionAction)] = &[
        ("accept", NewDefinitionAction::Accept),
        ("ask", NewDefinitionAction::Ask),
    ];
}

impl ConfigWord for ChangedDefinitionAction {
    const WORDS: &'static [(&'static str, ChangedDefinitionAction)] = &[
        ("hide", ChangedDefinitionAction::Hide),
        ("warn", ChangedDefinitionAction::Warn),
        ("allow", ChangedDefinitionAction::Allow),
    ];
}

impl ConfigWord for ConfusableNameAction {
    const WORDS: &'static [(&'static str, ConfusableNameAction)] = &[
        ("flag", ConfusableNameAction::Flag),
        ("hide", ConfusableNameAction::Hide),
    ];
}
