//! `toolgate init`, `add`, `remove`, `enable` and `disable`: edits of the config in place.

mod add;
mod init;
mod reload_notice;
mod secret_input;
mod servers;

pub(super) use add::add;
pub(super) use init::init;
pub(super) use servers::{enable, remove};

use super::{CommandError, DataLocation, Result};
use crate::{banner::shell_quote, config::paths, config_edit::EditError};
use std::path::PathBuf;

impl From<EditError> for CommandError {
    fn from(error: EditError) -> CommandError {
        match error {
            EditError::Config(text) => CommandError::Usage(text),
            EditError::Failure(text) => CommandError::Failure(text),
        }
    }
}

impl DataLocation<'_> {
    /// Returns the path of the config to edit, which may not exist yet.
    fn config_path(&self) -> Result<PathBuf> {
        let path = match self.config {
            Some(path) => Some(path.to_owned()),
            None => paths::default_config_location(),
        };
        path.ok_or_else(|| {
            CommandError::Usage(
                "the path of the config is unknown, because HOME is not set to an absolute path; set it, or pass --config FILE"
                    .to_owned(),
            )
        })
    }

    /// Returns the global options of this command line, quoted for a shell, for commands that continue the work.
    fn option_words(&self) -> String {
        let option = |name: &str, path: Option<&std::path::Path>| {
            let path = path.map(|path| shell_quote(&path.display().to_string()));
            path.map_or_else(String::new, |path| format!(" {name} {path}"))
        };
        option("--config", self.config) + &option("--data", self.data)
    }
}
