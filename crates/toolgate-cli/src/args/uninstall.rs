//! Options of `toolgate uninstall`.

use clap::{Args, ValueEnum};

/// Options of `toolgate uninstall`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UninstallOptions {
    /// Parts to remove
    #[arg(value_enum, value_name = "PART")]
    pub(crate) parts: Vec<UninstallPart>,
    /// Remove without asking
    #[arg(long, requires = "parts")]
    pub(crate) yes: bool,
    /// Print the list as JSON; `toolgate schema` describes it
    #[arg(long, conflicts_with = "parts")]
    pub(crate) json: bool,
}

/// Part of an installation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum UninstallPart {
    /// Entries and hooks in the files of hosts, as `toolgate disconnect` removes them
    Hosts,
    /// Service of systemd or launchd
    Service,
    /// Entries of the keyring that the config names
    Keyring,
    /// Config, its JSON Schema, and the secret files beside it that it names
    Config,
    /// Data directory with the audit log, approvals, keys and credentials
    Data,
    /// All of these
    All,
}
