//! Plan of an import: the changed config, the secrets to store, and the notes for the operator.

use super::{
    host_entry::HostEntry,
    host_files::FoundEntries,
    planned_server::PlannedServer,
    secret_places::{PlannedSecret, SecretPlaces, unique_id},
};
use crate::{
    config::{Config, ConfigValue, ServerSettings},
    config_edit::joined,
    hosts::HostScope,
};
use std::path::Path;

/// Config before the import.
pub(crate) struct ConfigBefore {
    /// Text of the file.
    pub(crate) text: String,
    /// The config itself.
    pub(crate) config: Config,
}

/// Plan of an import.
#[derive(Default)]
pub(crate) struct ImportPlan {
    /// Sections to append to the config.
    pub(crate) sections: String,
    /// Text of the config after the import.
    pub(crate) text: String,
    /// Servers to add.
    pub(crate) servers: Vec<PlannedServer>,
    /// Places of the entries of each server, as shown.
    origins: Vec<Vec<String>>,
    /// Notes for the operator.
    pub(crate) notes: Vec<String>,
    /// Number of entries that the config already has.
    pub(crate) known: usize,
    /// Entries that the config has after the import.
    pub(crate) imported: Vec<ImportedEntry>,
}

/// Entry of a host that the config has after an import.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ImportedEntry {
    /// Name of the server in the host.
    pub(crate) name: String,
    /// Scope of the entry; `None` in a file of an unknown host.
    pub(crate) scope: Option<HostScope>,
}

impl ImportPlan {
    /// Plans the import of entries into the config at `target`.
    ///
    /// # Errors
    /// The config cannot have more sections; the text says why.
    pub(crate) fn new(
        found: FoundEntries,
        before: Option<&ConfigBefore>,
        target: &Path,
        places: &SecretPlaces<'_>,
    ) -> Result<ImportPlan, String> {
        let mut plan = ImportPlan {
            notes: found.notes,
            ..ImportPlan::default()
        };
        for entry in &found.entries {
            if let Err(why) = plan.add(entry, before, target, places) {
                let position = &entry.place.position;
                plan.notes.push(format!(
                    "could not take {:?} ({position}): {why}",
                    entry.name
                ));
            }
        }
        let before = before
            .map(|before| before.text.as_str())
            .unwrap_or_default();
        plan.sections = plan.joined_sections();
        if !plan.servers.is_empty() {
            plan.text = joined(before, &plan.sections);
            Config::check_text(target, &plan.text)
                .map_err(|error| format!(
                    "the servers cannot be added to the config; write its servers and rules as sections, [server.NAME] and [[rule]]: {error}"
                ))?;
        }
        Ok(plan)
    }

    /// Returns the secrets to store.
    pub(crate) fn new_secrets(&self) -> impl Iterator<Item = (&PlannedSecret, &str)> {
        let all = self.servers.iter().flat_map(|server| &server.secrets);
        all.filter(|secret| !secret.exists)
            .filter_map(|secret| Some((secret, secret.value.as_deref()?)))
    }

    fn add(
        &mut self,
        entry: &HostEntry,
        before: Option<&ConfigBefore>,
        target: &Path,
        places: &SecretPlaces<'_>,
    ) -> Result<(), String> {
        if entry.is_disabled {
            return Err("it is disabled in the host; enable it there to import it".to_owned());
        }
        let wanted = unique_id(&entry.name, |_| false);
        let planned = PlannedServer::plan(entry, &wanted, places, target)?;
        let default = Config::demo().map_err(|error| error.to_string());
        let listen = match before {
            Some(before) => before.config.listen,
            None => default?.listen,
        };
        if planned.settings.is_own_entry(target, listen) {
            self.notes.push(format!(
                "left out {:?} ({}): it is this gateway itself",
                entry.name, entry.place.position
            ));
            return Ok(());
        }
        let position = &entry.place.position;
        let existing = before.map(|before| before.config.servers.as_slice());
        for known in existing.unwrap_or_default() {
            let is_same = is_same_server(known, &planned);
            if is_same
                && (is_variant(&known.id, &wanted)
                    || are_compatible(&known_values(known), &planned.values))
            {
                self.known += 1;
                self.imported.push(imported(entry));
                return Ok(());
            }
        }
        for (at, other) in self.servers.iter().enumerate() {
            let is_same = is_same_server(&other.settings, &planned);
            let has_same_values = are_compatible(&other.values, &planned.values);
            if is_same && (other.id == wanted || has_same_values) {
                if !has_same_values {
                    self.notes.push(format!(
                        "{:?} ({position}): merged with the server {:?}, whose env or headers differ and are kept",
                        entry.name, other.id
                    ));
                }
                self.origins[at].push(origin(entry));
                self.imported.push(imported(entry));
                return Ok(());
            }
        }
        let is_taken = |id: &str| {
            let known = existing.unwrap_or_default().iter();
            let mut known = known.flat_map(|server| [&server.id, &server.prefix]);
            known.any(|known| known == id) || self.servers.iter().any(|server| server.id == id)
        };
        let id = unique_id(&entry.name, is_taken);
        let planned = match id == wanted {
            true => planned,
            false => {
                self.notes.push(format!(
                    "{:?} ({position}): becomes the server {id:?}, because another server has the ID {wanted:?}",
                    entry.name
                ));
                PlannedServer::plan(entry, &id, places, target)?
            }
        };
        self.notes.extend(planned.notes.iter().cloned());
        self.servers.push(planned);
        self.origins.push(vec![origin(entry)]);
        self.imported.push(imported(entry));
        Ok(())
    }

    /// Returns the sections and rules of all servers.
    fn joined_sections(&self) -> String {
        let section = |(server, origins): (&PlannedServer, &Vec<String>)| {
            let origins = origins.join(", ");
            let section = format!("# Imported from {origins}\n{}", server.section);
            match server.rules.as_str() {
                "" => section,
                rules => joined(&section, rules),
            }
        };
        let all = self.servers.iter().zip(&self.origins).map(section);
        all.reduce(|before, section| joined(&before, &section))
            .unwrap_or_default()
    }
}

fn imported(entry: &HostEntry) -> ImportedEntry {
    ImportedEntry {
        name: entry.name.clone(),
        scope: entry.place.scope,
    }
}

/// Returns the host and the file of an entry, for a comment.
fn origin(entry: &HostEntry) -> String {
    let plain = |text: &str| text.replace(char::is_control, "?");
    match entry.place.host {
        Some(host) => format!("{} ({})", host.name, plain(&entry.place.file)),
        None => plain(&entry.place.file),
    }
}

/// Programs that run a package or an image, which is the same in every working directory.
const PACKAGE_RUNNERS: [&str; 6] = ["npx", "bunx", "uvx", "pipx", "docker", "podman"];

/// Returns true if two servers have the same command or URL. The option that skips the question of a package runner
/// does not matter.
fn is_same_server(known: &ServerSettings, planned: &PlannedServer) -> bool {
    let new = &planned.settings;
    match (&known.address, &new.address) {
        (Some(known), Some(new)) => {
            known.url.trim_end_matches('/') == new.url.trim_end_matches('/')
        }
        (None, None) => {
            let words = command_words(new);
            command_words(known) == words && is_same_directory(known, planned, &words)
        }
        _ => false,
    }
}

fn command_words(server: &ServerSettings) -> Vec<&str> {
    let words = server.command.iter().map(String::as_str);
    words
        .filter(|word| !matches!(*word, "-y" | "--yes"))
        .collect()
}

/// Returns true if two servers with the same command do not differ by their working directories.
fn is_same_directory(known: &ServerSettings, planned: &PlannedServer, words: &[&str]) -> bool {
    let is_relative = words.iter().any(|word| word.starts_with('.'));
    let is_free = !planned.has_directory && !is_relative;
    match (&known.cwd, &planned.settings.cwd) {
        (None, None) => true,
        (Some(known), Some(new)) if known == new => true,
        (Some(_), Some(_)) => {
            is_free
                && words
                    .first()
                    .is_some_and(|program| PACKAGE_RUNNERS.contains(program))
        }
        _ => is_free,
    }
}

/// Returns true if an ID is the wanted one, or the wanted one with a number.
fn is_variant(id: &str, wanted: &str) -> bool {
    let rest = id.strip_prefix(wanted);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('-').unwrap_or(rest);
        number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the values of a server of the config, where they are known.
fn known_values(server: &ServerSettings) -> Vec<(String, Option<String>)> {
    let headers = server.address.iter().flat_map(|address| &address.headers);
    let value = |(name, value): &(String, ConfigValue)| {
        let value = value.read().ok();
        (name.clone(), value.map(|secret| secret.reveal().to_owned()))
    };
    let mut values: Vec<_> = server.env.iter().chain(headers).map(value).collect();
    values.sort();
    values
}

/// Returns true if both have the same names, and no known values that differ.
fn are_compatible(one: &[(String, Option<String>)], two: &[(String, Option<String>)]) -> bool {
    let mut pairs = one.iter().zip(two);
    let fit = pairs.all(|((name, value), (other_name, other_value))| {
        let are_known = value.is_some() && other_value.is_some();
        name == other_name && (!are_known || value == other_value)
    });
    fit && one.len() == two.len()
}
