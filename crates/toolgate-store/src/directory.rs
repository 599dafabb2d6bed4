//! Directory of the store: its private files, and its lock.

use crate::StoreError;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

const LOCK: &str = "state.lock";

/// Guard of the directory lock, which is released when dropped.
pub(crate) struct DirectoryLock(#[expect(dead_code, reason = "closing it unlocks")] File);

/// Creates the directory (mode 0700) and waits for its lock.
pub(crate) fn lock(dir: &Path) -> Result<DirectoryLock, StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|e| StoreError::file("create", dir, e))?;
    let path = dir.join(LOCK);
    let file = open_private(&path).map_err(|e| StoreError::file("open", &path, e))?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(DirectoryLock(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(StoreError::file("lock", &path, e.into())),
        }
    }
}

/// Opens or creates a file with mode 0600, never through a symbolic link.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.custom_flags(i32::try_from(no_follow).unwrap_or_default());
    options.open(path)
}

/// Identity of a file: device and inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub(crate) fn of(path: &Path) -> io::Result<FileIdentity> {
        let meta = std::fs::metadata(path)?;
        Ok(FileIdentity(meta.dev(), meta.ino()))
    }
}
