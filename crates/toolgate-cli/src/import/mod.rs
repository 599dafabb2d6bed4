//! Import of the servers of hosts into a `toolgate.toml`.
//!
//! - `host_files`, `host_value`, `host_text`, `host_entry`, `env_file`: from files to neutral entries.
//! - `planned_server`, `secret_places`, `starter_rules`: from an entry to a section of the config.
//! - `import_plan`: all sections together, without duplicates.

mod env_file;
mod host_entry;
pub(crate) mod host_files;
mod host_text;
mod host_value;
pub(crate) mod import_plan;
mod planned_server;
pub(crate) mod secret_places;
mod starter_rules;
