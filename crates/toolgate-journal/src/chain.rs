//! Directory of a chain and its lock: one process writes one chain.

use crate::disk::{SegmentDisk, open_private};
use crate::error::Error;
use crate::key::random_hex;
use crate::record::utc_us;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
const FAILED: &str = "failed";

/// File beside [`FAILED`] once the open calls are closed in another chain.
const CLOSED: &str = "closed";

/// Chain that this process has locked, for as long as the value lives.
#[derive(Debug)]
pub(crate) struct LockedChain {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    _lock: File,
}

impl LockedChain {
    /// Locks an existing chain; `None` if another process has it.
    pub(crate) fn lock_existing(dir: &Path, id: &str) -> Result<Option<Self>, Error> {
        let home = dir.join(id);
        let lock = lock(&home.join(LOCK)).map_err(|e| Error::open("lock", &home, e))?;
        Ok(lock.map(|lock| Self {
            id: id.to_owned(),
            dir: home,
            _lock: lock,
        }))
    }

    /// Creates a new chain.
    pub(crate) fn create(dir: &Path, disk: &dyn SegmentDisk) -> Result<Self, Error> {
        loop {
            let id = new_id().map_err(|e| Error::open("create a chain in", dir, e))?;
            make_dir(&dir.join(&id), disk)?;
            // Another process that looked for a free chain may have locked it first.
            if let Some(chain) = Self::lock_existing(dir, &id)? {
                return Ok(chain);
            }
        }
    }

    /// Returns whether a sync failed in this chain. The system may have lost unwritten data, so the chain is not
    /// continued.
    pub(crate) fn has_failed(&self) -> bool {
        self.dir.join(FAILED).exists()
    }

    /// Returns the path of a segment.
    pub(crate) fn segment_path(&self, seg: u64) -> PathBuf {
        self.dir.join(segment_name(seg))
    }
}

/// Records that a sync failed. This may fail too, since the disk is in trouble.
pub(crate) fn mark_failed(dir: &Path, reason: &str) {
    if let Ok(mut file) = open_private(&dir.join(FAILED), true) {
        let _ = writeln!(file, "{reason}");
        let _ = file.sync_all();
    }
}

/// Returns whether a sync failed in a chain and no other chain has closed its calls yet.
pub(crate) fn awaits_closing(dir: &Path) -> bool {
    dir.join(FAILED).exists() && !dir.join(CLOSED).exists()
}

/// Records that another chain has closed the calls. If this fails, they are closed once more.
pub(crate) fn mark_closed(dir: &Path) {
    if let Ok(file) = open_private(&dir.join(CLOSED), true) {
        let _ = file.sync_all();
    }
}

/// Creates a directory with mode 0700, and its parents, and syncs it.
pub(crate) fn make_dir(dir: &Path, disk: &dyn SegmentDisk) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .and_then(|()| disk.sync_dir(parent))
        .map_err(|e| Error::open("create the directory", dir, e))
}

/// Returns the ids of all chains in a directory, oldest first.
pub(crate) fn ids(dir: &Path) -> io::Result<Vec<String>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().filter(|name| is_id(name))
            && entry.file_type()?.is_dir()
        {
            ids.push(name.to_owned());
        }
    }
    ids.sort();
    Ok(ids)
}

/// Returns the file name of a segment: `seg-00000001.jsonl`.
pub(crate) fn segment_name(seg: u64) -> String {
    format!("seg-{seg:08}.jsonl")
}

/// Parses the number of a segment file name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("seg-")?.strip_suffix(".jsonl")?;
    digits.parse().ok()
}

/// Returns a new chain id: the time in milliseconds and a random part, so that ids sort by age.
fn new_id() -> io::Result<String> {
    Ok(format!("{:012x}-{}", utc_us() / 1000, random_hex::<8>()?))
}

pub(crate) fn is_id(name: &str) -> bool {
    name.len() == 29
        && name.bytes().enumerate().all(|(at, b)| {
            if at == 12 {
                b == b'-'
            } else {
                b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
            }
        })
}

fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = match open_private(path, true) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => open_private(path, false)?,
        other => other?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
