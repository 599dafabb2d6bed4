//! Possibly secret values and where they come from: the config, the environment, a file or the keyring.

use super::file::{self, FilePrivacy};
use std::{fmt, path::PathBuf};
use toolgate_auth::Secret;

/// Maximum size of a secret file in bytes.
pub(crate) const MAX_SECRET_FILE_BYTES: usize = 64 * 1024;

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
            ConfigValue::Env(name) => env(name).map(line).ok_or_else(|| {
                format!("the environment variable {name} is not set; set it in the environment in which toolgate starts")
            }),
            ConfigValue::File(path) => {
                file::read(path, MAX_SECRET_FILE_BYTES as u64, FilePrivacy::Secret)
                    .map(line)
                    .map_err(|why| format!("the file {} {why}", path.display()))
            }
            ConfigValue::Keyring(name) => Err(format!("internal error: the keyring entry {name:?} was not read; report this")),
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
            ConfigValue::Env(name) => format!("the environment variable {name}"),
            ConfigValue::File(path) => format!("the file {}", path.display()),
            ConfigValue::Keyring(name) => format!("the keyring entry {name:?}"),
        }
    }
}
