//! `toolgate audit search`: the records that fit, oldest first.
//!
//! Sealed segments are looked up in an index, those that grow are read. The index only says where to look: every line is
//! read from its segment and judged there.

use super::{Result, index::Index, lines, print, since, unreadable};
use crate::cli::Wanted;
use serde_json::Value;
use std::{collections::BTreeMap, io, path::Path, process::ExitCode};
use toolgate_journal::read::{self, Line, SegmentFile};

/// Bytes that are printed at once.
const CHUNK: usize = 1024 * 1024;

/// Where a record is.
pub(super) struct Hit {
    /// When; never less than a record before it in the chain.
    pub(super) ts: u64,
    /// Its segment, by its place in the list.
    pub(super) file: usize,
    /// Where its line begins.
    pub(super) at: u64,
}

/// Prints the records that fit everything that was asked for.
pub(super) fn run(data: &Path, dir: &Path, wanted: &Wanted) -> Result<ExitCode> {
    let from = wanted.since.map_or(0, since);
    let files = read::files(dir).map_err(unreadable(dir))?;
    let mut hits = Vec::new();
    // Only these can be looked up; for all else every line has to be read.
    let by_index = wanted.tool.is_some() || wanted.caller.is_some() || wanted.server.is_some();
    let mut index = match by_index && !wanted.no_index {
        true => Index::open(data),
        false => None,
    };
    for (at, file) in files.iter().enumerate() {
        let found = index
            .as_mut()
            .filter(|_| file.sealed)
            .and_then(|index| index.find(at, file, wanted));
        match found {
            Some(found) => hits.extend(found),
            None => hits.extend(scan(at, file, wanted, from).map_err(unreadable(dir))?),
        }
    }
    if let Some(index) = index {
        index.keep_only(&files);
    }
    put(&files, in_order(&files, hits), wanted, from).map_err(unreadable(dir))?
}

/// Reads a whole segment.
fn scan(number: usize, file: &SegmentFile, wanted: &Wanted, from: u64) -> io::Result<Vec<Hit>> {
    let mut hits = Vec::new();
    let read = file.lines(|at, line| {
        if fits(&line, wanted, from) {
            let (ts, file) = (line.ts, number);
            hits.push(Hit { ts, file, at });
        }
        Ok(())
    });
    match read {
        // Retired meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(hits),
        other => other.map(|()| hits),
    }
}

/// By time, but never against the order of a chain: a clock may have been set back.
fn in_order(files: &[SegmentFile], mut hits: Vec<Hit>) -> Vec<Hit> {
    let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &mut hits {
        let top = latest.entry(&files[hit.file].chain).or_default();
        *top = hit.ts.max(*top);
        hit.ts = *top;
    }
    hits.sort_by_key(|hit| hit.ts);
    hits
}

/// Reads each line where it is said to be, and prints what fits.
fn put(
    files: &[SegmentFile],
    hits: Vec<Hit>,
    wanted: &Wanted,
    from: u64,
) -> io::Result<Result<ExitCode>> {
    let mut text = String::new();
    for hit in hits {
        let line = match files[hit.file].line_at(hit.at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        if let Some(line) = line.filter(|line| fits(line, wanted, from)) {
            text.push_str(&lines::text(&line, wanted.json));
        }
        if text.len() > CHUNK
            && let Err(failed) = print(&std::mem::take(&mut text))
        {
            return Ok(Err(failed));
        }
    }
    Ok(print(&text))
}

pub(super) fn fits(line: &Line, wanted: &Wanted, from: u64) -> bool {
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
