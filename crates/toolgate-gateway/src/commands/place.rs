//! Where the data of a command is, found in one way for all of them: `--data`, else what the config names, else the place
//! of the platform.

use super::{Failed, Result, usage};
use crate::{config::Config, paths};
use std::path::{Path, PathBuf};

/// What the command line says of it.
pub(super) struct Place<'a> {
    pub(super) data: Option<&'a Path>,
    pub(super) config: Option<&'a Path>,
}

impl Place<'_> {
    /// The data directory. Of a config nothing but this is looked at, so that one that is wrong elsewhere keeps nobody from
    /// reaching the gateways that run; and where it cannot be told, no other directory is taken in its stead.
    pub(super) fn data(&self) -> Result<PathBuf> {
        match self.data {
            Some(_) => whole(self.data),
            None => {
                let named = Config::data_in(self.config).map_err(|error| {
                    let then =
                        "so it is not known which data directory is meant; name it with --data DIR";
                    Failed::Usage(format!("{error}; {then}"))
                })?;
                whole(named.as_deref())
            }
        }
    }

    /// The config.
    pub(super) fn config(&self) -> Result<Config> {
        Config::load(self.config).map_err(usage)
    }

    /// The data directory, where the config is read in any case.
    pub(super) fn of(&self, config: &Config) -> Result<PathBuf> {
        whole(self.data.or(config.data.as_deref()))
    }
}

/// The whole path of a data directory, else of that of the platform: it goes into messages and to other processes.
pub(super) fn whole(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(data) => {
            std::path::absolute(data).map_err(|e| Failed::Usage(format!("{}: {e}", data.display())))
        }
        None => paths::data_dir().map_err(Failed::Usage),
    }
}
