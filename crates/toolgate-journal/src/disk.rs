//! The few things the journal asks of a disk, so that a test can put a failing one in its place.

use rustix::fs::OFlags;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// How many bytes of a segment are copied at once.
const COPY_BYTES: usize = 64 * 1024;

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

    /// The open file as the system sees it; `None` if it is no file, so that nothing can be compared.
    ///
    /// # Errors
    /// Whatever the system says.
    fn state(&self) -> io::Result<Option<FileState>> {
        Ok(None)
    }

    /// Copies the contents of the open file, also if no path leads to it any more.
    ///
    /// # Errors
    /// Whatever the system says; `Unsupported` if it cannot be read.
    fn copy_to(&self, _to: &mut dyn Write) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Identity and size of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The device that holds it.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
    /// How many names lead to it; 0 once it was deleted.
    pub links: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Real files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Disk for Files {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(owned(path, true, true)?))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn Segment>> {
        let file = owned(path, false, true)?;
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

    fn state(&self) -> io::Result<Option<FileState>> {
        let meta = self.metadata()?;
        if !meta.is_file() {
            return Ok(None);
        }
        Ok(Some(FileState {
            device: meta.dev(),
            inode: meta.ino(),
            links: meta.nlink(),
            bytes: meta.len(),
        }))
    }

    fn copy_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut bytes = vec![0; COPY_BYTES];
        let mut at = 0;
        loop {
            let count = self.read_at(&mut bytes, at)?;
            if count == 0 {
                return Ok(());
            }
            to.write_all(bytes.get(..count).unwrap_or_default())?;
            at += count as u64;
        }
    }
}

/// Opens for appending with mode 0600 and never through a symbolic link.
pub(crate) fn private(path: &Path, new: bool) -> io::Result<File> {
    owned(path, new, false)
}

/// The same; with `read`, what was written can be read back through the open file.
fn owned(path: &Path, new: bool, read: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(read)
        .append(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    if new {
        options.create_new(true);
    }
    options.open(path)
}
