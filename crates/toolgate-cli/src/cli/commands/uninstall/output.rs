//! List of the files of an installation, as `toolgate uninstall --json` prints it.

use super::inventory::{Inventory, hook_host};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Files of an installation.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct UninstallOutput {
    /// The program itself.
    program: String,
    /// Connected hosts.
    hosts: Vec<ConnectedHostOutput>,
    /// Unit of the service; `null` if there is none.
    service: Option<PathBuf>,
    /// Entries of the keyring that the config names.
    keyring: Vec<String>,
    /// Config, and the files beside it that belong to it.
    config: Vec<PathBuf>,
    /// Data directory.
    data: PathBuf,
    /// Files and directories of the gateway in it.
    data_entries: Vec<PathBuf>,
}

/// Connected host.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ConnectedHostOutput {
    /// Host, as `toolgate disconnect` takes it.
    host: String,
    /// True for a hook, false for an entry.
    hook: bool,
    file: PathBuf,
}

impl Inventory {
    pub(super) fn output(&self, program: String) -> UninstallOutput {
        let hosts = self.connections.iter().map(|record| ConnectedHostOutput {
            host: record.host.clone(),
            hook: hook_host(record).is_some(),
            file: record.file.clone(),
        });
        UninstallOutput {
            program,
            hosts: hosts.collect(),
            service: self.unit.clone(),
            keyring: self.keyring.clone(),
            config: self.config.clone(),
            data: self.data.clone(),
            data_entries: self.data_entries.clone(),
        }
    }
}
