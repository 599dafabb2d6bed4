//! Files of an installation.

use super::super::{DataLocation, Result, absolute, service};
use crate::{
    args::UninstallPart,
    config::{Config, ConfigValue, paths},
    hosts::{ConnectionRecord, ConnectionStore, HookHost},
    import::secret_places::SECRETS_DIRECTORY,
};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Files and directories that the gateway and the commands write into the data directory, each with the form of its own
/// files.
const DATA_ENTRIES: &[(&str, OwnFiles)] = &[
    ("audit", OwnFiles::Marked("mac.key")),
    ("audit-index.sqlite", OwnFiles::Itself),
    ("audit-index.sqlite-shm", OwnFiles::Itself),
    ("audit-index.sqlite-wal", OwnFiles::Itself),
    ("checkpoints", OwnFiles::Ends(&[".jsonl"])),
    ("config-versions", OwnFiles::Ends(&[".toml"])),
    ("grants", OwnFiles::Begins("grants.")),
    ("hosts", OwnFiles::Ends(&[".json", ".backup"])),
    ("logs", OwnFiles::Ends(&[".log", ".log.1"])),
    ("outbox", OwnFiles::Ends(STORE_FILE_ENDS)),
    ("run", OwnFiles::Ends(&[".sock"])),
    ("shared-store", OwnFiles::Itself),
    ("state", OwnFiles::Ends(STORE_FILE_ENDS)),
    ("tasks", OwnFiles::Ends(STORE_FILE_ENDS)),
];

/// Ends of the names of the files of a store. Earlier versions wrote the last four.
const STORE_FILE_ENDS: &[&str] = &[
    ".sqlite",
    ".sqlite-wal",
    ".sqlite-shm",
    ".lock",
    ".jsonl",
    ".jsonl.migrating",
    ".jsonl.migrated",
    ".tmp",
];

/// Files that toolgate writes into a directory.
#[derive(Clone, Copy, Debug)]
enum OwnFiles {
    /// The entry is a file.
    Itself,
    /// Any file, if the directory has one of this name.
    Marked(&'static str),
    /// Files whose names begin so.
    Begins(&'static str),
    /// Files whose names end so.
    Ends(&'static [&'static str]),
}

impl OwnFiles {
    /// Returns true if a directory has no files of others. The data directory may be any directory of the operator, and
    /// these names are common.
    fn fill(self, path: &Path) -> bool {
        let names = || {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        match self {
            OwnFiles::Itself => path.is_file(),
            OwnFiles::Marked(marker) => path.join(marker).is_file(),
            OwnFiles::Begins(start) => names().all(|name| name.starts_with(start)),
            OwnFiles::Ends(ends) => names().all(|name| ends.iter().any(|end| name.ends_with(end))),
        }
    }
}

/// JSON Schema of the config, which `toolgate init` writes beside it.
const SCHEMA_FILE_NAME: &str = "toolgate.schema.json";

/// Parts that exist.
pub(super) struct Inventory {
    /// Connected hosts, and their hooks.
    pub(super) connections: Vec<ConnectionRecord>,
    /// Unit of the service.
    pub(super) unit: Option<PathBuf>,
    /// Entries of the keyring.
    pub(super) keyring: Vec<String>,
    /// True if the config is invalid, so that its keyring entries and secret files are unknown.
    pub(super) has_invalid_config: bool,
    /// Config and the files beside it.
    pub(super) config: Vec<PathBuf>,
    /// Data directory.
    pub(super) data: PathBuf,
    /// Files and directories of the gateway in it.
    pub(super) data_entries: Vec<PathBuf>,
}

impl Inventory {
    pub(super) fn find(place: &DataLocation<'_>) -> Result<Inventory> {
        let data = place.data()?;
        let file = place.config.map(|file| PathBuf::from(absolute(file)));
        let file = file.or_else(paths::default_config);
        // The files of a config that is invalid are unknown, and stay.
        let config = place.config().ok();
        let in_data = DATA_ENTRIES
            .iter()
            .map(|(name, own)| (data.join(name), own));
        Ok(Inventory {
            connections: ConnectionStore::new(&data).records()?,
            unit: service::user_unit_file().filter(|unit| unit.exists()),
            keyring: config.as_ref().map(keyring_entries).unwrap_or_default(),
            has_invalid_config: file.is_some() && config.is_none(),
            config: file
                .map(|file| config_files(&file, config.as_ref()))
                .unwrap_or_default(),
            data_entries: in_data
                .filter(|(path, own)| path.symlink_metadata().is_ok() && own.fill(path))
                .map(|(path, _)| path)
                .collect(),
            data,
        })
    }

    /// Returns the directories of the config and its secrets that toolgate may have created.
    pub(super) fn config_directories(&self) -> Vec<PathBuf> {
        let secrets = self.config.iter().filter_map(|file| file.parent());
        let secrets = secrets.filter(|directory| directory.ends_with(SECRETS_DIRECTORY));
        let mut directories: Vec<PathBuf> = secrets.map(Path::to_owned).collect();
        directories.dedup();
        let default = paths::default_config_location();
        let default = default.filter(|file| self.config.contains(file));
        directories.extend(default.and_then(|file| file.parent().map(Path::to_owned)));
        directories
    }

    /// Returns the list of some parts.
    pub(super) fn list(&self, parts: &[UninstallPart]) -> String {
        parts.iter().map(|part| self.list_part(*part)).collect()
    }

    fn list_part(&self, part: UninstallPart) -> String {
        let shown = |path: &PathBuf| path.display().to_string();
        let (name, lines): (_, Vec<String>) = match part {
            UninstallPart::Hosts => {
                let lines = self.connections.iter().map(|record| {
                    let kind = if hook_host(record).is_some() {
                        " (hook)"
                    } else {
                        ""
                    };
                    format!("{}{kind}: {}", record.host, record.file.display())
                });
                ("hosts", lines.collect())
            }
            UninstallPart::Service => ("service", self.unit.iter().map(shown).collect()),
            UninstallPart::Keyring => ("keyring", self.keyring.clone()),
            UninstallPart::Config => ("config", self.config.iter().map(shown).collect()),
            UninstallPart::Data | UninstallPart::All => {
                let (files, bytes) = self.data_entries.iter().map(|path| size(path)).fold(
                    (0, 0),
                    |(files, bytes), (more_files, more_bytes)| {
                        (files + more_files, bytes + more_bytes)
                    },
                );
                let line = format!(
                    "{}: audit log, approvals, keys and credentials ({}, {} KiB)",
                    self.data.display(),
                    count_of(files, "file"),
                    bytes.div_ceil(1024)
                );
                let paths = self.data_entries.iter().map(shown);
                let lines = (files > 0).then_some(line).into_iter().chain(paths);
                ("data", lines.collect())
            }
        };
        if lines.is_empty() {
            return format!("{name:<8} none\n");
        }
        let mut label = name;
        let lines = lines.iter().map(|line| {
            let line = format!("{label:<8} {}\n", visible_line(line));
            label = "";
            line
        });
        lines.collect()
    }
}

/// Returns the host of a record that is about hooks.
pub(super) fn hook_host(record: &ConnectionRecord) -> Option<HookHost> {
    HookHost::find(&record.host).filter(|host| host.has_file(&record.file))
}

fn keyring_entries(config: &Config) -> Vec<String> {
    let used = config.secret_uses().into_iter();
    let mut names: Vec<String> = used
        .filter_map(|used| match used.value {
            ConfigValue::Keyring(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the config, and the files in its directory that belong to it.
fn config_files(file: &Path, config: Option<&Config>) -> Vec<PathBuf> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let backup = PathBuf::from(format!("{}.bak", file.display()));
    let mut files = vec![file.to_owned(), backup, directory.join(SCHEMA_FILE_NAME)];
    let secrets = config.map(Config::secret_uses).unwrap_or_default();
    files.extend(secrets.into_iter().filter_map(|used| match used.value {
        ConfigValue::File(path) => {
            // `toolgate add --secret` and `toolgate import` wrote these; others may serve other programs too.
            let added =
                path.parent() == Some(directory) && path.extension() == Some(OsStr::new("secret"));
            let imported = path.parent() == Some(&directory.join(SECRETS_DIRECTORY));
            (added || imported).then(|| path.clone())
        }
        _ => None,
    }));
    files.sort();
    files.dedup();
    files.retain(|path| path.symlink_metadata().is_ok());
    files
}

/// Returns the number of files below a path, and their bytes.
fn size(path: &Path) -> (u64, u64) {
    let Ok(meta) = path.symlink_metadata() else {
        return (0, 0);
    };
    if !meta.is_dir() {
        return (1, meta.len());
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| size(&entry.path()))
        .fold((0, 0), |(files, bytes), (more_files, more_bytes)| {
            (files + more_files, bytes + more_bytes)
        })
}
