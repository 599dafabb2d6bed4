//! `[console]`: what the web console may change.

use schemars::JsonSchema;
use serde::Deserialize;

/// Web console.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConsoleSettings {
    /// True if the console may change every part of the config. Whoever can open the console can then start programs on
    /// this machine. Without it, the console changes only `rule`, `limits`, `pins`, `search` and `tool_names`.
    pub(crate) danger_edit_config: bool,
}
