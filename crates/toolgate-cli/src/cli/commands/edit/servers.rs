//! `toolgate remove`, `enable` and `disable`.

use super::{
    super::{CommandError, DataLocation, Result, print},
    reload_notice,
};
use crate::{
    args::ServerNames,
    config::{Config, ConfigRule, ConfigValue, NameGlob, ServerSettings},
    config_edit::ConfigDocument,
};
use std::{path::Path, process::ExitCode};
use toolgate_core::visible_line;

/// Removes servers.
pub(in crate::cli::commands) fn remove(
    place: &DataLocation<'_>,
    wanted: &ServerNames,
) -> Result<ExitCode> {
    let path = place.config_path()?;
    let mut config = open(&path)?;
    // If the config is invalid as it is, its save says so.
    let before = Config::check_text(&path, config.text()).ok();
    if let Some(naming) = before
        .as_ref()
        .and_then(|before| naming_rules(before, &wanted.names))
    {
        return Err(CommandError::Failure(format!(
            "nothing was removed, because these rules name a server, and a rule that names a missing server is an error: {naming}; change or remove the rules first, or keep the settings of the server with `toolgate disable {}{}`",
            wanted.names.join(" "),
            place.option_words()
        )));
    }
    for name in deduplicated(&wanted.names) {
        config.remove_server(name)?;
    }
    if config.server_names().is_empty() {
        return Err(CommandError::Failure(format!(
            "the config would have no server, but it needs at least one; disable it instead with `toolgate disable {}{}`, or add another one first",
            wanted.names.join(" "),
            place.option_words()
        )));
    }
    let after = config.save()?;
    let file = visible_line(&path.display().to_string());
    let mut text = String::new();
    for name in deduplicated(&wanted.names) {
        text.push_str(&format!("removed the server {name} from {file}\n"));
    }
    for secret in before
        .iter()
        .flat_map(|before| unused_secret_files(before, &wanted.names, &after))
    {
        let secret = visible_line(&secret);
        text.push_str(&format!(
            "no server uses the file {secret} now; delete it if nothing else does\n"
        ));
    }
    text.push_str(&reload_notice::text(place, &path, &after)?);
    print(&text)
}

/// Enables or disables servers.
pub(in crate::cli::commands) fn enable(
    place: &DataLocation<'_>,
    wanted: &ServerNames,
    enabled: bool,
) -> Result<ExitCode> {
    let path = place.config_path()?;
    let mut config = open(&path)?;
    let (mut text, mut changed) = (String::new(), false);
    let word = if enabled { "enabled" } else { "disabled" };
    for name in deduplicated(&wanted.names) {
        match config.set_enabled(name, enabled)? {
            true => text.push_str(&format!("{word} the server {name}\n")),
            false => text.push_str(&format!("the server {name} is {word} already\n")),
        }
        changed |= text.ends_with(&format!("{word} the server {name}\n"));
    }
    let after = config.save()?;
    if changed {
        text.push_str(&reload_notice::text(place, &path, &after)?);
    }
    print(&text)
}

fn open(path: &Path) -> Result<ConfigDocument> {
    if path.symlink_metadata().is_err() {
        return Err(CommandError::Failure(format!(
            "{} does not exist; create it with `toolgate init` or `toolgate add`, or pass --config FILE",
            path.display()
        )));
    }
    Ok(ConfigDocument::open(path)?)
}

fn deduplicated(names: &[String]) -> impl Iterator<Item = &str> {
    let first = |(at, name): &(usize, &String)| !names[..*at].contains(name);
    names
        .iter()
        .enumerate()
        .filter(first)
        .map(|(_, name)| name.as_str())
}

/// Returns the rules that name one of the servers, with their lines.
fn naming_rules(config: &Config, servers: &[String]) -> Option<String> {
    let named = |glob: &NameGlob| servers.iter().any(|name| glob.server() == Some(name));
    let rules = config.rules.iter();
    let rules = rules.filter(|rule| rule.tools.iter().chain(&rule.except).any(named));
    let rules: Vec<String> = rules.map(ConfigRule::label).collect();
    (!rules.is_empty()).then(|| rules.join(", "))
}

/// Returns the secret files of removed servers that no other server uses.
fn unused_secret_files(before: &Config, removed: &[String], after: &Config) -> Vec<String> {
    let files = |server: &ServerSettings| -> Vec<String> {
        let headers = server.address.iter().flat_map(|address| &address.headers);
        let values = server.env.iter().chain(headers);
        let file = |(_, value): &(String, ConfigValue)| match value {
            ConfigValue::File(path) => Some(path.display().to_string()),
            _ => None,
        };
        values.filter_map(file).collect()
    };
    let used: Vec<String> = after.servers.iter().flat_map(files).collect();
    let gone = before
        .servers
        .iter()
        .filter(|server| removed.contains(&server.id));
    gone.flat_map(files)
        .filter(|file| !used.contains(file))
        .collect()
}
