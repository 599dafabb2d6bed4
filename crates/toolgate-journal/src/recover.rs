//! Recovery: continues a chain of an earlier process.

use crate::chain::LockedChain;
use crate::disk::{OpenSegment, SegmentDisk, open_private};
use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::mirror::last_lines;
use crate::notice::ChainDamage;
use crate::record::{ChainTip, utc_us};
use crate::segment_contents::{OpenCalls, SegmentContents};
use crate::verify::{self, ChainFindings, ChainReport, FaultPosition, RecordFault};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Chain that can be continued, and the first records of its new owner.
pub(crate) struct ChainTakeover {
    pub(crate) tip: ChainTip,
    pub(crate) segment: Box<dyn OpenSegment>,
    pub(crate) contents: SegmentContents,
    pub(crate) open_calls: OpenCalls,
    /// True if the last record is a seal without a successor segment.
    pub(crate) sealed: bool,
    /// Size in bytes of the torn write that was set aside.
    pub(crate) torn_bytes: u64,
    pub(crate) first_entries: Vec<AuditEntry>,
    /// Digest of `mac.key` that the chain stated last, or its first digits.
    pub(crate) mac_key: Option<String>,
}

/// Result of the attempt to continue a chain.
pub(crate) enum TakeoverAttempt {
    /// The chain can be continued.
    Ready(Box<ChainTakeover>),
    /// A sync failed in the chain; nothing is appended.
    Failed,
    /// The chain does not verify. It stays unchanged, and verifiers report it.
    Damaged(ChainDamage),
}

/// Verifies the end of a chain and cuts off a torn write.
pub(crate) fn take_over(
    chain: &LockedChain,
    disk: &dyn SegmentDisk,
    key: &str,
    place: Option<&Path>,
) -> Result<TakeoverAttempt, Error> {
    if chain.has_failed() {
        return Ok(TakeoverAttempt::Failed);
    }
    let kept = match place {
        Some(place) => last_lines(place, &chain.id)
            .map_err(|e| Error::open("read the checkpoint mirror", place, e))?,
        None => Vec::new(),
    };
    let ChainFindings { report, part } = verify::resume(&chain.dir, key, &kept);
    let torn = match &report.first_fault {
        None => 0,
        Some(bad) => match bad.fault {
            RecordFault::Torn { bytes } => bytes,
            _ => return Ok(TakeoverAttempt::Damaged(damage(chain, &report, bad))),
        },
    };
    let segment = open_last(chain, disk, &report, torn)?;
    let last = report.head.clone().map(|head| (report.records, head));
    let calls = report
        .open_calls
        .iter()
        .map(|open| (open.call.clone(), open.seg));
    let since = if part.since > 0 { part.since } else { utc_us() };
    Ok(TakeoverAttempt::Ready(Box::new(ChainTakeover {
        tip: ChainTip::new(&chain.id, report.end.0.max(1), last),
        segment,
        contents: SegmentContents::resumed(report.end.1, part.first, since, part.digest),
        open_calls: OpenCalls::from_calls(calls),
        sealed: part.sealed,
        torn_bytes: torn,
        first_entries: first_entries(&report, torn),
        mac_key: report.terms.and_then(|terms| terms.mac_key),
    })))
}

fn damage(chain: &LockedChain, report: &ChainReport, bad: &FaultPosition) -> ChainDamage {
    ChainDamage {
        chain: chain.id.clone(),
        records: report.records,
        head: report.head.clone().unwrap_or_default(),
        reason: format!("record {}: {}", bad.seq, bad.fault),
    }
}

/// Creates the first segment of a chain.
pub(crate) fn open_first(
    chain: &LockedChain,
    disk: &dyn SegmentDisk,
) -> Result<Box<dyn OpenSegment>, Error> {
    let path = chain.segment_path(1);
    let segment = disk
        .create(&path)
        .map_err(|e| Error::open("create the segment", &path, e))?;
    disk.sync_dir(&chain.dir)
        .map_err(|e| Error::open("sync the directory", &chain.dir, e))?;
    Ok(segment)
}

fn open_last(
    chain: &LockedChain,
    disk: &dyn SegmentDisk,
    found: &ChainReport,
    torn: u64,
) -> Result<Box<dyn OpenSegment>, Error> {
    let (seg, length) = found.end;
    if seg == 0 {
        return open_first(chain, disk);
    }
    let path = chain.segment_path(seg);
    if torn > 0 {
        preserve_torn(&path, length)
            .and_then(|()| disk.sync_dir(&chain.dir))
            .map_err(|e| Error::open("set aside the torn write at the end of", &path, e))?;
    }
    disk.resume(&path, length)
        .map_err(|e| Error::open("continue the segment", &path, e))
}

/// Returns `recovered`, and a `call.unknown` for each call without a recorded end.
fn first_entries(found: &ChainReport, torn: u64) -> Vec<AuditEntry> {
    let mut entries = Vec::new();
    if found.records > 0 || torn > 0 {
        entries.push(
            AuditEntry::new(AuditEvent::RECOVERED)
                .with("bytes", torn)
                .with("calls", found.open_calls.len()),
        );
    }
    let unknown = |call: &verify::OpenCall| {
        AuditEntry::new(AuditEvent::CALL_UNKNOWN)
            .with("call", call.call.as_str())
            .with("begin", call.seq)
    };
    entries.extend(found.open_calls.iter().map(unknown));
    entries
}

/// Copies everything after `length` to a file beside the segment.
fn preserve_torn(segment: &Path, length: u64) -> io::Result<()> {
    let mut from = File::open(segment)?;
    from.seek(SeekFrom::Start(length))?;
    let (name, mut to) = new_beside(segment, length)?;
    // An incomplete copy is useless, and each start on a full disk would leave one.
    io::copy(&mut from, &mut to)
        .and_then(|_| to.sync_all())
        .inspect_err(|_| drop(fs::remove_file(name)))
}

fn new_beside(segment: &Path, length: u64) -> io::Result<(PathBuf, File)> {
    for attempt in 0..1000 {
        let name: PathBuf = segment.with_extension(format!("torn-{length}-{attempt}"));
        match open_private(&name, true) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (name, file)),
        }
    }
    Err(io::Error::other(
        "there are already 1000 files *.torn-N with torn writes; find out why the program crashes, and move these files away",
    ))
}
