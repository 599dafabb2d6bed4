//! `toolgate disconnect`: removes the gateway from the file of a host.

use super::{CommandError, Result, connect, data_dir::DataLocation, hook_setup, print};
use crate::{
    args::DisconnectOptions,
    file_diff::unified_diff,
    hosts::{ConnectionRecord, ConnectionStore, HostTarget, digest_digits},
};
use std::{fs, process::ExitCode};

/// Change of a host's file by `disconnect`.
enum FileChange {
    /// Writes the file as it was before `connect`.
    Restore(String),
    /// Deletes the file, which `connect` created.
    Delete,
    /// Removes the entry, because something else changed the file since.
    Edit(String),
}

/// Disconnects a host.
pub(super) fn run(place: &DataLocation<'_>, options: &DisconnectOptions) -> Result<ExitCode> {
    if options.hooks {
        return hook_setup::disconnect(place, options);
    }
    let target = connect::target(&options.host, options.project)?;
    let store = ConnectionStore::new(&place.data()?);
    remove_entry(&store, &target, &options.name, options.dry_run)
}

/// Removes the gateway's entry from a file: that of the record, else the one with this name.
pub(super) fn remove_entry(
    store: &ConnectionStore,
    target: &HostTarget,
    name: &str,
    dry_run: bool,
) -> Result<ExitCode> {
    let (host, file) = (target.host.name, target.file.path.display());
    let record = store.load(&target.file)?;
    let Some(before) = target.file.read()? else {
        store.remove(&target.file)?;
        eprintln!("{host} is not connected: {file} does not exist");
        return Ok(ExitCode::SUCCESS);
    };
    let change = change(store, target, record.as_ref(), name, &before)?;
    let after = match &change {
        FileChange::Restore(text) | FileChange::Edit(text) => text.as_str(),
        FileChange::Delete => "",
    };
    if dry_run {
        return print(&unified_diff(&file.to_string(), Some(&before), after));
    }
    let done = match &change {
        FileChange::Delete => {
            fs::remove_file(&target.file.path)
                .map_err(|error| format!("{file} cannot be deleted: {error}"))?;
            format!(
                "{host} no longer uses the gateway: {file}, which `toolgate connect` had created, is deleted"
            )
        }
        FileChange::Restore(text) => {
            target.file.replace(Some(&before), text)?;
            format!("{host} no longer uses the gateway: {file} is as it was before")
        }
        FileChange::Edit(text) => {
            target.file.replace(Some(&before), text)?;
            format!(
                "{host} no longer uses the gateway: its entry is removed from {file}, and the changes that others made since then stay"
            )
        }
    };
    store.remove(&target.file)?;
    eprintln!("{done}\n  restart {host} to apply the change");
    if record.is_some_and(|record| !record.replaced.is_empty()) {
        eprintln!(
            "  the servers that are back in {file} also stay in the config; `toolgate remove NAME` removes one"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn change(
    store: &ConnectionStore,
    target: &HostTarget,
    record: Option<&ConnectionRecord>,
    name: &str,
    before: &str,
) -> Result<FileChange> {
    let digest = digest_digits(before.as_bytes());
    if let Some(record) = record
        && record.digest.as_ref() == Some(&digest)
    {
        return Ok(match record.existed {
            true => FileChange::Restore(store.backup(&target.file)?),
            false => FileChange::Delete,
        });
    }
    let mut document = target.parse(Some(before))?;
    let name = record.map_or(name, |record| &record.name);
    let taken = document.take(name);
    if taken.is_none() && record.is_none() {
        return Err(CommandError::Failure(format!(
            "{} is not connected: {} has no server {name:?}",
            target.host.name,
            target.file.path.display()
        )));
    }
    if record.is_none() && !taken.is_some_and(|taken| taken.text.contains("toolgate")) {
        return Err(CommandError::Failure(format!(
            "the server {name:?} in {} does not start toolgate, and stays; remove it yourself",
            target.file.path.display()
        )));
    }
    if let Some(record) = record {
        for server in record.replaced_servers() {
            document.put_back(&server)?;
        }
        document.remove_empty(record.created_keys);
    }
    Ok(FileChange::Edit(document.text()))
}
