//! `toolgate uninstall`: lists Toolgate's files, and removes the parts that the operator names.

mod inventory;
mod output;

use super::{
    CommandError, DataLocation, Result, confirm::confirm, disconnect, explain::runtime, hook_setup,
    own_program, print, service,
};
use crate::{
    args::{UninstallOptions, UninstallPart},
    cli::{output::print_json, server_start::start_guardian},
    config::keyring::delete_secret,
    hosts::{ConnectionRecord, ConnectionStore, EditedFile, HostTarget},
    operator::control::GatewaySockets,
};
use inventory::Inventory;
pub(crate) use output::UninstallOutput;
use std::{fs, io, path::Path, process::ExitCode, time::Duration};

/// Time to delete an entry of the keyring, which may ask for its password.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(60);
/// Error if nobody can be asked.
const NO_TERMINAL: &str = "nothing was removed, because there is no terminal to ask on; pass --yes";

/// Lists the parts, or removes some. Exit code 1 if something could not be removed.
pub(super) fn run(place: &DataLocation<'_>, wanted: &UninstallOptions) -> Result<ExitCode> {
    let found = Inventory::find(place)?;
    if wanted.parts.is_empty() {
        let program = own_program()?;
        if wanted.json {
            return print_json(&found.output(program));
        }
        return print(&format!(
            "program  {program}: remove it with the tool that installed it, or delete the file\n{}\n\
             `toolgate uninstall PART...` removes parts: hosts, service, keyring, config, data, or all\n",
            found.list(&UninstallPart::ALL)
        ));
    }
    let parts: Vec<UninstallPart> = UninstallPart::ALL
        .into_iter()
        .filter(|part| wanted.parts.contains(part) || wanted.parts.contains(&UninstallPart::All))
        .collect();
    let needs_config = [UninstallPart::Keyring, UninstallPart::Config];
    if found.has_invalid_config && needs_config.iter().any(|part| parts.contains(part)) {
        return Err(CommandError::Usage(
            "nothing was removed: the config is invalid, so the keyring entries and secret files that it names are unknown; correct the config, or name only other parts: hosts, service, data"
                .to_owned(),
        ));
    }
    // A gateway would write its files again.
    let stops_service = parts.contains(&UninstallPart::Service) && found.unit.is_some();
    if parts.contains(&UninstallPart::Data) && !stops_service {
        no_gateway_runs(&found.data)?;
    }
    print(&found.list(&parts))?;
    if !wanted.yes && !confirm("Remove these?", NO_TERMINAL)? {
        return print("nothing was removed\n");
    }
    let mut failed = false;
    for part in parts {
        // The data directory has the backups of the hosts' files, and the config the servers that moved behind the gateway.
        if failed && matches!(part, UninstallPart::Config | UninstallPart::Data) {
            eprintln!(
                "toolgate: kept the part {}, because of the failure",
                part.name()
            );
            continue;
        }
        for why in remove(part, &found) {
            failed = true;
            eprintln!("toolgate: {why}");
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Fails if a gateway runs on the data directory.
pub(super) fn no_gateway_runs(data: &Path) -> std::result::Result<(), String> {
    if !data.exists() || GatewaySockets::find_optional(data)?.is_none() {
        return Ok(());
    }
    Err(format!(
        "a gateway is running on the data directory {}; stop it, then run the command again",
        data.display()
    ))
}

/// Removes a part, and returns what could not be removed.
fn remove(part: UninstallPart, found: &Inventory) -> Vec<String> {
    match part {
        UninstallPart::Hosts => {
            let store = ConnectionStore::new(&found.data);
            let removed = found.connections.iter();
            removed
                .filter_map(|record| failure(disconnect_host(&store, record)))
                .collect()
        }
        UninstallPart::Service => found
            .unit
            .iter()
            .filter_map(|_| failure(service::uninstall_user_service()))
            .collect(),
        UninstallPart::Keyring => remove_keyring_entries(&found.keyring),
        UninstallPart::Config => {
            let failures = found
                .config
                .iter()
                .filter_map(|file| delete(file))
                .collect();
            for directory in found.config_directories() {
                // Other files may be in it.
                let _ = fs::remove_dir(directory);
            }
            failures
        }
        UninstallPart::Data => match no_gateway_runs(&found.data) {
            Ok(()) => remove_data(found),
            Err(why) => vec![why],
        },
        UninstallPart::All => Vec::new(),
    }
}

fn failure(outcome: Result<ExitCode>) -> Option<String> {
    match outcome {
        Ok(_) => None,
        Err(CommandError::Usage(why) | CommandError::Failure(why)) => Some(why),
    }
}

fn disconnect_host(store: &ConnectionStore, record: &ConnectionRecord) -> Result<ExitCode> {
    if let Some(host) = inventory::hook_host(record) {
        let file = EditedFile {
            host: host.id(),
            path: record.file.clone(),
        };
        return hook_setup::remove_hooks(store, host, &file, false);
    }
    let target = HostTarget::of_record(record).ok_or_else(|| {
        format!(
            "{} does not read {}; remove the entry {:?} from it yourself",
            record.host,
            record.file.display(),
            record.name
        )
    })?;
    disconnect::remove_entry(store, &target, &record.name, false)
}

fn remove_keyring_entries(names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let (guardian, runtime) = match (start_guardian(), runtime()) {
        (Ok(guardian), Ok(runtime)) => (guardian, runtime),
        (Err(why), _) => return vec![why],
        (_, Err(error)) => return failure(Err(error)).into_iter().collect(),
    };
    let deleted = names
        .iter()
        .map(|name| delete_secret(name, &guardian, KEYRING_TIMEOUT));
    deleted
        .filter_map(|deleted| runtime.block_on(deleted).err())
        .collect()
}

/// Removes the files of the gateway. Other files of the directory stay, and so does a directory that has some.
fn remove_data(found: &Inventory) -> Vec<String> {
    let hold = found.data.join("audit/hold");
    if hold.exists() {
        return vec![format!(
            "kept the data directory: {} forbids deleting records; delete that file first",
            hold.display()
        )];
    }
    let mut failures: Vec<String> = found
        .data_entries
        .iter()
        .filter_map(|path| delete(path))
        .collect();
    if let Err(error) = fs::remove_dir(&found.data)
        && error.kind() == io::ErrorKind::DirectoryNotEmpty
    {
        failures.push(format!(
            "kept {}: it contains files that toolgate did not write",
            found.data.display()
        ));
    }
    failures
}

/// Deletes a file or a directory, and returns why that failed.
fn delete(path: &Path) -> Option<String> {
    let deleted = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    deleted
        .err()
        .map(|error| format!("{} cannot be deleted: {error}", path.display()))
}

impl UninstallPart {
    /// Returns the name on the command line.
    fn name(self) -> &'static str {
        match self {
            UninstallPart::Hosts => "hosts",
            UninstallPart::Service => "service",
            UninstallPart::Keyring => "keyring",
            UninstallPart::Config => "config",
            UninstallPart::Data => "data",
            UninstallPart::All => "all",
        }
    }

    /// The parts, in the order of their removal: disconnecting needs the data directory.
    const ALL: [UninstallPart; 5] = [
        UninstallPart::Hosts,
        UninstallPart::Service,
        UninstallPart::Keyring,
        UninstallPart::Config,
        UninstallPart::Data,
    ];
}
