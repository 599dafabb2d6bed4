//! Environment of a server process: set variables, and names passed on from the gateway's environment.

use super::{
    config_value::ConfigValue,
    env_name::check_env_name,
    reader::{NamedSettings, SettingError, SettingPath},
    value_source::ValueSource,
};

/// Checks the variables to set.
pub(super) fn check_env(
    env: NamedSettings<ValueSource>,
    path: &SettingPath,
) -> Result<Vec<(String, ConfigValue)>, SettingError> {
    let pair = |(name, value): (String, ValueSource)| {
        let path = path.key(&name);
        check_env_name(&name).map_err(|text| SettingError::at_key(path.clone(), text))?;
        match value.check(&name) {
            Ok(value) => Ok((name, value)),
            Err(text) => Err(SettingError::about(path, text)),
        }
    };
    env.0.into_iter().map(pair).collect()
}

/// Checks the names of variables that are passed on; none may also be in `env`.
pub(super) fn check_env_pass(
    names: &[String],
    env: &[(String, ConfigValue)],
    path: &SettingPath,
) -> Result<(), SettingError> {
    for (at, name) in names.iter().enumerate() {
        let wrong = |text| SettingError::message(path.index(at), text);
        check_env_name(name).map_err(wrong)?;
        if env.iter().any(|(set, _)| set == name) {
            return Err(wrong(format!(
                "{name:?} is in env and in env_pass; keep one of the two"
            )));
        }
    }
    Ok(())
}
