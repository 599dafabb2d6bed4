//! Data directory of a command: `--data`, else the directory that the config names, else the platform's default.

use super::{CommandError, Result, absolute, usage};
use crate::{config::Config, config::paths};
use std::path::{Path, PathBuf};

/// `--data` and `--config` of the command line.
pub(super) struct DataLocation<'a> {
    pub(super) data: Option<&'a Path>,
    pub(super) config: Option<&'a Path>,
}

impl DataLocation<'_> {
    /// Returns the data directory. Reads only the `data` key of the config, so that other errors in it do not block
    /// access to
    /// running gateways. If that key cannot be determined, fails instead of falling back to another directory.
    pub(super) fn data(&self) -> Result<PathBuf> {
        match self.data {
            Some(_) => absolute_or_default(self.data),
            None => {
                let named = Config::data_directory(self.config).map_err(|error| {
                    CommandError::Usage(format!(
                        "the data directory is unknown because the config cannot be read; pass --data DIR, or correct the config: {error}"
                    ))
                })?;
                absolute_or_default(named.as_deref())
            }
        }
    }

    /// Returns `--config` and `--data` with absolute paths, for a program that starts the gateway later.
    pub(super) fn absolute_options(&self) -> Vec<String> {
        let options = [("--config", self.config), ("--data", self.data)];
        let words = options
            .into_iter()
            .filter_map(|(option, path)| Some([option.to_owned(), absolute(path?)]));
        words.flatten().collect()
    }

    /// Loads the config.
    pub(super) fn config(&self) -> Result<Config> {
        Config::load(self.config).map_err(usage)
    }

    /// Returns the data directory for a config that is already loaded.
    pub(super) fn data_with(&self, config: &Config) -> Result<PathBuf> {
        absolute_or_default(self.data.or(config.data.as_deref()))
    }
}

/// Returns the absolute path of a data directory, or the platform's default: messages and other processes use the path.
pub(super) fn absolute_or_default(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(data) => std::path::absolute(data)
            .map_err(|e| CommandError::Usage(format!("{}: {e}", data.display()))),
        None => paths::data_dir().map_err(CommandError::Usage),
    }
}
