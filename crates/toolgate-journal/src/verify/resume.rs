//! Verification of the end of a chain, for recovery: a seal covers older segments, which are not read again.

use super::chain_scan::{ChainFindings, ChainScan, SegmentIoError};
use super::record_line::RecordLine;
use super::rules::check_hash;
use super::{checkpoints::MirrorCheckpoints, segment_files};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum size of a seal in bytes.
const MAX_SEAL_BYTES: u64 = 16 * 1024;

/// Seal of the previous segment: the position and hash at which a segment starts.
struct SegmentSeal {
    seq: u64,
    hash: String,
    open_from: Option<u64>,
}

/// Verifies the last segment, and the earlier ones in which an open call may have begun.
///
/// `kept` are the last lines of the checkpoint mirror.
pub(crate) fn resume(home: &Path, key: &str, kept: &[Vec<u8>]) -> ChainFindings {
    let keys = vec![key.to_owned()];
    let mut seen = MirrorCheckpoints::default();
    kept.iter().for_each(|line| seen.line(line, &keys));
    let mut walk = ChainScan::new(home, false, keys.clone(), &mut seen);
    if let Err((file, cause)) = from_the_last_seal(&mut walk, home) {
        walk.fail(&file, 0, super::RecordFault::Unreadable(cause.to_string()));
    }
    let mut found = walk.finish();
    // The bounds of the unsigned end are in an older segment.
    if found.report.unbounded && found.report.first_record > 1 {
        let mut seen = MirrorCheckpoints::default();
        kept.iter().for_each(|line| seen.line(line, &keys));
        let mut walk = ChainScan::new(home, false, keys, &mut seen);
        let files = segment_files(home).map_err(|cause| (home.to_owned(), cause));
        if let Err((file, cause)) = files.and_then(|files| walk.files(files)) {
            walk.fail(&file, 0, super::RecordFault::Unreadable(cause.to_string()));
        }
        found = walk.finish();
    }
    found
}

fn from_the_last_seal(walk: &mut ChainScan, home: &Path) -> Result<(), SegmentIoError> {
    let at_home = |cause| (home.to_owned(), cause);
    let files = segment_files(home).map_err(at_home)?;
    let start = start(&files).map_err(at_home)?;
    if let Some((index, seal)) = start {
        walk.begin_after(seal.0, seal.1.seq, seal.1.hash);
        return walk.files(files.into_iter().skip(index).collect());
    }
    walk.files(files)
}

/// Returns the index in `files` to start at, and the number and seal of the previous segment.
fn start(files: &[(u64, PathBuf)]) -> io::Result<Option<(usize, (u64, SegmentSeal))>> {
    let Some(mut index) = files.len().checked_sub(1) else {
        return Ok(None);
    };
    // The seal before the last segment states how far back open calls go.
    let Some(last_seal) = before(files, index)? else {
        return Ok(None);
    };
    while index > 0
        && last_seal
            .open_from
            .is_some_and(|seg| files.get(index).is_some_and(|(number, _)| *number > seg))
    {
        index -= 1;
    }
    Ok(before(files, index)?.map(|seal| (index, (files[index - 1].0, seal))))
}

fn before(files: &[(u64, PathBuf)], index: usize) -> io::Result<Option<SegmentSeal>> {
    match index.checked_sub(1).and_then(|at| files.get(at)) {
        Some((_, file)) => seal(file),
        None => Ok(None),
    }
}

/// Returns the last record of a file if it is a seal.
fn seal(file: &Path) -> io::Result<Option<SegmentSeal>> {
    let mut input = File::open(file)?;
    let length = input.metadata()?.len();
    input.seek(SeekFrom::Start(length.saturating_sub(MAX_SEAL_BYTES)))?;
    let mut bytes = Vec::new();
    input.take(MAX_SEAL_BYTES).read_to_end(&mut bytes)?;
    let Some(lines) = bytes.strip_suffix(b"\n") else {
        return Ok(None);
    };
    let line = lines.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let Ok(record) = RecordLine::parse(line) else {
        return Ok(None);
    };
    if record.text("ev").as_deref() != Some("segment.sealed") {
        return Ok(None);
    }
    let hash = check_hash(&record).ok();
    Ok(hash
        .zip(record.number("seq"))
        .map(|(hash, seq)| SegmentSeal {
            seq,
            hash,
            open_from: record.number("open_from"),
        }))
}
