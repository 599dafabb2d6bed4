//! Server ids, and prefixes of tool names for clients.

use std::collections::HashSet;

/// Checks a prefix.
pub(super) fn check_prefix_text(prefix: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match prefix.len() <= 32 && prefix.chars().all(plain) {
        true => Ok(()),
        false => Err(format!(
            "is {prefix:?}; write at most 32 letters, digits and \"-\""
        )),
    }
}

/// Rejects prefixes with which tools of two servers could get the same name. The list has the id and prefix of each
/// server.
///
/// # Errors
/// The id of the server and the message.
pub(super) fn check_prefixes(servers: &[(&str, &str)]) -> Result<(), (String, String)> {
    for (at, (id, prefix)) in servers.iter().enumerate() {
        if prefix.is_empty() && servers.len() > 1 {
            let text = format!(
                "[server.{id}] has an empty prefix, which is only allowed for a single server; remove the key \"prefix\""
            );
            return Err(((*id).to_owned(), text));
        }
        if let Some((other, _)) = servers[..at].iter().find(|(_, other)| other == prefix) {
            let text = format!(
                "[server.{other}] and [server.{id}] have the same prefix {prefix:?}; give one of them another prefix"
            );
            return Err(((*id).to_owned(), text));
        }
    }
    Ok(())
}

/// Checks a server name of the command line.
///
/// # Errors
/// The message says what a name may contain, and gives a similar one.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    validate_id(name).map_err(|better| {
        format!("the server name {name:?} must consist of 1 to 32 characters from a-z, 0-9 and \"-\"; write for example {better}")
    })
}

/// Checks the name of a view.
pub(super) fn check_view(name: &str) -> Result<(), String> {
    validate_id(name).map_err(|better| {
        format!("the view name {name:?} must consist of 1 to 32 characters from a-z, 0-9 and \"-\"; write for example [view.{better}]")
    })
}

/// Checks a server id.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    validate_id(id).map_err(|better| {
        format!("the server id {id:?} must consist of 1 to 32 characters from a-z, 0-9 and \"-\"; write for example [server.{better}]")
    })
}

/// Checks an id. The error is a similar valid one.
fn validate_id(id: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=32).contains(&id.len()) && id.chars().all(plain) {
        return Ok(());
    }
    let better = normalize_id(id).chars().take(32).collect::<String>();
    let better = better.trim_matches('-');
    Err(if better.is_empty() { "files" } else { better }.to_owned())
}

/// Normalizes a name to a server id: lower case, `-` for other characters. The result may be empty or too long.
pub(crate) fn normalize_id(name: &str) -> String {
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
pub(super) fn duplicate_id<'i>(ids: impl IntoIterator<Item = &'i str>) -> Option<&'i str> {
    let mut seen = HashSet::new();
    ids.into_iter().find(|id| !seen.insert(*id))
}
