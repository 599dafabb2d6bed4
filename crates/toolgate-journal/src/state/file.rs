//! State file, accessed under the lock of its directory.

use super::{StateError, line::StateChange};
use crate::{
    chain,
    disk::{FileDisk, open_private},
};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

const DATA: &str = "state.jsonl";
const LOCK: &str = "state.lock";
const NEW: &str = "state.new";
/// Maximum number of bytes of one read of the file. Compaction keeps a usual file far below.
const MAX_STATE_BYTES: u64 = 1024 * 1024 * 1024;

/// State file and the position up to which this process has read it.
#[derive(Debug)]
pub(super) struct StateFile {
    pub(super) dir: PathBuf,
    lock: File,
    data: File,
    /// Inode of `data`. Another process may have replaced the file by a compacted one.
    inode: u64,
    /// Position up to which the file was read, in bytes and lines.
    pub(super) read_bytes: u64,
    read_lines: usize,
}

/// Guard of the directory lock, which is released when dropped.
pub(super) struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing would unlock too, but the owner keeps the file open.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Changes of other processes since the last read.
pub(super) struct ForeignChanges {
    /// True if the file was replaced, so that all known rows are obsolete.
    pub(super) was_replaced: bool,
    /// Changes with the size of their lines in bytes.
    pub(super) changes: Vec<(StateChange, u64)>,
}

impl StateFile {
    pub(super) fn open(dir: PathBuf) -> Result<StateFile, StateError> {
        chain::make_dir(&dir, &FileDisk).map_err(|e| match e {
            crate::Error::Open { doing, path, cause } => StateError::File { doing, path, cause },
            other => StateError::Failed(other.to_string().into()),
        })?;
        let lock = open(&dir.join(LOCK))?;
        let data = open(&dir.join(DATA))?;
        let inode = inode(&data, &dir)?;
        Ok(StateFile {
            dir,
            lock,
            data,
            inode,
            read_bytes: 0,
            read_lines: 0,
        })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(DATA)
    }

    /// Returns whether another process wrote.
    pub(super) fn is_stale(&self) -> bool {
        fs::metadata(self.path()).map_or(true, |m| {
            m.ino() != self.inode || m.len() != self.read_bytes
        })
    }

    /// Waits for the directory lock.
    pub(super) fn lock(&self) -> Result<DirectoryLock, StateError> {
        let wrong = |e: io::Error| StateError::file("lock", &self.dir.join(LOCK), e);
        let file = self.lock.try_clone().map_err(wrong)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(DirectoryLock(file)),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(wrong(e.into())),
            }
        }
    }

    /// Reads the changes of other processes, and cuts off the torn write of a killed process.
    pub(super) fn catch_up(&mut self, _held: &DirectoryLock) -> Result<ForeignChanges, StateError> {
        let path = self.path();
        let now = open(&path)?;
        let anew = inode(&now, &path)? != self.inode || size(&now, &path)? < self.read_bytes;
        if anew {
            self.inode = inode(&now, &path)?;
            (self.data, self.read_bytes, self.read_lines) = (now, 0, 0);
        }
        let mut bytes = Vec::new();
        let mut from = File::open(&path).map_err(|e| StateError::file("read", &path, e))?;
        from.seek(SeekFrom::Start(self.read_bytes))
            .and_then(|_| from.take(MAX_STATE_BYTES).read_to_end(&mut bytes))
            .map_err(|e| StateError::file("read", &path, e))?;
        let changes = self.parse(&bytes)?;
        Ok(ForeignChanges {
            was_replaced: anew,
            changes,
        })
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Vec<(StateChange, u64)>, StateError> {
        let mut changes = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (line, more) = rest.split_at(end);
            let more = more.get(1..).unwrap_or_default();
            let Some(change) = StateChange::parse_line(line) else {
                if more.is_empty() {
                    break;
                }
                let (path, line) = (self.path(), self.read_lines + 1);
                return Err(StateError::Damaged { path, line });
            };
            let length = end as u64 + 1;
            changes.push((change, length));
            self.read_lines += 1;
            self.read_bytes += length;
            rest = more;
        }
        if !rest.is_empty() {
            self.truncate()?;
        }
        Ok(changes)
    }

    /// Truncates the file to the part that was read.
    pub(super) fn truncate(&mut self) -> Result<(), StateError> {
        let cut = self
            .data
            .set_len(self.read_bytes)
            .and_then(|()| self.data.sync_all());
        cut.map_err(|e| StateError::file("truncate the end of", &self.path(), e))
    }

    /// Appends lines.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(text.as_bytes())
    }

    /// Syncs the appended lines.
    pub(super) fn sync(&mut self, text: &str) -> io::Result<()> {
        self.data.sync_data()?;
        self.read_bytes += text.len() as u64;
        self.read_lines += text.lines().count();
        Ok(())
    }

    /// Replaces the file by a compacted one with the same entries.
    pub(super) fn replace(&mut self, _held: &DirectoryLock, text: &str) -> Result<(), StateError> {
        let path = self.dir.join(NEW);
        let wrong = |e: io::Error| StateError::file("write", &path, e);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(wrong(e)),
            _ => {}
        }
        let mut new = open_private(&path, true).map_err(wrong)?;
        new.write_all(text.as_bytes())
            .and_then(|()| new.sync_all())
            .and_then(|()| fs::rename(&path, self.path()))
            .and_then(|()| File::open(&self.dir)?.sync_all())
            .map_err(wrong)?;
        self.inode = inode(&new, &path)?;
        self.data = new;
        (self.read_bytes, self.read_lines) = (text.len() as u64, text.lines().count());
        Ok(())
    }
}

fn open(path: &Path) -> Result<File, StateError> {
    let opened = match open_private(path, true) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => open_private(path, false),
        other => other,
    };
    opened.map_err(|e| StateError::file("open", path, e))
}

fn inode(file: &File, path: &Path) -> Result<u64, StateError> {
    let meta = file
        .metadata()
        .map_err(|e| StateError::file("examine", path, e))?;
    Ok(meta.ino())
}

fn size(file: &File, path: &Path) -> Result<u64, StateError> {
    let meta = file
        .metadata()
        .map_err(|e| StateError::file("examine", path, e))?;
    Ok(meta.len())
}
