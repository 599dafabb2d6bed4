//! `[pins]`: how the gateway handles new, changed and confusable definitions.

use super::reader::{ConfigWord, Word};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_policy::{ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction};

/// Default pin settings for servers without their own.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PinSettings {
    /// Action for a definition at first sight: `accept` it, or `ask` to hide it until you accept it.
    #[serde(rename = "first", with = "Word::<NewDefinitionAction>")]
    pub(crate) on_new: NewDefinitionAction,
    /// Action for a definition that differs from the accepted one: `hide` it until you accept it, `warn` and let
    /// callers use it, or `allow`, which accepts it and records that.
    #[serde(rename = "change", with = "Word::<ChangedDefinitionAction>")]
    pub(crate) on_change: ChangedDefinitionAction,
    /// Action for tools and prompts with names that look alike: `flag` them in the console, on standard error and in
    /// the audit log, or also `hide` both.
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
