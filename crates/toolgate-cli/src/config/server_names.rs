//! Server ids, and prefixes of tool names for clients.

use super::{error::ConfigError, section::ConfigField, server::ServerSettings};
use std::collections::HashSet;

/// Reads `prefix`.
pub(super) fn read_prefix(field: &ConfigField<'_>) -> Result<String, ConfigError> {
    let prefix = field.text()?;
    let plain = prefix
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-')
        && prefix.len() <= 32;
    match plain {
        true => Ok(prefix.to_owned()),
        false => Err(field.key_error(format!(
            "is {prefix:?}; write at most 32 letters, digits and \"-\""
        ))),
    }
}

/// Rejects a prefix with which tools of two servers could get the same name.
pub(super) fn check_prefix(server: &ServerSettings, all: &[ServerSettings]) -> Result<(), String> {
    if server.prefix.is_empty() && all.len() > 1 {
        return Err(format!(
            "[server.{}] has an empty prefix, which is only allowed for a single server; remove it",
            server.id
        ));
    }
    let other = all
        .iter()
        .take_while(|other| other.id != server.id)
        .find(|other| other.prefix == server.prefix);
    match other {
        Some(other) => Err(format!(
            "[server.{}] and [server.{}] have the same prefix {:?}; give one of them another",
            other.id, server.id, server.prefix
        )),
        None => Ok(()),
    }
}

/// Checks a server id.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=32).contains(&id.len()) && id.chars().all(plain) {
        return Ok(());
    }
    let better = normalize_id(id).chars().take(32).collect::<String>();
    let better = if better.is_empty() { "files" } else { &better };
    Err(format!(
        "server id {id:?} is not 1 to 32 of a-z, 0-9 and \"-\"; write [server.{better}]"
    ))
}

/// Normalizes a name to a server id: lower case, `-` for other characters. The result may be empty or too long.
pub(super) fn normalize_id(name: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars()
        .map(letter)
        .collect::<String>()
        .trim_matches('-')
        .to_owned()
}

/// Returns an id that two servers share.
pub(super) fn duplicate_id(servers: &[ServerSettings]) -> Option<&str> {
    let mut seen = HashSet::new();
    servers
        .iter()
        .map(|server| server.id.as_str())
        .find(|id| !seen.insert(*id))
}
