//! Names of environment variables.

use serde::Deserialize;

/// Name of an environment variable, in `{ env = "NAME" }`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct EnvName(pub(super) String);

impl TryFrom<String> for EnvName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<EnvName, &'static str> {
        match check_env_name(&name) {
            Ok(()) => Ok(EnvName(name)),
            // Omit the value from the error: it may be the secret itself.
            Err(_) => Err(
                "is not a valid environment variable name; write the name of the variable, not its value",
            ),
        }
    }
}

/// Checks the name of an environment variable.
pub(crate) fn check_env_name(name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a valid environment variable name; use letters, digits and \"_\", and begin with a letter or \"_\""
        )),
    }
}
