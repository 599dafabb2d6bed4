//! Verifier of an audit log, from its bytes alone.
//!
//! The verifier shares no code with the writer, so that it detects a fault of the writer instead of repeating it. It
//! has its own parser, which accepts only canonical JSON, cuts the text of `h` out of the line and hashes the rest
//! unchanged.

mod chain_scan;
mod checkpoints;
mod mirrors;
pub(crate) mod record_line;
mod record_link;
mod report;
mod resume;
mod rules;
mod terms;

#[doc(hidden)]
pub use record_link::RecordLink;
pub use report::{
    AuditReport, AuditVerdict, ChainReport, FaultPosition, MissingEvidence, OpenCall, RecordFault,
};

pub(crate) use chain_scan::ChainFindings;
use chain_scan::ChainScan;
use checkpoints::MirrorCheckpoints;
use mirrors::{MirrorPaths, canonical_path};
pub(crate) use resume::resume;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Verifies every chain of an audit log directory, with the key in the directory and the mirrors that are found.
///
/// # Errors
/// The directory cannot be listed. Damage inside is in the report.
pub fn verify(dir: &Path) -> io::Result<AuditReport> {
    AuditCheck::new(dir).run()
}

/// Verification of an audit log directory, with the public keys and mirrors to check it against.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditCheck {
    /// Audit log directory.
    pub dir: PathBuf,
    /// Public keys that may have signed checkpoints, 64 hexadecimal digits each. Without any, the key in the directory
    /// counts, which proves nothing against an attacker who can read it.
    pub keys: Vec<String>,
    /// Checkpoint mirrors: files, or directories of files. Without any, `checkpoints` beside the directory and the
    /// mirrors that the chains name count.
    pub mirrors: Vec<PathBuf>,
    /// Checkpoints that others kept, as lines of a mirror. Those that a key of the log signed count like a mirror.
    pub witnesses: Vec<String>,
}

impl AuditCheck {
    /// Creates a verification of an audit log directory with default keys and mirrors.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            keys: Vec::new(),
            mirrors: Vec::new(),
            witnesses: Vec::new(),
        }
    }

    /// Verifies every chain of the audit log and returns a report. Memory use does not grow with the log.
    ///
    /// # Errors
    /// The directory or a mirror cannot be read. Damage inside is in the report.
    pub fn run(&self) -> io::Result<AuditReport> {
        let mut keys = self.keys.clone();
        if keys.is_empty() {
            keys.extend(crate::sign::existing_public_key(&self.dir));
        }
        let mut mirrors = MirrorPaths::of(&self.dir, &self.mirrors);
        loop {
            let report = self.against(&mirrors.paths, &keys)?;
            // A later start may have named another mirror, which is compared as well.
            let named = report
                .chains
                .iter()
                .filter_map(|chain| chain.named_mirror());
            if !self.mirrors.is_empty() || !mirrors.add(named) {
                return Ok(report);
            }
        }
    }

    fn against(&self, mirrors: &[PathBuf], keys: &[String]) -> io::Result<AuditReport> {
        // Read before the chains: otherwise a chain that grows meanwhile would seem to be behind its mirror.
        let mut kept = MirrorCheckpoints::read(mirrors, keys)?;
        kept.add_witnesses(&self.witnesses, keys);
        let homes = chain_directories(&self.dir, mirrors)?;
        let judge = |home: &PathBuf| verify_chain(home, keys.to_vec(), &mut kept);
        let mut chains: Vec<_> = homes.iter().map(judge).collect();
        for chain in chains
            .iter_mut()
            .filter(|chain| chain.first_fault.is_none())
        {
            chain.missing_evidence = doubts(chain, mirrors, keys);
        }
        let mac_key_exchanged = is_mac_key_exchanged(&self.dir, &chains);
        let gone = std::mem::take(&mut kept.chains);
        chains.extend(
            gone.into_iter()
                .map(|(chain, marks)| removed_chain(&self.dir, chain, &marks)),
        );
        Ok(AuditReport {
            chains,
            has_mirror: !mirrors.is_empty(),
            unreadable_lines: kept.unreadable_lines,
            foreign_lines: kept.foreign_lines,
            mac_key_exchanged,
        })
    }
}

/// Returns the missing evidence that could reveal damage.
fn doubts(chain: &ChainReport, mirrors: &[PathBuf], keys: &[String]) -> Vec<MissingEvidence> {
    let mut doubts = Vec::new();
    if keys.is_empty() {
        doubts.push(MissingEvidence::NoKey);
    }
    if chain.unbounded {
        let records = chain.unsigned;
        doubts.push(MissingEvidence::Unbounded { records });
    }
    let named = chain.named_mirror();
    // Older versions do not name their mirror, so an existing one counts as theirs.
    let states = chain
        .terms
        .as_ref()
        .is_some_and(|terms| terms.bounds.is_some());
    let expected = named.is_some() || (!states && !mirrors.is_empty());
    // The mirror is read before the chains, so it lacks the first checkpoint of a chain that starts in between.
    let begins = chain.live && chain.checkpoints <= 1;
    if expected && !chain.covered && !begins && chain.records > 0 {
        doubts.push(MissingEvidence::NoMirror { named });
    }
    doubts
}

/// Returns whether no chain states the `mac.key` of the directory. `None` for a copy of the log without the key.
fn is_mac_key_exchanged(dir: &Path, chains: &[ChainReport]) -> Option<bool> {
    let digest = crate::key::existing_digest(dir)?;
    let stated = chains.iter().filter_map(|chain| chain.terms.as_ref());
    let mut stated = stated
        .filter_map(|terms| terms.mac_key.as_deref())
        .peekable();
    stated.peek()?;
    Some(!stated.any(|stated| digest.starts_with(stated)))
}

/// Returns the directories of the chains. The mirror may be among them, though it is better elsewhere.
fn chain_directories(dir: &Path, mirrors: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut homes = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !mirrors.contains(&canonical_path(&entry.path())) {
            homes.push(entry.path());
        }
    }
    homes.sort();
    Ok(homes)
}

/// Returns the last signed checkpoint of each chain among lines of a mirror.
pub(crate) fn last_checkpoints(lines: &[Vec<u8>], key: &str) -> BTreeMap<String, (u64, String)> {
    let keys = [key.to_owned()];
    let mut kept = MirrorCheckpoints::default();
    lines.iter().for_each(|line| kept.line(line, &keys));
    let chains = kept.chains.into_iter();
    chains
        .filter_map(|(chain, mut marks)| Some((chain, marks.pop_last()?)))
        .collect()
}

/// Verifies one chain, which must not be empty unless a process is about to write it.
fn verify_chain(home: &Path, keys: Vec<String>, kept: &mut MirrorCheckpoints) -> ChainReport {
    let mut walk = ChainScan::new(home, is_locked(home), keys, kept);
    let read = segment_files(home).map_err(|cause| (home.to_owned(), cause));
    if let Err((file, cause)) = read.and_then(|files| walk.files(files)) {
        walk.fail(&file, 0, RecordFault::Unreadable(cause.to_string()));
    }
    let mut report = walk.finish().report;
    // A chain with a failed sync is never repaired: its end may be torn.
    let torn = report.first_fault.as_ref().and_then(|bad| match bad.fault {
        RecordFault::Torn { bytes } => Some(bytes),
        _ => None,
    });
    if let Some(bytes) = torn.filter(|_| home.join("failed").exists() && report.records > 0) {
        report.first_fault = None;
        report.torn_bytes += bytes;
    }
    if report.records == 0 && report.first_fault.is_none() && !report.live {
        report.first_fault = Some(FaultPosition::of(home, 0, 1, RecordFault::Empty));
    }
    report
}

/// Reports a chain of which only the checkpoints are left.
fn removed_chain(dir: &Path, chain: String, marks: &BTreeMap<u64, String>) -> ChainReport {
    let kept = marks.keys().next_back().copied().unwrap_or(0);
    ChainReport {
        first_fault: Some(FaultPosition::of(
            &dir.join(&chain),
            0,
            1,
            RecordFault::Cut { kept },
        )),
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

/// Returns the segment files of a chain by number.
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
