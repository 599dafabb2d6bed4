//! Targets of the audit log and of the state store.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};
use toolgate_journal::{read, verify};
use toolgate_policy::StateStore;
use toolgate_store::{DatabaseStore, StoreLimits};
use toolgate_verify::VerifyOptions;

/// Name of the chain whose segment is the input.
const CHAIN: &str = "01a2054f9bd5-d22783985e46d223";

/// Lines of an audit log: both verifiers agree which spelling of a record is canonical.
pub fn audit_line(bytes: &[u8]) {
    let journal = toolgate_journal::__fuzz::is_canonical_line(bytes);
    let independent = toolgate_verify::__fuzz::is_canonical_line(bytes);
    assert_eq!(journal, independent, "the verifiers disagree");
}

/// Directory that is removed at the end.
struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// Creates an empty directory; `None` if the system refuses.
    fn create() -> Option<ScratchDirectory> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (pid, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let memory = Path::new("/dev/shm");
        let root = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let path = root.join(format!("toolgate-fuzz-{pid}-{number}"));
        fs::create_dir(&path).ok()?;
        Some(ScratchDirectory(path))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Readers of a segment: both verifiers agree whether the log is damaged, and the readers of the log stop at no line.
pub fn audit_segment(bytes: &[u8]) {
    let Some(scratch) = ScratchDirectory::create() else {
        return;
    };
    let dir = &scratch.0;
    let chain = dir.join(CHAIN);
    if fs::create_dir(&chain).is_err()
        || fs::write(chain.join("seg-00000001.jsonl"), bytes).is_err()
    {
        return;
    }
    let journal =
        verify::verify(dir).map(|report| report.chains.iter().any(|c| c.first_fault.is_some()));
    let independent = toolgate_verify::verify(dir, &VerifyOptions::default())
        .map(|report| report.chains.iter().any(|c| c.first_bad.is_some()));
    assert_eq!(journal.ok(), independent.ok(), "the verifiers disagree");
    let lines = read::tail(dir, 8);
    assert!(lines.is_ok_and(|lines| lines.len() <= 8));
    assert!(read::AuditFollower::from_start(dir).poll().is_ok());
}

/// Lines of the state: what is read is written to a line that is read to the same.
pub fn state_line(bytes: &[u8]) {
    let Some(line) = toolgate_store::__fuzz::state_line(bytes) else {
        return;
    };
    let body = line
        .as_bytes()
        .get(..line.len() - ",\"h\":\"0123456789abcdef\"}\n".len());
    let again = body.and_then(toolgate_store::__fuzz::state_line);
    assert_eq!(again.as_ref(), Some(&line), "not stable");
}

/// Reader of the state file of earlier versions.
pub fn state_file(bytes: &[u8]) {
    let Some(scratch) = ScratchDirectory::create() else {
        return;
    };
    if fs::write(scratch.0.join("state.jsonl"), bytes).is_err() {
        return;
    }
    match DatabaseStore::open(&scratch.0, StoreLimits::default()) {
        Ok(state) => drop(state.entries("pins")),
        Err(error) => assert!(!error.detail().is_empty()),
    }
}
