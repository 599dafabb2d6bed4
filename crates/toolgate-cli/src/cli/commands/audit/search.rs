//! `toolgate audit search`: matching records, oldest first.
//!
//! Sealed segments are looked up in an index, open segments are scanned. The index only supplies positions: every line
//! is
//! read from its segment and checked.

use super::{ContentDecryption, Result, period_start, print, readable, unreadable};
use crate::{
    args::AuditSearchOptions,
    audit_index::{AuditIndex, PositionFilter, RecordPosition},
    cli::progress::ProgressLine,
};
use serde_json::Value;
use std::{collections::BTreeMap, io, path::Path, process::ExitCode};
use toolgate_journal::read::{self, SegmentFile, SegmentLine};

/// Output buffer size in bytes.
const OUTPUT_CHUNK_BYTES: usize = 1024 * 1024;

/// Prints the records that match all filters.
pub(super) fn run(
    data: &Path,
    dir: &Path,
    wanted: &AuditSearchOptions,
    contents: &ContentDecryption<'_>,
) -> Result<ExitCode> {
    let from = wanted.since.map_or(0, period_start);
    let files = read::segment_files(dir).map_err(unreadable(dir))?;
    let mut hits = Vec::new();
    // The index covers only these filters; for others every line is read.
    let by_index = wanted.tool.is_some() || wanted.caller.is_some() || wanted.server.is_some();
    let mut index = match by_index && !wanted.no_index {
        true => AuditIndex::open(data),
        false => None,
    };
    let by_name = PositionFilter {
        tool: wanted.tool.as_deref(),
        caller: wanted.caller.as_deref(),
        server: wanted.server.as_deref(),
    };
    let progress = ProgressLine::start("Searching the audit log");
    for (at, file) in files.iter().enumerate() {
        let count = files.len();
        progress.set(format!("Searching segment {} of {count}", at + 1));
        let found = index
            .as_mut()
            .filter(|_| file.sealed)
            .and_then(|index| index.find(at, file, &by_name));
        match found {
            Some(found) => hits.extend(found),
            None => {
                let scanned = scan((at, file), (wanted, from), contents);
                hits.extend(scanned.map_err(unreadable(dir))?);
            }
        }
    }
    drop(progress);
    if let Some(mut index) = index {
        index.retain_segments(&files);
    }
    let hits = sort_by_time(&files, hits);
    print_matches(&files, hits, (wanted, from), contents).map_err(unreadable(dir))?
}

/// Scans a whole segment.
fn scan(
    (number, file): (usize, &SegmentFile),
    (wanted, from): (&AuditSearchOptions, u64),
    contents: &ContentDecryption<'_>,
) -> io::Result<Vec<RecordPosition>> {
    let mut hits = Vec::new();
    let read = file.lines(|at, mut line| {
        // Only a text may be in the contents.
        if wanted.text.is_some() {
            contents.reveal(&mut line);
        }
        if matches_filters(&line, wanted, from) {
            let (ts, file) = (line.ts, number);
            hits.push(RecordPosition {
                ts,
                file,
                offset: at,
            });
        }
        Ok(())
    });
    match read {
        // The segment was deleted meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(hits),
        other => other.map(|()| hits),
    }
}

/// Sorts by time, but keeps the order of each chain: a clock may have been set back.
fn sort_by_time(files: &[SegmentFile], mut hits: Vec<RecordPosition>) -> Vec<RecordPosition> {
    let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &mut hits {
        let top = latest.entry(&files[hit.file].chain).or_default();
        *top = hit.ts.max(*top);
        hit.ts = *top;
    }
    hits.sort_by_key(|hit| hit.ts);
    hits
}

/// Reads the line at each position, and prints the matching ones.
fn print_matches(
    files: &[SegmentFile],
    hits: Vec<RecordPosition>,
    (wanted, from): (&AuditSearchOptions, u64),
    contents: &ContentDecryption<'_>,
) -> io::Result<Result<ExitCode>> {
    let mut text = String::new();
    for hit in hits {
        let mut line = match files[hit.file].line_at(hit.offset) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        if let Some(line) = &mut line {
            contents.reveal(line);
        }
        if let Some(line) = line.filter(|line| matches_filters(line, wanted, from)) {
            text.push_str(&readable::text(&line, wanted.json));
        }
        if text.len() > OUTPUT_CHUNK_BYTES
            && let Err(failed) = print(&std::mem::take(&mut text))
        {
            return Ok(Err(failed));
        }
    }
    Ok(print(&text))
}

pub(super) fn matches_filters(line: &SegmentLine, wanted: &AuditSearchOptions, from: u64) -> bool {
    let is = |names: &[&str], value: &Option<String>| {
        let Some(value) = value else { return true };
        let texts = names.iter().filter_map(|name| line.fields.get(*name));
        texts.filter_map(Value::as_str).any(|text| text == value)
    };
    let text = wanted.text.as_ref();
    line.ts >= from
        && is(&["tool", "name"], &wanted.tool)
        && is(&["caller"], &wanted.caller)
        && is(&["srv"], &wanted.server)
        && is(&["dec"], &wanted.decision)
        && text.is_none_or(|text| line.raw.contains(text.as_str()))
}
