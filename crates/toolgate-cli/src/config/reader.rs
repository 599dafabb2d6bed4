//! Reads TOML into the types of the config with serde. Every error names the setting and its position.

mod config_word;
mod deserializer;
mod expected_value;
mod inline_schema;
mod int_range;
mod named_settings;
mod setting_error;
mod setting_path;
mod text_values;
mod tree;

pub(super) use config_word::{CheckSwitch, ConfigWord, Word, WordVisitor, word_schema};
pub(super) use inline_schema::inline_schema;
pub(super) use int_range::IntRange;
pub(super) use named_settings::NamedSettings;
pub(super) use setting_error::SettingError;
pub(super) use setting_path::SettingPath;
pub(crate) use text_values::ConfigPath;
pub(super) use text_values::ExpandedText;
pub(super) use tree::{ConfigTree, toml_syntax_error};
