//! Disk interface of the journal, which tests replace by a failing disk.

use rustix::fs::OFlags;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Size in bytes of one step when a segment is copied.
const COPY_BYTES: usize = 64 * 1024;

/// Disk that creates and opens segment files of the audit log. [`FileDisk`] is the real one.
pub trait SegmentDisk: Debug + Send + Sync {
    /// Creates a segment file that must not exist yet, readable by its owner only.
    ///
    /// # Errors
    /// The error of the system; `AlreadyExists` if the file exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>>;

    /// Opens a segment file for appending, truncates it to `length` bytes and syncs it.
    ///
    /// # Errors
    /// The error of the system.
    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>>;

    /// Syncs the entries of a directory, so that a created file survives a crash.
    ///
    /// # Errors
    /// The error of the system.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// Segment file of the audit log, open for appending. The journal does not use it again after an error other than
/// `Interrupted`.
pub trait OpenSegment: Send {
    /// Appends a prefix of `bytes` to the segment and returns its length, like `write(2)`.
    ///
    /// # Errors
    /// The error of the system.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Syncs everything that was written to the segment, like `fdatasync(2)`.
    ///
    /// # Errors
    /// The error of the system.
    fn sync(&mut self) -> io::Result<()>;

    /// Returns the identity and size of the open segment file. `None` if it is not a regular file and cannot be
    /// compared.
    ///
    /// # Errors
    /// The error of the system.
    fn file_state(&self) -> io::Result<Option<FileState>> {
        Ok(None)
    }

    /// Copies the contents of the open segment file, even if it was deleted or renamed.
    ///
    /// # Errors
    /// The error of the system; `Unsupported` if the segment cannot be read.
    fn copy_to(&self, _to: &mut dyn Write) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Identity and size of an open segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number of the file on the device.
    pub inode: u64,
    /// Number of hard links to the file; 0 once it was deleted.
    pub links: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// [`SegmentDisk`] that uses real files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileDisk;

impl SegmentDisk for FileDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(owned(path, true, true)?))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>> {
        let file = owned(path, false, true)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        // Also without truncation: data of a killed process may not have reached the disk yet.
        file.sync_all()?;
        Ok(Box::new(file))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl OpenSegment for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn file_state(&self) -> io::Result<Option<FileState>> {
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

/// Opens a file for appending with mode 0600, and never through a symbolic link.
pub(crate) fn open_private(path: &Path, new: bool) -> io::Result<File> {
    owned(path, new, false)
}

/// Opens a file like [`open_private`]; with `read`, the open file can also be read.
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
