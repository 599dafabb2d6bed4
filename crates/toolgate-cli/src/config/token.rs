//! Bearer token of the clients and the gateway's OAuth client secrets: sources and length check.

use super::{
    config_value::ConfigValue,
    error::ConfigError,
    reader::{ConfigTree, SettingPath},
    value_source::SecretSource,
};
use toolgate_auth::Secret;

/// Minimum length of a token in characters.
const MIN_TOKEN_CHARS: usize = 16;
/// Maximum length of a token in characters.
const MAX_TOKEN_CHARS: usize = 4096;

/// Source of a token or client secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TokenSource {
    pub(crate) value: ConfigValue,
    /// Position in the config, as `file:line:column`.
    place: String,
}

impl TokenSource {
    /// Returns the source with its position.
    pub(super) fn new(
        source: SecretSource,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> TokenSource {
        TokenSource {
            value: source.0,
            place: tree.position(path),
        }
    }

    /// Returns a secret of another service, of any length and form.
    ///
    /// # Errors
    /// The secret is unavailable. The message does not contain it.
    pub(crate) fn any_value(&self, read: Result<Secret, String>) -> Result<Secret, ConfigError> {
        read.map_err(|text| ConfigError::new(&self.place, text))
    }

    /// Checks the token that was read from the source.
    ///
    /// # Errors
    /// The token is unavailable, too short, too long, or invalid in a header. The message does not contain the token.
    pub(crate) fn check_value(&self, read: Result<Secret, String>) -> Result<Secret, ConfigError> {
        let wrong = |text| ConfigError::new(&self.place, text);
        let token = read.map_err(wrong)?;
        let from = |text: String| wrong(format!("{} {text}", self.value.describe_source()));
        check_token_text(token.reveal()).map_err(from)?;
        Ok(token)
    }
}

fn check_token_text(text: &str) -> Result<(), String> {
    if !(MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&text.len()) {
        return Err(format!(
            "has a value that is {} bytes long, but a token or client secret must be {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} bytes long; `openssl rand -hex 32` generates a token",
            text.len()
        ));
    }
    match text.bytes().all(|b| b.is_ascii_graphic()) {
        true => Ok(()),
        false => Err("has a value with whitespace or other characters that a header cannot contain; use letters and digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_env(value: Option<&str>) -> Result<String, String> {
        let source = TokenSource {
            value: ConfigValue::Env("T".to_owned()),
            place: "f:1:1".to_owned(),
        };
        let read = source.value.read_with(|_| value.map(str::to_owned));
        let token = source.check_value(read);
        token
            .map(|token| token.reveal().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn from_the_environment() {
        assert_eq!(
            of_env(Some("0123456789abcdef\n")),
            Ok("0123456789abcdef".to_owned())
        );
        let unset = "f:1:1: the environment variable T is not set; set it in the environment in which toolgate starts";
        assert_eq!(of_env(None), Err(unset.to_owned()));
        for bad in [
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdefé",
            "",
        ] {
            let error = of_env(Some(bad)).unwrap_err();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
    }
}
