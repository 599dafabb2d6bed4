//! Recovery: continues a chain of an earlier process.

use crate::chain::Chain;
use crate::contents::{Contents, OpenCalls};
use crate::disk::{Disk, Segment, private};
use crate::entry::{Entry, Event};
use crate::error::Error;
use crate::notice::Damage;
use crate::place::last_lines;
use crate::record::{Tip, utc_us};
use crate::verify::{self, Bad, ChainReport, Fault, Found};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Chain that can be continued, and the first records of its new owner.
pub(crate) struct Takeover {
    pub(crate) tip: Tip,
    pub(crate) segment: Box<dyn Segment>,
    pub(crate) file: Contents,
    pub(crate) open: OpenCalls,
    /// True if the last record is a seal without a successor segment.
    pub(crate) sealed: bool,
    /// Size in bytes of the torn write that was set aside.
    pub(crate) torn: u64,
    pub(crate) first: Vec<Entry>,
    /// Digest of `mac.key` that the chain stated last, or its first digits.
    pub(crate) mac_key: Option<String>,
}

/// Result of the attempt to continue a chain.
pub(crate) enum Attempt {
    /// The chain can be continued.
    Ready(Box<Takeover>),
    /// A sync failed in the chain; nothing is appended.
    Failed,
    /// The chain does not verify. It stays unchanged, and verifiers report it.
    Damaged(Damage),
}

/// Verifies the end of a chain and cuts off a torn write.
pub(crate) fn take_over(
    chain: &Chain,
    disk: &dyn Disk,
    key: &str,
    place: Option<&Path>,
) -> Result<Attempt, Error> {
    if chain.has_failed() {
        return Ok(Attempt::Failed);
    }
    let kept = match place {
        Some(place) => last_lines(place, &chain.id)
            .map_err(|e| Error::open("read the checkpoint mirror", place, e))?,
        None => Vec::new(),
    };
    let Found { report, part } = verify::resume(&chain.dir, key, &kept);
    let torn = match &report.bad {
        None => 0,
        Some(bad) => match bad.what {
            Fault::Torn { bytes } => bytes,
            _ => return Ok(Attempt::Damaged(damage(chain, &report, bad))),
        },
    };
    let segment = open_last(chain, disk, &report, torn)?;
    let last = report.head.clone().map(|head| (report.records, head));
    let calls = report.open.iter().map(|open| (open.call.clone(), open.seg));
    let since = if part.since > 0 { part.since } else { utc_us() };
    Ok(Attempt::Ready(Box::new(Takeover {
        tip: Tip::new(&chain.id, report.end.0.max(1), last),
        segment,
        file: Contents::resumed(report.end.1, part.first, since, part.digest),
        open: OpenCalls::of(calls),
        sealed: part.sealed,
        torn,
        first: first_entries(&report, torn),
        mac_key: report.terms.and_then(|terms| terms.mac_key),
    })))
}

fn damage(chain: &Chain, report: &ChainReport, bad: &Bad) -> Damage {
    Damage {
        chain: chain.id.clone(),
        records: report.records,
        head: report.head.clone().unwrap_or_default(),
        why: format!("record {}: {}", bad.seq, bad.what),
    }
}

/// Creates the first segment of a chain.
pub(crate) fn open_first(chain: &Chain, disk: &dyn Disk) -> Result<Box<dyn Segment>, Error> {
    let path = chain.segment(1);
    let segment = disk
        .create(&path)
        .map_err(|e| Error::open("create the segment", &path, e))?;
    disk.sync_dir(&chain.dir)
        .map_err(|e| Error::open("sync the directory", &chain.dir, e))?;
    Ok(segment)
}

fn open_last(
    chain: &Chain,
    disk: &dyn Disk,
    found: &ChainReport,
    torn: u64,
) -> Result<Box<dyn Segment>, Error> {
    let (seg, length) = found.end;
    if seg == 0 {
        return open_first(chain, disk);
    }
    let path = chain.segment(seg);
    if torn > 0 {
        set_aside(&path, length)
            .and_then(|()| disk.sync_dir(&chain.dir))
            .map_err(|e| Error::open("set aside the torn write at the end of", &path, e))?;
    }
    disk.resume(&path, length)
        .map_err(|e| Error::open("continue the segment", &path, e))
}

/// Returns `recovered`, and a `call.unknown` for each call without a recorded end.
fn first_entries(found: &ChainReport, torn: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    if found.records > 0 || torn > 0 {
        entries.push(
            Entry::new(Event::RECOVERED)
                .with("bytes", torn)
                .with("calls", found.open.len()),
        );
    }
    let unknown = |call: &verify::OpenCall| {
        Entry::new(Event::CALL_UNKNOWN)
            .with("call", call.call.as_str())
            .with("begin", call.seq)
    };
    entries.extend(found.open.iter().map(unknown));
    entries
}

/// Copies everything after `length` to a file beside the segment.
fn set_aside(segment: &Path, length: u64) -> io::Result<()> {
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
        match private(&name, true) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (name, file)),
        }
    }
    Err(io::Error::other(
        "there are a thousand torn writes already; find out why the program crashes",
    ))
}
