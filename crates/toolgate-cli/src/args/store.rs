//! Options of `toolgate store`.

use super::JsonOption;
use clap::Subcommand;
use std::path::PathBuf;

/// Commands of `toolgate store`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Move the state files of an earlier version into the database
    ///
    /// A gateway does the same when it starts. The old file stays as state.jsonl.migrated.
    Migrate,
    /// Check the database, and count its entries
    Check(JsonOption),
    /// Write all entries into a file, for a backup
    ///
    /// The file has secrets, such as keys that seal state. A running gateway may go on.
    Export {
        /// New file; it must not exist
        file: PathBuf,
    },
    /// Read a file of `toolgate store export` into an empty data directory
    Import {
        /// File that `toolgate store export` wrote
        file: PathBuf,
    },
    /// Remove all entries of one table, to repair it
    ///
    /// Stop all gateways of the data directory first.
    Clear {
        /// Table; `toolgate store check` lists them
        table: String,
        /// Remove without asking
        #[arg(long)]
        yes: bool,
    },
}
