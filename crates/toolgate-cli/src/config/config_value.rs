//! Possibly secret values: `"TEXT"`, `{ env = "NAME" }`, `{ file = "PATH" }` or `{ keyring = "NAME" }`.

use super::{
    environment::check_env_name,
    error::ConfigError,
    expand,
    file::{self, FilePrivacy},
    plaintext,
    section::ConfigField,
};
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toolgate_auth::Secret;

/// Alternatives to a plaintext secret, for error messages.
pub(super) const SECRET_ALTERNATIVES: &str =
    "{ env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }";
/// Maximum size of a secret file in bytes.
pub(crate) const MAX_SECRET_FILE_BYTES: usize = 64 * 1024;
/// Key that marks a plaintext value as intended although it looks like a secret.
pub(super) const PLAINTEXT_KEY: &str = "danger_clear";

/// Possibly secret config value, given as text or by its source. Its debug output never contains the value.
#[derive(Clone, Eq, PartialEq)]
pub(crate) enum ConfigValue {
    /// Plaintext in the config.
    Plaintext(String),
    /// Environment variable of the gateway.
    Env(String),
    /// File that only the gateway's user may read.
    File(PathBuf),
    /// Entry of that name in the operating system's keyring.
    Keyring(String),
}

/// Prints the source, never the value.
impl fmt::Debug for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe_source())
    }
}

impl ConfigValue {
    /// Reads a value and rejects plaintext that looks like a secret by its name or form.
    pub(super) fn read_value(
        field: &ConfigField<'_>,
        name: &str,
        base: &Path,
    ) -> Result<ConfigValue, ConfigError> {
        if field.is_table() {
            return ConfigValue::read_source(field, base);
        }
        let text = field.text_or(&format!("a string in quotes, or {SECRET_ALTERNATIVES}"))?;
        let expanded = field.expanded()?;
        let why = plaintext::secret_reason(name, text)
            .or_else(|| plaintext::secret_reason(name, &expanded));
        match why {
            None => Ok(ConfigValue::Plaintext(expanded.into_owned())),
            Some(why) if expand::has_reference(text) => Err(field.key_error(format!(
                "{why}, and variables are not expanded into secrets; write {SECRET_ALTERNATIVES}"
            ))),
            Some(why) => Err(field.key_error(plaintext_error(&why))),
        }
    }

    /// Reads a value that is always secret and rejects plaintext.
    pub(super) fn read_secret(
        field: &ConfigField<'_>,
        what: &str,
        base: &Path,
    ) -> Result<ConfigValue, ConfigError> {
        let given = match field.is_table() {
            true => ConfigValue::read_source(field, base)?,
            false => ConfigValue::Plaintext(String::new()),
        };
        match given {
            ConfigValue::Plaintext(_) => Err(field.key_error(format!(
                "would store the {what} in plaintext in this file; write {SECRET_ALTERNATIVES}"
            ))),
            given => Ok(given),
        }
    }

    fn read_source(field: &ConfigField<'_>, base: &Path) -> Result<ConfigValue, ConfigError> {
        let table = field.any_section("", "")?;
        let entries = table.entries();
        let [(key, _, value)] = entries.as_slice() else {
            return Err(field.key_error(format!("is a table; write {SECRET_ALTERNATIVES}")));
        };
        match *key {
            PLAINTEXT_KEY => Ok(ConfigValue::Plaintext(value.text()?.to_owned())),
            "file" => Ok(ConfigValue::File(value.path(base)?)),
            // Omit the value from the error: it may be the secret itself.
            "env" => check_env_name(value.text()?)
                .map(|()| value.text().map(|name| ConfigValue::Env(name.to_owned())))
                .map_err(|_| {
                    value.key_error("is not a valid name of an environment variable; write the name, not the value")
                })?,
            "keyring" if is_keyring_name(value.text()?) => Ok(ConfigValue::Keyring(value.text()?.to_owned())),
            "keyring" => Err(value.key_error("is not a valid name of a keyring entry; write 1 to 128 letters, digits and any of \".\", \"_\", \"-\", \"/\" and \"@\", a letter or digit first")),
            _ => Err(field.key_error(format!("has a key {key:?}; write {SECRET_ALTERNATIVES}"))),
        }
    }

    /// Returns the value, except from the keyring, which [`crate::config::keyring`] reads.
    ///
    /// # Errors
    /// The value is unavailable; the message does not contain it.
    pub(crate) fn read(&self) -> Result<Secret, String> {
        self.read_with(|name| std::env::var(name).ok())
    }

    /// Like [`ConfigValue::read`], with another environment.
    pub(crate) fn read_with(&self, env: impl Fn(&str) -> Option<String>) -> Result<Secret, String> {
        let line = |text: String| Secret::new(text.trim_end_matches(['\r', '\n']));
        match self {
            ConfigValue::Plaintext(text) => Ok(Secret::new(text.as_str())),
            ConfigValue::Env(name) => env(name)
                .map(line)
                .ok_or_else(|| format!("environment variable {name} is not set")),
            ConfigValue::File(path) => {
                file::read(path, MAX_SECRET_FILE_BYTES as u64, FilePrivacy::Secret)
                    .map(line)
                    .map_err(|why| format!("file {} {why}", path.display()))
            }
            ConfigValue::Keyring(name) => Err(format!("{name:?} in the keyring was not read")),
        }
    }

    /// Returns true if a retry may succeed: only the gateway's environment cannot change.
    pub(crate) fn can_retry(&self) -> bool {
        !matches!(self, ConfigValue::Env(_))
    }

    /// Describes the source of the value.
    pub(crate) fn describe_source(&self) -> String {
        match self {
            ConfigValue::Plaintext(_) => "a value".to_owned(),
            ConfigValue::Env(name) => format!("environment variable {name}"),
            ConfigValue::File(path) => format!("file {}", path.display()),
            ConfigValue::Keyring(name) => format!("{name:?} in the keyring"),
        }
    }
}

/// Returns the text of `{ danger_clear = "TEXT" }`, if the field has that form.
pub(super) fn marked_plaintext<'a>(
    field: &ConfigField<'a>,
) -> Option<Result<&'a str, ConfigError>> {
    let table = field.any_section("", "").ok()?;
    match table.entries().as_slice() {
        [(key, _, value)] if *key == PLAINTEXT_KEY => Some(value.text()),
        _ => None,
    }
}

/// Returns the error text for a plaintext secret.
pub(super) fn plaintext_error(why: &str) -> String {
    format!(
        "{why}, and would be in plaintext in this file; write {SECRET_ALTERNATIVES}; if it is not a secret, write {{ {PLAINTEXT_KEY} = \"…\" }}"
    )
}

/// Returns true if the name is a valid keyring entry, which no program mistakes for an option.
fn is_keyring_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/@".contains(&b);
    (1..=128).contains(&name.len())
        && name.bytes().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
