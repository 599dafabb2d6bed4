//! Edits of a `toolgate.toml` in place: `toolgate add`, `remove`, `enable`, `disable` and `import`.
//!
//! An edit changes only the lines of its server. Every other byte stays, and so do the mode and the owner of the file.
//! The normal config reader checks the result before it replaces the file.

mod entry;
mod layout;
mod masked;
#[cfg(test)]
mod tests;

pub(crate) use entry::{EntryValue, ServerEntry};
pub(crate) use masked::MaskedConfig;

use crate::atomic_write::{DirectoryLock, create_directory, write_atomically, write_privately};
use crate::config::{Config, ConfigError, nearest_names};
use layout::Layout;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Failure of an edit.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum EditError {
    /// The config is invalid, before or after the edit: exit code 2.
    Config(String),
    /// The edit failed: exit code 1.
    Failure(String),
}

impl From<ConfigError> for EditError {
    fn from(error: ConfigError) -> EditError {
        EditError::Config(error.to_string())
    }
}

impl From<EditError> for String {
    fn from(error: EditError) -> String {
        match error {
            EditError::Config(text) | EditError::Failure(text) => text,
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (EditError::Config(text) | EditError::Failure(text)) = self;
        f.write_str(text)
    }
}

/// Result of an edit.
type Result<T> = std::result::Result<T, EditError>;

/// Config file that is being edited. No other `toolgate` command edits a file of its directory meanwhile.
///
/// ```ignore
/// let mut config = ConfigDocument::open_or_create(&path, "")?;
/// config.add_server("git", &ServerEntry { command, ..ServerEntry::default() })?;
/// config.save()?;
/// ```
pub(crate) struct ConfigDocument {
    /// Path as the operator named it.
    path: PathBuf,
    /// File that is written: the target of symbolic links.
    target: PathBuf,
    /// Text of the file; `None` if there is none yet.
    before: Option<String>,
    text: String,
    _lock: DirectoryLock,
}

impl ConfigDocument {
    /// Opens a config for edits.
    ///
    /// # Errors
    /// The file cannot be read, is writable by others, is not TOML, or is the JSON of a host.
    pub(crate) fn open(path: &Path) -> Result<ConfigDocument> {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let lock = DirectoryLock::acquire(&target).map_err(EditError::Failure)?;
        let text = Config::read_text(path)?;
        let json = text.trim_start_matches('\u{feff}').trim_start();
        if json.starts_with('{') {
            return Err(EditError::Config(format!(
                "{}: this file is the JSON of a host, which this command cannot edit; copy its servers into a toolgate.toml with `toolgate import`",
                path.display()
            )));
        }
        Layout::parse(&text).map_err(|_| invalid_before(path, &text))?;
        Ok(ConfigDocument {
            path: path.to_owned(),
            target,
            before: Some(text.clone()),
            text,
            _lock: lock,
        })
    }

    /// Opens a config for edits, or begins a new one with this text if the file does not exist.
    ///
    /// # Errors
    /// Those of [`ConfigDocument::open`], or the directory cannot be created.
    pub(crate) fn open_or_create(path: &Path, starter: &str) -> Result<ConfigDocument> {
        if path.symlink_metadata().is_ok() {
            return ConfigDocument::open(path);
        }
        create_directory(path).map_err(EditError::Failure)?;
        Ok(ConfigDocument {
            path: path.to_owned(),
            target: path.to_owned(),
            before: None,
            text: starter.to_owned(),
            _lock: DirectoryLock::acquire(path).map_err(EditError::Failure)?,
        })
    }

    /// Returns true if the file does not exist yet.
    pub(crate) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Returns the edited text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of the servers, in the order of the file.
    pub(crate) fn server_names(&self) -> Vec<String> {
        Layout::parse(&self.text).map_or_else(|_| Vec::new(), |layout| layout.server_names())
    }

    /// Adds a server after the others.
    ///
    /// # Errors
    /// The config has a server of that name.
    pub(crate) fn add_server(&mut self, name: &str, entry: &ServerEntry) -> Result<()> {
        if self.server_names().iter().any(|known| known == name) {
            return Err(EditError::Failure(format!(
                "{} already has a server {name:?}; choose another name, or replace it with --replace",
                self.path.display()
            )));
        }
        let edited = self.layout()?.add(name, entry);
        self.change(edited, |servers| {
            let mut section = entry.section(name).parse::<toml::Table>();
            servers.extend(section.iter_mut().flat_map(take_servers));
        })
    }

    /// Replaces the text.
    pub(crate) fn replace(&mut self, text: &str) {
        text.clone_into(&mut self.text);
    }

    /// Appends sections to the end of the file, after an empty line.
    pub(crate) fn append(&mut self, sections: &str) {
        self.text = joined(&self.text, sections);
    }

    /// Removes a server, with the comment lines directly above its section.
    ///
    /// # Errors
    /// The config has no server of that name.
    pub(crate) fn remove_server(&mut self, name: &str) -> Result<()> {
        self.require(name)?;
        let edited = self.layout()?.remove(name);
        self.change(edited, |servers| {
            servers.remove(name);
        })
    }

    /// Enables or disables a server. Returns false if it was so before.
    ///
    /// # Errors
    /// The config has no server of that name.
    pub(crate) fn set_enabled(&mut self, name: &str, enabled: bool) -> Result<bool> {
        self.require(name)?;
        let layout = self.layout()?;
        if layout.is_enabled(name) == enabled {
            return Ok(false);
        }
        let edited = layout.set_enabled(name, enabled);
        self.change(edited, |servers| {
            let Some(server) = servers.get_mut(name).and_then(|s| s.as_table_mut()) else {
                return;
            };
            server.insert("enabled".to_owned(), enabled.into());
        })?;
        Ok(true)
    }

    /// Checks the edited text with the normal config reader.
    ///
    /// # Errors
    /// The reader rejects it; the message says whether it did so before.
    pub(crate) fn check(&self) -> Result<Config> {
        Config::check_text(&self.path, &self.text).map_err(|error| {
            match self.before.as_deref().map(|text| Config::check_text(&self.path, text)) {
                Some(Err(before)) => EditError::Config(format!(
                    "the config was not changed, because it is invalid as it is; correct it first: {before}"
                )),
                _ => EditError::Config(format!(
                    "the config was not changed, because the result would be invalid: {error}"
                )),
            }
        })
    }

    /// Writes the file atomically if the normal config reader accepts it. Returns the new config.
    ///
    /// # Errors
    /// The reader rejects the result, the file was changed meanwhile, or it cannot be written. The file is then
    /// unchanged.
    pub(crate) fn save(self) -> Result<Config> {
        let config = self.check()?;
        let now = match self.target.symlink_metadata() {
            Ok(_) => Some(Config::read_text(&self.path)?),
            Err(_) => None,
        };
        if now != self.before {
            return Err(EditError::Failure(format!(
                "{}: another program changed the file meanwhile, so nothing was written; run the command again",
                self.path.display()
            )));
        }
        if self.before.as_ref() != Some(&self.text) {
            write_atomically(&self.target, &self.text).map_err(EditError::Failure)?;
        }
        Ok(config)
    }

    fn layout(&self) -> Result<Layout<'_>> {
        Layout::parse(&self.text).map_err(|_| invalid_before(&self.path, &self.text))
    }

    fn require(&self, name: &str) -> Result<()> {
        let names = self.server_names();
        if names.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(EditError::Failure(format!(
            "{} has no server {name:?}{}",
            self.path.display(),
            nearest_names(name, names.iter().map(String::as_str))
        )))
    }

    /// Takes an edited text whose only difference from the current one is that change of its servers.
    fn change(
        &mut self,
        edited: Option<String>,
        expected: impl FnOnce(&mut toml::Table),
    ) -> Result<()> {
        let edited = edited.filter(|edited| is_only_change(&self.text, edited, expected));
        self.text = edited.ok_or_else(|| {
            EditError::Failure(format!(
                "{}: this command does not support the layout of the file; edit the file by hand, or write each server as a section [server.NAME]",
                self.path.display()
            ))
        })?;
        Ok(())
    }
}

/// Joins a config and sections, with an empty line between them.
pub(crate) fn joined(text: &str, sections: &str) -> String {
    let between = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{between}{sections}")
}

/// Writes a file that only its owner may read, or replaces one. Creates its directory if necessary.
///
/// # Errors
/// It cannot be written; an old file is then unchanged.
pub(crate) fn write_private_file(path: &Path, text: &str) -> Result<()> {
    create_directory(path).map_err(EditError::Failure)?;
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    write_privately(&target, text).map_err(EditError::Failure)
}

/// Returns the reader's error for a text that is not TOML.
fn invalid_before(path: &Path, text: &str) -> EditError {
    let error = Config::check_text(path, text).err();
    let why = error.map_or_else(|| path.display().to_string(), |error| error.to_string());
    EditError::Config(format!(
        "the config cannot be edited; correct it first: {why}"
    ))
}

/// Returns true if two texts differ in that change of the servers, and in comments and layout alone.
fn is_only_change(before: &str, after: &str, expected: impl FnOnce(&mut toml::Table)) -> bool {
    let parse = |text: &str| text.trim_start_matches('\u{feff}').parse::<toml::Table>();
    let (Ok(mut before), Ok(mut after)) = (parse(before), parse(after)) else {
        return false;
    };
    let (mut servers_before, mut servers_after) =
        (take_servers(&mut before), take_servers(&mut after));
    expected(&mut servers_before);
    // A server without the key is enabled.
    for (_, server) in servers_before.iter_mut().chain(servers_after.iter_mut()) {
        if let Some(server) = server.as_table_mut()
            && server.get("enabled") == Some(&true.into())
        {
            server.remove("enabled");
        }
    }
    before == after && servers_before == servers_after
}

/// Takes the servers out of a config.
fn take_servers(config: &mut toml::Table) -> toml::Table {
    match config.remove("server") {
        Some(toml::Value::Table(servers)) => servers,
        _ => toml::Table::new(),
    }
}
