//! Checks a journal from its bytes alone.
//!
//! This reader shares no code with the writer: it has its own parser, which accepts only canonical JSON, cuts the
//! text of `h` out of the line, and hashes the rest as it stands. A fault of the writer is thus found, not repeated.

mod report;
mod scan;

pub use report::{Bad, ChainReport, Fault, OpenCall, Report};

use ring::digest;
use rustix::fs::{FlockOperation, flock};
use scan::Line;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const DOMAIN: &[u8] = b"toolgate-journal-record-v1\n";
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Longest line, above which reading on would only fill the memory.
const LONGEST_LINE: u64 = 1024 * 1024;

/// A crash can tear no more than one write of about a mebibyte and one record.
const LONGEST_TEAR: u64 = 2 * LONGEST_LINE;

/// Reads every chain of a journal folder and says what it found. Memory does not grow with the log.
///
/// # Errors
/// Only if the folder itself cannot be listed; what is wrong inside is in the report.
pub fn verify(dir: &Path) -> io::Result<Report> {
    let mut chains = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            chains.push(entry.path());
        }
    }
    chains.sort();
    Ok(Report {
        chains: chains.iter().map(|home| judge(home)).collect(),
    })
}

/// Checks one chain, which must not be empty unless somebody is about to write it.
fn judge(home: &Path) -> ChainReport {
    let mut report = chain(home, is_locked(home));
    if report.records == 0 && report.bad.is_none() && !report.live {
        let (file, what) = (home.to_owned(), Fault::Empty);
        report.bad = Some(Bad {
            file,
            line: 0,
            seq: 1,
            what,
        });
    }
    report
}

/// Checks one chain.
pub(crate) fn chain(home: &Path, live: bool) -> ChainReport {
    let name = home
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut walk = Walk::new(name, live);
    if let Err((file, cause)) = walk.segments(home) {
        walk.fail(&file, 0, Fault::Unreadable(cause.to_string()));
    }
    walk.finish()
}

fn is_locked(home: &Path) -> bool {
    let Ok(file) = File::open(home.join("lock")) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// The state between two records.
struct Walk {
    report: ChainReport,
    prev: String,
    open: BTreeMap<String, u64>,
}

type Trouble = (PathBuf, io::Error);

impl Walk {
    fn new(chain: String, live: bool) -> Self {
        let report = ChainReport {
            chain,
            live,
            ..ChainReport::default()
        };
        Self {
            report,
            prev: NO_HASH.to_owned(),
            open: BTreeMap::new(),
        }
    }

    fn segments(&mut self, home: &Path) -> Result<(), Trouble> {
        let files = segment_files(home).map_err(|cause| (home.to_owned(), cause))?;
        let last = files.len();
        for (index, (number, file)) in files.into_iter().enumerate() {
            let expected = self.report.segments + 1;
            if number != expected {
                self.fail(
                    &file,
                    0,
                    Fault::Head("a segment is missing before this one"),
                );
                break;
            }
            self.report.segments = number;
            self.report.end = (number, 0);
            self.segment(&file, index + 1 == last)
                .map_err(|cause| (file, cause))?;
            if self.report.bad.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn segment(&mut self, file: &Path, last: bool) -> io::Result<()> {
        let mut input = BufReader::with_capacity(64 * 1024, File::open(file)?);
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            number += 1;
            if input
                .by_ref()
                .take(LONGEST_LINE + 1)
                .read_until(b'\n', &mut line)?
                == 0
            {
                return Ok(());
            }
            if let Err(fault) = self.line(&line, file, last) {
                if !(self.report.live && matches!(fault, Fault::Torn { .. })) {
                    self.fail(file, number, fault);
                }
                return Ok(());
            }
            self.report.end.1 += line.len() as u64;
        }
    }

    fn line(&mut self, line: &[u8], file: &Path, last: bool) -> Result<(), Fault> {
        let whole = line.strip_suffix(b"\n");
        if last && (whole.is_none() || line.contains(&0)) {
            let size = fs::metadata(file).map_or(0, |meta| meta.len());
            let bytes = size.saturating_sub(self.report.end.1);
            if bytes <= LONGEST_TEAR {
                return Err(Fault::Torn { bytes });
            }
        }
        let whole = whole.ok_or(Fault::Form("it has no end"))?;
        let record = Line::read(whole).map_err(Fault::Form)?;
        let hash = check_hash(whole, &record)?;
        self.place(&record)?;
        self.follow(&record);
        self.prev = hash;
        Ok(())
    }

    /// Whether the record stands where it belongs.
    fn place(&mut self, record: &Line<'_>) -> Result<(), Fault> {
        let seq = record
            .number("seq")
            .ok_or(Fault::Head("it has no number"))?;
        let expected = self.report.records + 1;
        let event = record.text("ev").ok_or(Fault::Head("it has no event"))?;
        let stamped = ["ts", "mono"]
            .iter()
            .all(|name| record.number(name).is_some())
            && record.text("boot").is_some();
        if record.number("v") != Some(1) {
            return Err(Fault::Head(
                "it is of a version that this verifier does not know",
            ));
        }
        if record.text("chain").as_deref() != Some(&self.report.chain) {
            return Err(Fault::Head("it belongs to another chain"));
        }
        if seq != expected {
            return Err(Fault::Gap { found: seq });
        }
        if record.number("seg") != Some(self.report.segments) {
            return Err(Fault::Head("it belongs to another segment"));
        }
        if record.text("prev").as_ref() != Some(&self.prev) {
            return Err(Fault::Prev);
        }
        if (event == "genesis") != (seq == 1) {
            return Err(Fault::Head(
                "a chain has one `genesis`, which is its first record",
            ));
        }
        if stamped {
            Ok(())
        } else {
            Err(Fault::Head("it has no time"))
        }
    }

    /// Keeps account of what the record says.
    fn follow(&mut self, record: &Line<'_>) {
        self.report.records += 1;
        let call = || record.text("call").unwrap_or_default();
        match record.text("ev").as_deref() {
            Some("call.begin") => {
                self.open.entry(call()).or_insert(self.report.records);
            }
            Some("call.end") => {
                self.open.remove(&call());
            }
            Some("call.unknown") => {
                self.open.remove(&call());
                self.report.unknown += 1;
            }
            Some("recovered") => self.report.set_aside += record.number("bytes").unwrap_or(0),
            _ => {}
        }
    }

    fn fail(&mut self, file: &Path, line: u64, what: Fault) {
        let seq = self.report.records + 1;
        self.report.bad = Some(Bad {
            file: file.to_owned(),
            line,
            seq,
            what,
        });
    }

    fn finish(mut self) -> ChainReport {
        self.report.head = Some(self.prev).filter(|_| self.report.records > 0);
        self.report.open = self
            .open
            .into_iter()
            .map(|(call, seq)| OpenCall { call, seq })
            .collect();
        self.report.open.sort_by_key(|call| call.seq);
        self.report
    }
}

/// Cuts `"h":"…",` out of the line and compares.
fn check_hash(line: &[u8], record: &Line<'_>) -> Result<String, Fault> {
    const MISSING: Fault = Fault::Head("it has no hash");
    let place = record.member("h").ok_or(MISSING)?.place.clone();
    let stated = record.text("h").ok_or(MISSING)?;
    // `mono` always follows `h`; a record in which nothing does is no record.
    let rest = line
        .get(place.end..)
        .and_then(|rest| rest.strip_prefix(b","))
        .ok_or(Fault::Head("its last name is its hash"))?;
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [DOMAIN, &line[..place.start], rest] {
        context.update(part);
    }
    let actual: String = context
        .finish()
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if actual == stated {
        Ok(actual)
    } else {
        Err(Fault::Hash)
    }
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
