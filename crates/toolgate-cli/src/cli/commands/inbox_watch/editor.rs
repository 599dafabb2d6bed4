//! Edits the arguments of a call in the editor of the person.

use super::pending_request::PendingRequest;
use crate::{file_diff::diff_hunks, operator::control::socket_directory};
use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Child,
};
use toolgate_core::visible;

/// Editors if neither VISUAL nor EDITOR is set.
const FALLBACK_EDITORS: [&str; 2] = ["nano", "vi"];

/// Returns the arguments as the editor shows them. Invisible characters are JSON escapes, so the text is the same JSON.
pub(super) fn editable_arguments(request: &PendingRequest) -> String {
    format!("{}\n", visible(&request.arguments_pretty))
}

/// Returns the differences of edited arguments from those of the call.
pub(super) fn arguments_diff(request: &PendingRequest, edited: &str) -> String {
    let before = editable_arguments(request);
    let edited = format!("{}\n", edited.trim_end());
    diff_hunks(&before, &edited)
}

/// File with the arguments, in a directory that only the owner can enter. Dropping it deletes the directory, with the
/// backups that an editor writes beside the file.
pub(super) struct ArgumentsFile {
    directory: PathBuf,
    path: PathBuf,
}

impl ArgumentsFile {
    /// Writes the arguments to a new file.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub(super) fn create(data: &Path, text: &str) -> io::Result<ArgumentsFile> {
        let name = format!("edit-{}", std::process::id());
        let directory = socket_directory(data)?.join(name);
        // Left by a process with the same ID that was killed.
        let _ = std::fs::remove_dir_all(&directory);
        DirBuilder::new().mode(0o700).create(&directory)?;
        let path = directory.join("arguments.json");
        let file = ArgumentsFile { directory, path };
        let mut options = OpenOptions::new();
        let mut out = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file.path)?;
        out.write_all(text.as_bytes())?;
        Ok(file)
    }

    /// Starts the editor.
    ///
    /// # Errors
    /// There is no editor, or it cannot be started.
    pub(super) fn start_editor(&self) -> Result<Child, String> {
        let Some(editor) = editor_command() else {
            return Err("no editor was found; set EDITOR to the command of one".to_owned());
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "a command that a person typed, not the gateway: the editor that the person chose"
        )]
        // As in git, the variable may contain options of the editor.
        let started = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("{editor} \"$1\""))
            .arg("editor")
            .arg(&self.path)
            .spawn();
        started.map_err(|error| format!("the editor {editor} cannot be started: {error}"))
    }

    /// Reads the edited text.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub(super) fn read(&self) -> Result<String, String> {
        std::fs::read_to_string(&self.path)
            .map_err(|error| format!("the edited arguments cannot be read: {error}"))
    }
}

impl Drop for ArgumentsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn editor_command() -> Option<String> {
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.trim().is_empty())
    });
    named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let is_installed = |name: &&str| directories.iter().any(|dir| dir.join(name).is_file());
        FALLBACK_EDITORS
            .into_iter()
            .find(is_installed)
            .map(str::to_owned)
    })
}
