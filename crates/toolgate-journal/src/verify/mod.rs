//! Checks a journal from its bytes alone.
//!
//! This reader shares no code with the writer: it has its own parser, which accepts only canonical JSON, cuts the
//! text of `h` out of the line, and hashes the rest as it stands. A fault of the writer is thus found, not repeated.

mod report;
mod resume;
mod rules;
mod scan;
mod signed;
mod walk;

pub use report::{Bad, ChainReport, Fault, OpenCall, Report};

pub(crate) use resume::resume;
use rustix::fs::{FlockOperation, flock};
use signed::Kept;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
pub(crate) use walk::Found;
use walk::Walk;

/// Reads every chain of a journal folder and says what it found, with the key that lies there and no second place.
///
/// # Errors
/// Only if the folder itself cannot be listed; what is wrong inside is in the report.
pub fn verify(dir: &Path) -> io::Result<Report> {
    Check::new(dir).run()
}

/// What is checked, and against what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Check {
    /// The journal folder.
    pub dir: PathBuf,
    /// Public keys that may have signed checkpoints, 64 hexadecimal digits each. Where there are none, the key that
    /// lies in the folder counts, which proves nothing against those who can read it.
    pub keys: Vec<String>,
    /// Second places of the checkpoints: files, or folders of files.
    pub places: Vec<PathBuf>,
}

impl Check {
    /// A check of that folder.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            keys: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Reads every chain and says what it found. Memory does not grow with the log.
    ///
    /// # Errors
    /// If the folder or a second place cannot be read; what is wrong inside is in the report.
    pub fn run(&self) -> io::Result<Report> {
        let mut keys = self.keys.clone();
        if keys.is_empty() {
            keys.extend(crate::sign::existing(&self.dir));
        }
        // Before the chains: one that grows meanwhile must not seem to be behind.
        let mut kept = Kept::read(&self.places, &keys)?;
        let mut homes = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            // The second place may be in the folder, though it is better elsewhere.
            if entry.file_type()?.is_dir() && !self.places.contains(&entry.path()) {
                homes.push(entry.path());
            }
        }
        homes.sort();
        let judge = |home: &PathBuf| judge(home, keys.clone(), &mut kept);
        let mut chains: Vec<_> = homes.iter().map(judge).collect();
        let gone = std::mem::take(&mut kept.chains);
        chains.extend(
            gone.into_iter()
                .map(|(chain, marks)| removed(&self.dir, chain, &marks)),
        );
        Ok(Report {
            chains,
            second_place: !self.places.is_empty(),
            unreadable: kept.unreadable,
            foreign: kept.foreign,
        })
    }
}

/// Checks one chain, which must not be empty unless somebody is about to write it.
fn judge(home: &Path, keys: Vec<String>, kept: &mut Kept) -> ChainReport {
    let mut walk = Walk::new(home, is_locked(home), keys, kept);
    let read = segment_files(home).map_err(|cause| (home.to_owned(), cause));
    if let Err((file, cause)) = read.and_then(|files| walk.files(files)) {
        walk.fail(&file, 0, Fault::Unreadable(cause.to_string()));
    }
    let mut report = walk.finish().report;
    // A chain whose sync failed is never mended: its end may be torn.
    let torn = report.bad.as_ref().and_then(|bad| match bad.what {
        Fault::Torn { bytes } => Some(bytes),
        _ => None,
    });
    if let Some(bytes) = torn.filter(|_| home.join("failed").exists() && report.records > 0) {
        report.bad = None;
        report.set_aside += bytes;
    }
    if report.records == 0 && report.bad.is_none() && !report.live {
        report.bad = Some(Bad::of(home, 0, 1, Fault::Empty));
    }
    report
}

/// A chain of which only the checkpoints are left.
fn removed(dir: &Path, chain: String, marks: &BTreeMap<u64, String>) -> ChainReport {
    let kept = marks.keys().next_back().copied().unwrap_or(0);
    ChainReport {
        bad: Some(Bad::of(&dir.join(&chain), 0, 1, Fault::Cut { kept })),
        chain,
        ..ChainReport::default()
    }
}

fn is_locked(home: &Path) -> bool {
    let Ok(file) = File::open(home.join("lock")) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// The files `seg-….jsonl` of a chain by their numbers.
fn segment_files(home: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let number = name
            .strip_prefix("seg-")
            .and_then(|rest| rest.strip_suffix(".jsonl"));
        if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
