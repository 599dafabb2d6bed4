//! `toolgate connect`: puts the gateway into the file of a host.

use super::{
    CommandError, Result, data_dir::DataLocation, hook_setup, import, lasting_program, print,
};
use crate::{
    args::{ConnectOptions, ImportOptions},
    cli::output::{OutputTable, TableColumn, print_json},
    config::{ConfigSource, nearest_names},
    file_diff::unified_diff,
    hosts::{
        ConnectionRecord, ConnectionStore, HOSTS, Host, HostDocument, HostEntryValue, HostPlaces,
        HostScope, HostTarget, StoredServer, TakenServer, digest_digits, http_entry, process_entry,
    },
    runtime::base_url::BaseUrl,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{env, process::ExitCode};

/// Connects a host, or lists the hosts.
pub(super) fn run(place: &DataLocation<'_>, options: &ConnectOptions) -> Result<ExitCode> {
    let Some(id) = &options.host else {
        return list(place, options.json);
    };
    if options.hooks {
        return hook_setup::connect(place, options);
    }
    let target = target(id, options.project)?;
    let store = ConnectionStore::new(&place.data()?);
    let before = target.file.read()?;
    let mut document = target.parse(before.as_deref())?;
    let (name, file) = (&options.name, target.file.path.display());
    let stored = store.load(&target.file)?;
    let is_ours = stored.as_ref().is_some_and(|record| record.name == *name);
    let replaced = match options.replace {
        true => move_servers(place, &target, &mut document, options)?,
        false => Vec::new(),
    };
    let entry = gateway_entry(place, options, target.host)?;
    if document.has_entry(name, &entry) && replaced.is_empty() {
        eprintln!(
            "toolgate: {} is already connected: {file}",
            target.host.name
        );
        return Ok(ExitCode::SUCCESS);
    }
    if document.entry_text(name).is_some() {
        if !is_ours && !document.has_entry(name, &entry) {
            return Err(CommandError::Failure(format!(
                "{file} already has a server {name:?} that `toolgate connect` did not write; choose another name with --name, or remove that server"
            )));
        }
        document.take(name);
    }
    let created_keys = document
        .add(name, &entry)
        .map_err(|why| format!("{file} {why}; correct it"))?;
    let after = document.text();
    if options.dry_run {
        return print(&unified_diff(&file.to_string(), before.as_deref(), &after));
    }
    let change = HostChange {
        before: before.as_deref(),
        after: &after,
        created_keys,
        replaced,
    };
    let record = record(stored, &target, name, change);
    let backup = before.as_deref().filter(|_| record.is_first);
    store.save(&target.file, &record.value, backup)?;
    target.file.replace(before.as_deref(), &after)?;
    eprint!(
        "{}",
        connected_text(
            &target,
            options,
            backup.map(|_| store.backup_path(&target.file).display().to_string())
        )
    );
    Ok(ExitCode::SUCCESS)
}

/// Record to store, and whether it is the first one of the file.
struct NewRecord {
    value: ConnectionRecord,
    is_first: bool,
}

/// Change of a host's file by `connect`.
struct HostChange<'a> {
    before: Option<&'a str>,
    after: &'a str,
    /// Number of keys on the path to the servers that are new.
    created_keys: usize,
    /// Servers that go behind the gateway.
    replaced: Vec<TakenServer>,
}

/// Returns the record of a change. A second change of the same file keeps the backup of the first.
fn record(
    stored: Option<ConnectionRecord>,
    target: &HostTarget,
    name: &str,
    change: HostChange<'_>,
) -> NewRecord {
    let digest = Some(digest_digits(change.after.as_bytes()));
    let found = change.before.map(|text| digest_digits(text.as_bytes()));
    let replaced = change.replaced.into_iter().map(StoredServer::from);
    match stored {
        Some(stored) => NewRecord {
            value: ConnectionRecord {
                digest: digest.filter(|_| stored.digest.is_some() && stored.digest == found),
                created_keys: stored.created_keys.max(change.created_keys),
                name: name.to_owned(),
                replaced: stored.replaced.iter().cloned().chain(replaced).collect(),
                ..stored
            },
            is_first: false,
        },
        None => NewRecord {
            value: ConnectionRecord {
                host: target.host.id.to_owned(),
                file: target.file.path.clone(),
                name: name.to_owned(),
                existed: change.before.is_some(),
                created_keys: change.created_keys,
                digest,
                replaced: replaced.collect(),
            },
            is_first: true,
        },
    }
}

/// Imports the other servers of the file into the config, and takes those that the config has then out of the file.
fn move_servers(
    place: &DataLocation<'_>,
    target: &HostTarget,
    document: &mut HostDocument,
    options: &ConnectOptions,
) -> Result<Vec<TakenServer>> {
    let others = document.names();
    if others.iter().all(|name| *name == options.name) {
        return Ok(Vec::new());
    }
    let wanted = ImportOptions {
        files: vec![target.file.path.clone()],
        dry_run: options.dry_run,
        json: false,
        yes: !options.dry_run,
        keyring: false,
        no_start: true,
    };
    let entries = import::import(place, &wanted)?.entries;
    let of_file = entries
        .iter()
        .filter(|entry| entry.scope == Some(target.form.scope) && entry.name != options.name);
    let taken = of_file.filter_map(|entry| document.take(&entry.name));
    Ok(taken.collect())
}

fn connected_text(target: &HostTarget, options: &ConnectOptions, backup: Option<String>) -> String {
    let (host, file) = (target.host.name, target.file.path.display());
    let what = match options.http {
        true => "connects to the gateway over HTTP, so keep `toolgate serve` running",
        false => "starts the gateway",
    };
    let mut text = format!("{host} now {what}: {file}\n");
    if let Some(backup) = backup {
        text.push_str(&format!("  backup: {backup}\n"));
    }
    let scope = if options.project { " --project" } else { "" };
    text.push_str(&format!(
        "  restart {host} to apply the change; `toolgate disconnect {}{scope}` undoes it\n",
        target.host.id
    ));
    text
}

/// Returns the file of a host, by its id.
///
/// # Errors
/// The host is unknown, or has no file in that scope.
pub(super) fn target(id: &str, project: bool) -> Result<HostTarget> {
    let host = Host::find(id).ok_or_else(|| {
        let known = HOSTS.iter().map(|host| host.id);
        CommandError::Usage(format!(
            "the host {id:?} is unknown{}",
            nearest_names(id, known)
        ))
    })?;
    let scope = match project {
        true => HostScope::Project,
        false => HostScope::User,
    };
    HostTarget::find(host, scope, &host_places()?).map_err(CommandError::Usage)
}

pub(super) fn host_places() -> Result<HostPlaces> {
    let project = env::current_dir()
        .map_err(|error| format!("the current directory cannot be determined: {error}"))?;
    Ok(HostPlaces::of_this_user(project))
}

/// Returns the entry that the options describe.
fn gateway_entry(
    place: &DataLocation<'_>,
    options: &ConnectOptions,
    host: &Host,
) -> Result<HostEntryValue> {
    let config = place.config()?;
    if config.source == ConfigSource::BuiltIn {
        eprintln!(
            "toolgate: there is no config yet, so the gateway serves only the demo server; create one with `toolgate init` or `toolgate import`"
        );
    }
    if !options.http {
        let mut words = vec!["serve".to_owned(), "--stdio".to_owned()];
        words.extend(place.absolute_options());
        return Ok(process_entry(host, &lasting_program()?, &words));
    }
    if config.requires_authentication() && options.token_env.is_none() {
        return Err(CommandError::Usage(
            "the config requires a key of every caller; create one with `toolgate keys create NAME`, put it into an environment variable of the host, and name that variable with --token-env"
                .to_owned(),
        ));
    }
    let url = BaseUrl::new(&config, config.listen).endpoint();
    http_entry(host, &url, options.token_env.as_deref()).map_err(CommandError::Usage)
}

/// Host that the gateway can be connected to.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct HostOutput {
    /// Host, as `toolgate connect` takes it.
    host: &'static str,
    /// Name of the program.
    name: &'static str,
    /// True for the file of the project in the current directory (`--project`).
    project: bool,
    /// `connected`, `not connected`, `no file` or `unreadable`.
    state: &'static str,
    /// Config of the host.
    file: String,
}

/// Lists the hosts, their files and whether they are connected.
fn list(place: &DataLocation<'_>, json: bool) -> Result<ExitCode> {
    let (store, places) = (ConnectionStore::new(&place.data()?), host_places()?);
    let mut hosts = Vec::new();
    for host in HOSTS {
        for scope in [HostScope::User, HostScope::Project] {
            let Ok(target) = HostTarget::find(host, scope, &places) else {
                continue;
            };
            let (state, project) = (state(&store, &target), scope == HostScope::Project);
            if project && state == "no file" {
                continue;
            }
            hosts.push(HostOutput {
                host: host.id,
                name: host.name,
                project,
                state,
                file: target.file.path.display().to_string(),
            });
        }
    }
    if json {
        return print_json(&hosts);
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::State, TableColumn::Whole]);
    for one in &hosts {
        let label = if one.project { " --project" } else { "" };
        table.add([
            format!("{}{label}", one.host),
            one.state.to_owned(),
            one.file.clone(),
        ]);
    }
    print(&table.text())
}

/// Returns whether a host is connected, as a word for the list.
fn state(store: &ConnectionStore, target: &HostTarget) -> &'static str {
    let text = match target.file.read() {
        Ok(Some(text)) => text,
        Ok(None) => return "no file",
        Err(_) => return "unreadable",
    };
    let (Ok(document), Ok(record)) = (target.parse(Some(&text)), store.load(&target.file)) else {
        return "unreadable";
    };
    match record {
        Some(record) if document.entry_text(&record.name).is_some() => "connected",
        _ => "not connected",
    }
}
