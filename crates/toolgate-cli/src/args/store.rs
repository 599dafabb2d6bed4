//! Options of `toolgate store`.

use super::JsonOption;
use clap::Subcommand;
use std::path::PathBuf;

/// Commands of `toolgate store`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring the stored state into the form that this version uses
    ///
    /// It moves the state files of an earlier version into the database; they stay as state.jsonl.migrated. A gateway
    /// does the same when it starts. With a shared store, it creates or changes the tables in PostgreSQL, and copies the
    /// state of the data directory into them if they have no entries.
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
    /// Read a file of `toolgate store export` into an empty data directory or shared store
    Import {
        /// File that `toolgate store export` wrote
        file: PathBuf,
    },
    /// Create certificates for the connections between gateways
    ///
    /// They are signed by a private authority, for small teams and tests: ca.pem and ca.key in the directory. Each gateway
    /// needs ca.pem, and its own certificate and key. Keep ca.key apart: whoever has it can become a gateway.
    Pki {
        /// Directory for the files; existing ones are not replaced
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Host names or IP addresses of the gateways, as in advertise of [store]
        #[arg(required = true)]
        hosts: Vec<String>,
    },
    /// Remove all entries of one table, to repair it
    ///
    /// Stop all gateways of the data directory or the shared store first.
    Clear {
        /// Table; `toolgate store check` lists them
        table: String,
        /// Remove without asking
        #[arg(long)]
        yes: bool,
    },
}
