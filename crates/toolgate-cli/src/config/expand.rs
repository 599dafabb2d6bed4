//! Expansion of config values: variable references (`${NAME}`, `${NAME:-default}`) and `~` in paths.
//!
//! `$${` writes a literal `${`. Messages contain names of variables, never their values.

use super::env_name::check_env_name;
use std::{borrow::Cow, path::PathBuf};

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
pub(crate) fn sole_reference(text: &str) -> Option<&str> {
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
        return Err(malformed(&format!(
            "has \"${{{reference}}}\", which has no valid variable name"
        )));
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "refers to the environment variable {name}, which is not set; set it, or write ${{{name}:-default}}"
        )),
    }
}

fn malformed(what: &str) -> String {
    format!("{what}; write ${{NAME}}, ${{NAME:-default}}, or $${{ for a literal ${{")
}

/// Expands `~` at the start of a path to the home directory.
///
/// # Errors
/// The home directory is unknown.
pub(super) fn expand_home(path: &str) -> Result<PathBuf, String> {
    expand_home_with(path, home())
}

fn expand_home_with(path: &str, home: Option<PathBuf>) -> Result<PathBuf, String> {
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

/// Expands `~` at the start of a program.
///
/// # Errors
/// The home directory is unknown or not UTF-8.
pub(super) fn expand_program(program: &str) -> Result<String, String> {
    expand_home(program)?.into_os_string().into_string().map_err(|_| {
        "begins with ~, but the path of the home directory is not UTF-8; move the program to another directory".to_owned()
    })
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

#[cfg(test)]
#[path = "expand/tests.rs"]
mod tests;
