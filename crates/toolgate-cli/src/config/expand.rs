//! Expansion of config values: variable references (`${NAME}`, `${NAME:-default}`) and `~` in paths.
//!
//! `$${` writes a literal `${`. Messages contain names of variables, never their values.

use super::{environment::check_env_name, error::ConfigError, section::ConfigField};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

/// Start of a variable reference.
const REFERENCE_START: &str = "${";

/// Returns the value of a variable of the gateway's environment.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns true if the text has a variable reference or an escaped one.
pub(super) fn has_reference(text: &str) -> bool {
    text.contains(REFERENCE_START)
}

/// Returns the name of the variable if the text is one reference without a default, as `${NAME}`.
pub(super) fn sole_reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix(REFERENCE_START)?.strip_suffix('}')?;
    check_env_name(name).is_ok().then_some(name)
}

/// Expands the variable references of a text.
///
/// # Errors
/// A reference is malformed, or names an unset variable and has no default.
pub(super) fn expand_variables(
    text: &str,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Cow<'_, str>, String> {
    if !has_reference(text) {
        return Ok(Cow::Borrowed(text));
    }
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(REFERENCE_START) {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str(REFERENCE_START);
            rest = after;
            continue;
        }
        let Some((reference, after)) = after.split_once('}') else {
            return Err(malformed("has \"${\" without \"}\""));
        };
        expanded.push_str(before);
        expanded.push_str(&value_of(reference, &env)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(Cow::Owned(expanded))
}

/// Returns the value of `NAME` or `NAME:-default`.
fn value_of(reference: &str, env: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if check_env_name(name).is_err() {
        return Err(malformed(&format!("has \"${{{reference}}}\"")));
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "refers to environment variable {name}, which is not set; set it, or write ${{{name}:-default}}"
        )),
    }
}

fn malformed(what: &str) -> String {
    format!(
        "{what}, which is not a variable; write ${{NAME}}, ${{NAME:-default}}, or $${{ for a literal ${{"
    )
}

/// Expands `~` at the start of a path to the home directory.
///
/// # Errors
/// The home directory is unknown.
fn expand_home(path: &str, home: Option<PathBuf>) -> Result<PathBuf, String> {
    let below = match path {
        "~" => "",
        path => match path.strip_prefix("~/") {
            Some(below) => below,
            None => return Ok(PathBuf::from(path)),
        },
    };
    match home.filter(|home| home.is_absolute()) {
        Some(home) if below.is_empty() => Ok(home),
        Some(home) => Ok(home.join(below)),
        None => Err(
            "begins with ~, but HOME is not set to an absolute path; write the path without ~"
                .to_owned(),
        ),
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

impl<'a> ConfigField<'a> {
    /// Returns the text with its variables expanded.
    pub(super) fn expanded(&self) -> Result<Cow<'a, str>, ConfigError> {
        expand_variables(self.text()?, environment).map_err(|wrong| self.key_error(wrong))
    }

    /// Returns the path with its variables and `~` expanded; a relative path starts at `base`.
    pub(super) fn path(&self, base: &Path) -> Result<PathBuf, ConfigError> {
        let text = self.expanded()?;
        if text.is_empty() {
            return Err(self.key_error("is empty; write a path or remove the key"));
        }
        let path = expand_home(&text, home()).map_err(|wrong| self.key_error(wrong))?;
        Ok(base.join(path))
    }

    /// Returns the program of a command with its variables and `~` expanded.
    pub(super) fn program(&self) -> Result<String, ConfigError> {
        let path = expand_home(&self.expanded()?, home()).map_err(|wrong| self.key_error(wrong))?;
        let not_text = |_| {
            self.key_error("begins with ~, but the path of the home directory is not UTF-8; move the program to another directory")
        };
        path.into_os_string().into_string().map_err(not_text)
    }
}

#[cfg(test)]
#[path = "expand/tests.rs"]
mod tests;
