//! Helpers of the tests: a temporary folder, and a disk that can block or fail.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use toolgate_journal::verify::{AuditReport, verify};
use toolgate_journal::{
    AuditEntry, AuditEvent, AuditJournal, AuditReceipt, Error, FileDisk, JournalOptions,
    OpenSegment, SegmentDisk,
};

/// Far above what anything here takes.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-journal-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn open(&self) -> AuditJournal {
        AuditJournal::open(JournalOptions::new(&self.0)).unwrap()
    }

    pub(crate) fn verify(&self) -> AuditReport {
        verify(&self.0).unwrap()
    }

    /// The first segment of a chain.
    pub(crate) fn segment(&self, chain: &str) -> PathBuf {
        self.0.join(chain).join("seg-00000001.jsonl")
    }

    /// The second place of its checkpoints.
    pub(crate) fn elsewhere(&self) -> PathBuf {
        elsewhere(&self.0)
    }

    /// Returns the number of calls that began in a chain.
    pub(crate) fn calls(&self, chain: &str) -> usize {
        let lines = self.lines(chain);
        let begins = lines.iter().filter(|line| line.contains("call.begin"));
        begins.count()
    }

    /// Makes the checkpoints of another folder ours.
    pub(crate) fn put_key(&self, key: &[u8]) {
        let path = self.0.join("checkpoint.key");
        fs::write(&path, key).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn lines(&self, chain: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for seg in 1.. {
            let file = self.0.join(chain).join(format!("seg-{seg:08}.jsonl"));
            let Ok(text) = fs::read_to_string(file) else {
                break;
            };
            lines.extend(text.lines().map(str::to_owned));
        }
        lines
    }
}

/// A folder beside a journal folder.
pub(crate) fn elsewhere(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap().to_string_lossy();
    dir.with_file_name(format!("{name}-elsewhere"))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.elsewhere());
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn begin(call: &str) -> AuditEntry {
    AuditEntry::new(AuditEvent::CALL_BEGIN)
        .with("call", call)
        .with("name", "files.read")
}

pub(crate) fn end(call: &str) -> AuditEntry {
    AuditEntry::new(AuditEvent::CALL_END)
        .with("call", call)
        .with("out", "ok")
}

/// Waits for one record.
pub(crate) fn append(journal: &AuditJournal, entry: AuditEntry) -> Result<AuditReceipt, Error> {
    block_on(journal.append(entry))
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// Operation on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Write(usize),
    Sync,
}

/// Outcome of the next write.
#[derive(Debug)]
pub(crate) enum Write {
    Short(usize),
    Fail(io::ErrorKind),
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Op>,
    held: bool,
    writes: VecDeque<Write>,
    syncs: VecDeque<io::ErrorKind>,
    written: u64,
    synced: u64,
}

/// Real files with faults. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultyDisk(Arc<(Mutex<State>, Condvar)>);

impl FaultyDisk {
    pub(crate) fn options(&self, scratch: &Scratch) -> JournalOptions {
        let mut options = JournalOptions::new(&scratch.0);
        options.disk = Arc::new(self.clone());
        // Far off, for tests of what happens before.
        options.repair_interval = Duration::from_secs(3600);
        options
    }

    /// Lets syncs wait from now on, or go on.
    pub(crate) fn hold(&self, held: bool) {
        self.with(|state| state.held = held);
    }

    /// Sets the outcomes of the next writes.
    pub(crate) fn plan(&self, writes: impl IntoIterator<Item = Write>) {
        self.with(|state| state.writes.extend(writes));
    }

    /// Makes the next sync fail.
    pub(crate) fn fail_sync(&self, kind: io::ErrorKind) {
        self.with(|state| state.syncs.push_back(kind));
    }

    /// Returns the operations since the last call.
    pub(crate) fn take_log(&self) -> Vec<Op> {
        self.with(|state| std::mem::take(&mut state.log))
    }

    /// Waits until the log ends with a sync, which may be held up.
    pub(crate) fn wait_for_sync(&self) {
        let state = self.0.0.lock().unwrap();
        let waiting = |state: &mut State| state.log.last() != Some(&Op::Sync);
        let (_state, late) = self.0.1.wait_timeout_while(state, BOUND, waiting).unwrap();
        assert!(!late.timed_out(), "no sync came");
    }

    /// Returns the number of bytes that survive a power cut.
    pub(crate) fn synced(&self) -> u64 {
        self.with(|state| state.synced)
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let out = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        out
    }
}

impl SegmentDisk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(FaultySegment {
            disk: self.clone(),
            real: FileDisk.create(path)?,
        }))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(FaultySegment {
            disk: self.clone(),
            real: FileDisk.resume(path, length)?,
        }))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        FileDisk.sync_dir(path)
    }
}

struct FaultySegment {
    disk: FaultyDisk,
    real: Box<dyn OpenSegment>,
}

impl OpenSegment for FaultySegment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plan = self.disk.with(|state| {
            state.log.push(Op::Write(bytes.len()));
            state.writes.pop_front()
        });
        let written = match plan {
            None => self.real.write(bytes),
            Some(Write::Short(length)) => self.real.write(&bytes[..length.min(bytes.len())]),
            Some(Write::Fail(kind)) => Err(kind.into()),
        }?;
        self.disk.with(|state| state.written += written as u64);
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        let failure = self.disk.with(|state| {
            state.log.push(Op::Sync);
            state.syncs.pop_front()
        });
        let state = self.disk.0.0.lock().unwrap();
        drop(
            self.disk
                .0
                .1
                .wait_timeout_while(state, BOUND, |state| state.held)
                .unwrap(),
        );
        match failure {
            Some(kind) => Err(kind.into()),
            None => {
                self.real.sync()?;
                self.disk.with(|state| state.synced = state.written);
                Ok(())
            }
        }
    }
}
