//! The few things the journal asks of a disk, so that a test can put a failing one in its place.

use rustix::fs::OFlags;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens segments. [`Files`] is the real one.
pub trait Disk: Debug + Send + Sync {
    /// Creates a segment that must not exist yet, readable by its owner only.
    ///
    /// # Errors
    /// Whatever the system says; `AlreadyExists` if it is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Segment>>;

    /// Opens a segment for appending, cuts it to `length` bytes and makes that durable.
    ///
    /// # Errors
    /// Whatever the system says.
    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn Segment>>;

    /// Makes the entries of a folder durable.
    ///
    /// # Errors
    /// Whatever the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// One open segment. The journal never uses it again after it returned an error other than `Interrupted`.
pub trait Segment: Send {
    /// Appends a prefix of `bytes` and says how long it was, like `write(2)`.
    ///
    /// # Errors
    /// Whatever the system says.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns once everything written is on the disk, like `fdatasync(2)`.
    ///
    /// # Errors
    /// Whatever the system says.
    fn sync(&mut self) -> io::Result<()>;
}

/// Real files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Disk for Files {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(private(path, true)?))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn Segment>> {
        let file = private(path, false)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        // Also when nothing was cut: what a killed process wrote may not have reached the disk yet.
        file.sync_all()?;
        Ok(Box::new(file))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl Segment for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Opens for appending with mode 0600 and never through a symbolic link.
pub(crate) fn private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    if new {
        options.create_new(true);
    }
    options.open(path)
}
