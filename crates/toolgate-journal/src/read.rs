//! Readers of the newest records, which do not load whole files.

mod files;

pub use files::{SegmentFile, segment_files};

use crate::chain;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use toolgate_protocol::json::Json;

const READ_BLOCK_BYTES: u64 = 64 * 1024;

/// Maximum number of bytes that a follower reads of one chain per poll.
const MAX_POLL_BYTES: u64 = 1024 * 1024;

/// Maximum length of a line in bytes. A longer one is not from the journal and is skipped in pieces.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Line of an audit log segment, parsed as a record but not verified.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SegmentLine {
    /// Id of the hash chain that the line belongs to, from its directory.
    pub chain: String,
    /// Sequence number of the record in its chain; 0 if the line cannot be parsed.
    pub seq: u64,
    /// Write time of the record in microseconds since the Unix epoch; 0 if the line cannot be parsed.
    pub ts: u64,
    /// Event type of the record; `unreadable` if the line is not a JSON object.
    pub event: String,
    /// All members of the record, including `seq` and `ev`.
    pub fields: Map<String, Value>,
    /// Line as stored in the segment, without its newline.
    pub raw: String,
}

impl SegmentLine {
    fn parse(chain: &str, bytes: &[u8]) -> Self {
        let raw = String::from_utf8_lossy(bytes).into_owned();
        let record = Json::read_stored(raw.as_bytes()).map(|record| record.to_value());
        let fields = match record {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let number = |name| fields.get(name).and_then(Value::as_u64).unwrap_or(0);
        let event = fields
            .get("ev")
            .and_then(Value::as_str)
            .unwrap_or("unreadable");
        Self {
            chain: chain.to_owned(),
            seq: number("seq"),
            ts: number("ts"),
            event: event.to_owned(),
            raw,
            fields,
        }
    }
}

/// Returns the last `count` records of an audit log directory, sorted by time, and within a chain by sequence number.
///
/// # Errors
/// A directory or file cannot be read.
pub fn tail(dir: &Path, count: usize) -> io::Result<Vec<SegmentLine>> {
    AuditFollower::with_tail(dir, count).map(|(lines, _)| lines)
}

/// Follower of an audit log directory: returns new records of all chains, including new chains.
#[derive(Debug)]
pub struct AuditFollower {
    dir: PathBuf,
    /// Per chain, the segment and the offset after the last complete line that was read.
    positions: BTreeMap<String, (u64, u64)>,
}

impl AuditFollower {
    /// Creates a follower that starts at the first record of every chain, for a full search.
    pub fn from_start(dir: &Path) -> Self {
        let (dir, places) = (dir.to_owned(), BTreeMap::new());
        Self {
            dir,
            positions: places,
        }
    }

    /// Creates a follower that starts at the current end of every chain.
    ///
    /// # Errors
    /// A directory or file cannot be read.
    pub fn from_end(dir: &Path) -> io::Result<Self> {
        Self::with_tail(dir, 0).map(|(_, follower)| follower)
    }

    /// Returns the last `count` records and a follower that starts right after them, without gap and overlap.
    ///
    /// # Errors
    /// A directory or file cannot be read.
    pub fn with_tail(dir: &Path, count: usize) -> io::Result<(Vec<SegmentLine>, Self)> {
        let (mut places, mut lines) = (BTreeMap::new(), Vec::new());
        for id in chain::ids(dir)? {
            let (place, last) = chain_tail(dir, &id, count)?;
            places.insert(id, place);
            lines.extend(last);
            lines = merge(lines, count);
        }
        Ok((
            lines,
            Self {
                dir: dir.to_owned(),
                positions: places,
            },
        ))
    }

    /// Returns the records added since the last poll, at most about 1 MiB of each chain.
    ///
    /// # Errors
    /// A directory or file cannot be read. The next call then returns the same lines.
    pub fn poll(&mut self) -> io::Result<Vec<SegmentLine>> {
        let mut lines = Vec::new();
        for id in chain::ids(&self.dir)? {
            let start = || (first_segment(&self.dir, &id), 0);
            let place = self.positions.get(&id).copied().unwrap_or_else(start);
            let (place, added) = read_on(&self.dir, &id, place)?;
            self.positions.insert(id, place);
            lines.extend(added);
        }
        let count = lines.len();
        Ok(merge(lines, count))
    }
}

/// Sorts by time, but never against the order within a chain, and returns the last `count`.
fn merge(lines: Vec<SegmentLine>, count: usize) -> Vec<SegmentLine> {
    let mut latest: BTreeMap<String, u64> = BTreeMap::new();
    let mut keyed: Vec<(u64, SegmentLine)> = Vec::with_capacity(lines.len());
    for line in lines {
        // A clock that was set back must not reverse records of a chain.
        let top = latest.entry(line.chain.clone()).or_default();
        *top = line.ts.max(*top);
        keyed.push((*top, line));
    }
    // The sort is stable, which preserves the order within a chain.
    keyed.sort_by_key(|(ts, _)| *ts);
    let skip = keyed.len().saturating_sub(count);
    keyed.into_iter().skip(skip).map(|(_, line)| line).collect()
}

/// Returns the end position of a chain and its last lines.
fn chain_tail(dir: &Path, id: &str, count: usize) -> io::Result<((u64, u64), Vec<SegmentLine>)> {
    let last = last_segment(dir, id);
    let (mut place, mut lines) = ((last.max(1), 0), Vec::new());
    for seg in (1..=last).rev() {
        let Some(mut file) = open(dir, id, seg)? else {
            break;
        };
        let (end, mut found) = last_lines(&mut file, count - lines.len())?;
        if seg == last {
            place.1 = end;
        }
        found.append(&mut lines);
        lines = found;
        if lines.len() >= count {
            break;
        }
    }
    Ok((
        place,
        lines
            .iter()
            .map(|line| SegmentLine::parse(id, line))
            .collect(),
    ))
}

/// Returns the offset after the last newline of a file, and the last complete lines before it.
fn last_lines(file: &mut File, count: usize) -> io::Result<(u64, Vec<Vec<u8>>)> {
    let mut start = file.metadata()?.len();
    let mut bytes: Vec<u8> = Vec::new();
    // One newline more than lines: the newline that ends the preceding line.
    while start > 0 && bytes.iter().filter(|b| **b == b'\n').count() <= count {
        let step = READ_BLOCK_BYTES.min(start);
        start -= step;
        let mut block = vec![0; usize::try_from(step).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        block.append(&mut bytes);
        bytes = block;
    }
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let end = start + whole as u64;
    let mut lines: Vec<&[u8]> = bytes[..whole].split(|b| *b == b'\n').collect();
    lines.pop();
    let skip = lines.len().saturating_sub(count);
    Ok((
        end,
        lines
            .split_off(skip)
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect(),
    ))
}

/// Reads complete lines from a position on, and returns them with the next position.
fn read_on(
    dir: &Path,
    id: &str,
    mut place: (u64, u64),
) -> io::Result<((u64, u64), Vec<SegmentLine>)> {
    // The segment may have been retired before it was read completely.
    if place.0 < first_segment(dir, id) {
        place = (first_segment(dir, id), 0);
    }
    let Some(mut lines) = read_segment(dir, id, &mut place)? else {
        return Ok((place, Vec::new()));
    };
    // A segment is complete once it has a successor.
    while lines.is_empty() && place.0 < last_segment(dir, id) {
        place = (place.0 + 1, 0);
        lines = read_segment(dir, id, &mut place)?.unwrap_or_default();
    }
    Ok((place, lines))
}

fn read_segment(
    dir: &Path,
    id: &str,
    place: &mut (u64, u64),
) -> io::Result<Option<Vec<SegmentLine>>> {
    let Some(mut file) = open(dir, id, place.0)? else {
        return Ok(None);
    };
    // Recovery may have cut off a torn write.
    place.1 = place.1.min(file.metadata()?.len());
    file.seek(SeekFrom::Start(place.1))?;
    let mut input = BufReader::new(file);
    let (mut lines, start) = (Vec::new(), place.1);
    while place.1 - start < MAX_POLL_BYTES {
        let mut line = Vec::new();
        let length = input
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)? as u64;
        if line.last() != Some(&b'\n') && length < MAX_LINE_BYTES {
            break;
        }
        place.1 += length;
        lines.push(SegmentLine::parse(
            id,
            line.strip_suffix(b"\n").unwrap_or(&line),
        ));
    }
    Ok(Some(lines))
}

fn open(dir: &Path, id: &str, seg: u64) -> io::Result<Option<File>> {
    match File::open(dir.join(id).join(chain::segment_name(seg))) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Returns the number of the last segment; 0 if there is none.
fn last_segment(dir: &Path, id: &str) -> u64 {
    segments(dir, id).max().unwrap_or(0)
}

/// Returns the number of the first segment that was not retired; 1 if there is none.
fn first_segment(dir: &Path, id: &str) -> u64 {
    segments(dir, id).min().unwrap_or(1)
}

fn segments(dir: &Path, id: &str) -> impl Iterator<Item = u64> {
    let entries = std::fs::read_dir(dir.join(id)).into_iter().flatten();
    entries.filter_map(|entry| chain::segment_number(entry.ok()?.file_name().to_str()?))
}
