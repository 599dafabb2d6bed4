//! Environment of a server process: set variables, and names passed on from the gateway's environment.

use super::{config_value::ConfigValue, error::ConfigError, section::ConfigField};
use std::path::Path;

/// Reads `env`.
pub(super) fn read_env(
    field: &ConfigField<'_>,
    id: &str,
    base: &Path,
) -> Result<Vec<(String, ConfigValue)>, ConfigError> {
    let section = field.any_section(format!("[server.{id}.env]"), "{ NAME = \"value\" }")?;
    let pair = |(name, at, value): (&str, usize, ConfigField<'_>)| {
        check_env_name(name).map_err(|text| section.doc.error(at, text))?;
        Ok((
            name.to_owned(),
            ConfigValue::read_value(&value, name, base)?,
        ))
    };
    section.entries().into_iter().map(pair).collect()
}

/// Reads `env_pass` and rejects names that are also in `env`.
pub(super) fn read_env_pass(
    field: &ConfigField<'_>,
    env: &[(String, ConfigValue)],
) -> Result<Vec<String>, ConfigError> {
    let name = |item: ConfigField<'_>| {
        let name = item.text()?;
        check_env_name(name).map_err(|text| item.error(text))?;
        match env.iter().any(|(set, _)| set == name) {
            true => Err(item.error(format!(
                "{name:?} is in env and in env_pass; keep one of the two"
            ))),
            false => Ok(name.to_owned()),
        }
    };
    field
        .list("an array such as [\"NAME\"]")?
        .into_iter()
        .map(name)
        .collect()
}

/// Checks the name of an environment variable.
pub(super) fn check_env_name(name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a valid name of an environment variable; write letters, digits and _"
        )),
    }
}
