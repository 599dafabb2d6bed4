//! Atomic replacement of a file: a temporary file in its directory, synced and renamed.

use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

/// Mode of a new file: only its owner may read and write it.
const NEW_FILE_MODE: u32 = 0o600;
/// Mode of a new directory.
const NEW_DIRECTORY_MODE: u32 = 0o700;

/// Lock on the directory of a file, for the time between reading and writing the file.
pub(crate) struct DirectoryLock {
    _directory: File,
}

impl DirectoryLock {
    /// Waits for the lock on the directory of a file.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub(crate) fn acquire(file: &Path) -> Result<DirectoryLock, String> {
        let directory = parent(file);
        let lock = || -> io::Result<File> {
            let opened = File::open(&directory)?;
            flock(&opened, FlockOperation::LockExclusive)?;
            Ok(opened)
        };
        let locked = lock().map_err(|error| {
            format!(
                "the directory {} cannot be opened: {error}; check the path and its permissions",
                directory.display()
            )
        })?;
        Ok(DirectoryLock { _directory: locked })
    }
}

/// Creates the directory of a file, which only its owner may enter.
///
/// # Errors
/// It cannot be created.
pub(crate) fn create_directory(file: &Path) -> Result<(), String> {
    let directory = parent(file);
    let created = DirBuilder::new()
        .recursive(true)
        .mode(NEW_DIRECTORY_MODE)
        .create(&directory);
    created.map_err(|error| {
        format!(
            "the directory {} cannot be created: {error}; check the path and its permissions",
            directory.display()
        )
    })
}

/// Mode of a file that replaces another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FileMode {
    /// Mode and owner of the other file.
    Keep,
    /// Only the owner may read and write the file.
    Private,
}

/// Replaces a file, or creates it with access for its owner alone. Mode and owner of an existing file stay.
///
/// # Errors
/// It cannot be written; the old file is then unchanged.
pub(crate) fn write_atomically(file: &Path, text: &str) -> Result<(), String> {
    write(file, text, FileMode::Keep)
}

/// Replaces a file, or creates it, with access for its owner alone.
///
/// # Errors
/// It cannot be written; the old file is then unchanged.
pub(crate) fn write_privately(file: &Path, text: &str) -> Result<(), String> {
    write(file, text, FileMode::Private)
}

fn write(file: &Path, text: &str, mode: FileMode) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent(file).join(format!(".{name}.{}.tmp", std::process::id()));
    let written = replace(file, &temporary, text, mode);
    if written.is_err() {
        // Without the rename, only the temporary file exists; the error is that of the write.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(|error| {
        format!(
            "{} cannot be written: {error}; check the permissions and the free space of its directory",
            file.display()
        )
    })
}

fn replace(file: &Path, temporary: &Path, text: &str, mode: FileMode) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(NEW_FILE_MODE);
    let mut out = options.open(temporary)?;
    if let Ok(before) = file.metadata()
        && mode == FileMode::Keep
    {
        let new = out.metadata()?;
        if (new.uid(), new.gid()) != (before.uid(), before.gid()) {
            // Only root may give a file to another owner; the reader accepts a file of this user as well.
            let _ = fchown(&out, Some(before.uid()), Some(before.gid()));
        }
        out.set_permissions(Permissions::from_mode(before.mode() & 0o7777))?;
    }
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(temporary, file)?;
    File::open(parent(file))?.sync_all()
}

fn parent(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
