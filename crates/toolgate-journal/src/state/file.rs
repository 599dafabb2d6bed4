//! The file of the state, under the lock of its folder.

use super::{StateError, line::Change};
use crate::{
    chain,
    disk::{Files, private},
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
/// Longest file that is read, in bytes: limits of rows bound it far below after each clean-up.
const LONGEST: u64 = 1024 * 1024 * 1024;

/// The file, as far as this process has read it.
#[derive(Debug)]
pub(super) struct StateFile {
    pub(super) dir: PathBuf,
    lock: File,
    data: File,
    /// Which file `data` is: another process may have put a shorter one in its place.
    inode: u64,
    /// Up to where it was read, in bytes and lines.
    pub(super) read: u64,
    lines: usize,
}

/// The lock of the folder, until it is dropped.
pub(super) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing would do it as well, but the file stays open in its owner.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// What others wrote since the last look.
pub(super) struct News {
    /// The file was replaced: all that was known is void.
    pub(super) anew: bool,
    /// With the bytes of their lines.
    pub(super) changes: Vec<(Change, u64)>,
}

impl StateFile {
    pub(super) fn open(dir: PathBuf) -> Result<StateFile, StateError> {
        chain::make_dir(&dir, &Files).map_err(|e| match e {
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
            read: 0,
            lines: 0,
        })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(DATA)
    }

    /// Whether somebody else wrote.
    pub(super) fn is_stale(&self) -> bool {
        fs::metadata(self.path()).map_or(true, |m| m.ino() != self.inode || m.len() != self.read)
    }

    /// Waits for the lock.
    pub(super) fn lock(&self) -> Result<Locked, StateError> {
        let wrong = |e: io::Error| StateError::file("lock", &self.dir.join(LOCK), e);
        let file = self.lock.try_clone().map_err(wrong)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Locked(file)),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(wrong(e.into())),
            }
        }
    }

    /// Reads what others wrote, and cuts off the torn end that a killed process left.
    pub(super) fn catch_up(&mut self, _held: &Locked) -> Result<News, StateError> {
        let path = self.path();
        let now = open(&path)?;
        let anew = inode(&now, &path)? != self.inode || size(&now, &path)? < self.read;
        if anew {
            self.inode = inode(&now, &path)?;
            (self.data, self.read, self.lines) = (now, 0, 0);
        }
        let mut bytes = Vec::new();
        let mut from = File::open(&path).map_err(|e| StateError::file("read", &path, e))?;
        from.seek(SeekFrom::Start(self.read))
            .and_then(|_| from.take(LONGEST).read_to_end(&mut bytes))
            .map_err(|e| StateError::file("read", &path, e))?;
        let changes = self.parse(&bytes)?;
        Ok(News { anew, changes })
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Vec<(Change, u64)>, StateError> {
        let mut changes = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (line, more) = rest.split_at(end);
            let more = more.get(1..).unwrap_or_default();
            let Some(change) = Change::read(line) else {
                if more.is_empty() {
                    break;
                }
                let (path, line) = (self.path(), self.lines + 1);
                return Err(StateError::Damaged { path, line });
            };
            let length = end as u64 + 1;
            changes.push((change, length));
            self.lines += 1;
            self.read += length;
            rest = more;
        }
        if !rest.is_empty() {
            self.cut()?;
        }
        Ok(changes)
    }

    /// Cuts the file to what was read.
    pub(super) fn cut(&mut self) -> Result<(), StateError> {
        let cut = self
            .data
            .set_len(self.read)
            .and_then(|()| self.data.sync_all());
        cut.map_err(|e| StateError::file("mend the end of", &self.path(), e))
    }

    /// Appends lines.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(text.as_bytes())
    }

    /// Makes what was appended durable.
    pub(super) fn sync(&mut self, text: &str) -> io::Result<()> {
        self.data.sync_data()?;
        self.read += text.len() as u64;
        self.lines += text.lines().count();
        Ok(())
    }

    /// Puts a shorter file with the same entries in its place.
    pub(super) fn replace(&mut self, _held: &Locked, text: &str) -> Result<(), StateError> {
        let path = self.dir.join(NEW);
        let wrong = |e: io::Error| StateError::file("write", &path, e);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(wrong(e)),
            _ => {}
        }
        let mut new = private(&path, true).map_err(wrong)?;
        new.write_all(text.as_bytes())
            .and_then(|()| new.sync_all())
            .and_then(|()| fs::rename(&path, self.path()))
            .and_then(|()| File::open(&self.dir)?.sync_all())
            .map_err(wrong)?;
        self.inode = inode(&new, &path)?;
        self.data = new;
        (self.read, self.lines) = (text.len() as u64, text.lines().count());
        Ok(())
    }
}

fn open(path: &Path) -> Result<File, StateError> {
    let opened = match private(path, true) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => private(path, false),
        other => other,
    };
    opened.map_err(|e| StateError::file("open", path, e))
}

fn inode(file: &File, path: &Path) -> Result<u64, StateError> {
    let meta = file
        .metadata()
        .map_err(|e| StateError::file("look at", path, e))?;
    Ok(meta.ino())
}

fn size(file: &File, path: &Path) -> Result<u64, StateError> {
    let meta = file
        .metadata()
        .map_err(|e| StateError::file("look at", path, e))?;
    Ok(meta.len())
}
