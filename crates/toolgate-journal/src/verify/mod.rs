//! Checks a journal from its bytes alone.
//!
//! This reader shares no code with the writer: it has its own parser, which accepts only canonical JSON, cuts the
//! text of `h` out of the line, and hashes the rest as it stands. A fault of the writer is thus found, not repeated.

mod report;
mod resume;
mod scan;
mod signed;

pub use report::{Bad, ChainReport, Fault, OpenCall, Report};

pub(crate) use resume::resume;
use ring::digest;
use rustix::fs::{FlockOperation, flock};
use scan::Line;
use signed::Kept;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const DOMAIN: &[u8] = b"toolgate-journal-record-v1\n";
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Longest line, above which reading on would only fill the memory.
const LONGEST_LINE: u64 = 1024 * 1024;

/// A crash can tear no more than one write of about a mebibyte, one record and a checkpoint.
const LONGEST_TEAR: u64 = 2 * LONGEST_LINE + 16 * 1024;

/// More records than a journal ever writes without a checkpoint, whatever its settings.
const LONGEST_UNSIGNED: u64 = 100_000;

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

/// The state between two records.
struct Walk {
    home: PathBuf,
    report: ChainReport,
    prev: String,
    open: BTreeMap<String, (u64, u64)>,
    keys: Vec<String>,
    kept: BTreeMap<u64, String>,
    /// Where the chain begins for us, if not with its first record: a segment, and the record before it.
    claim: Option<Claim>,
    part: Part,
    newest: Option<PathBuf>,
}

/// A beginning that nothing before it proves.
struct Claim {
    /// The last segment that is not there.
    segment: u64,
    last: u64,
    seal: String,
    confirmed: bool,
}

/// The segment that is read now.
pub(crate) struct Part {
    /// Number of its first record.
    pub(crate) first: u64,
    /// Time of its first record; 0 if there is none.
    pub(crate) since: u64,
    pub(crate) digest: digest::Context,
    /// Its last record is a seal.
    pub(crate) sealed: bool,
    bytes: u64,
}

impl Part {
    fn new(first: u64) -> Self {
        Self {
            first,
            since: 0,
            digest: digest::Context::new(&digest::SHA256),
            sealed: false,
            bytes: 0,
        }
    }
}

/// All that was found out about a chain, and its last segment.
pub(crate) struct Found {
    pub(crate) report: ChainReport,
    pub(crate) part: Part,
}

type Trouble = (PathBuf, io::Error);

impl Walk {
    fn new(home: &Path, live: bool, keys: Vec<String>, kept: &mut Kept) -> Self {
        let name = home.file_name().unwrap_or_default();
        let chain = name.to_string_lossy().into_owned();
        let kept = kept.chains.remove(&chain).unwrap_or_default();
        let report = ChainReport {
            chain,
            live,
            ..ChainReport::default()
        };
        Self {
            home: home.to_owned(),
            report,
            prev: NO_HASH.to_owned(),
            open: BTreeMap::new(),
            keys,
            kept,
            claim: None,
            part: Part::new(1),
            newest: None,
        }
    }

    /// Starts behind a segment whose last record, a seal, has this number and hash.
    fn begin_after(&mut self, segment: u64, last: u64, hash: String) {
        self.report.segments = segment;
        self.report.records = last;
        self.report.first = last + 1;
        self.prev = hash;
    }

    fn files(&mut self, files: Vec<(u64, PathBuf)>) -> Result<(), Trouble> {
        let last = files.len();
        for (index, (number, file)) in files.into_iter().enumerate() {
            let from_here = index == 0 && self.report.segments == 0 && number > 1;
            if !from_here && number != self.report.segments + 1 {
                let what = Fault::Head("a segment is missing before this one");
                self.fail(&file, 0, what);
                break;
            }
            if index > 0 && !self.part.sealed {
                self.fail(&file, 0, Fault::Seal("the segment before it has none"));
                break;
            }
            self.report.segments = number;
            self.report.end = (number, 0);
            self.part = Part::new(self.report.records + 1);
            self.newest = Some(file.clone());
            if from_here
                && let Err(fault) = self.claim(&file, number).map_err(|e| (file.clone(), e))?
            {
                self.fail(&file, 1, fault);
                break;
            }
            self.segment(&file, index + 1 == last)
                .map_err(|cause| (file, cause))?;
            if self.report.bad.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the place of the first record as it is; a record of the retirement must confirm it.
    fn claim(&mut self, file: &Path, number: u64) -> io::Result<Result<(), Fault>> {
        let mut line = Vec::new();
        BufReader::new(File::open(file)?)
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut line)?;
        let read = Line::read(line.strip_suffix(b"\n").unwrap_or(&line));
        let place = read.ok().and_then(|record| {
            let last = record.number("seq")?.checked_sub(1)?;
            Some((last, record.text("prev")?))
        });
        let Some((last, seal)) = place else {
            return Ok(Err(Fault::Head("a segment is missing before this one")));
        };
        self.begin_after(number, last, seal.clone());
        self.part = Part::new(last + 1);
        self.claim = Some(Claim {
            segment: number - 1,
            last,
            seal,
            confirmed: false,
        });
        Ok(Ok(()))
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
            self.part.bytes += line.len() as u64;
            self.part.digest.update(&line);
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
        self.own(&record)?;
        let seq = self.report.records + 1;
        if self.kept.get(&seq).is_some_and(|kept| *kept != hash) {
            return Err(Fault::Forked);
        }
        if self.kept.contains_key(&seq) {
            self.report.kept = Some(seq);
        }
        self.follow(&record);
        self.prev = hash;
        Ok(())
    }

    /// Checks what the journal says about itself.
    fn own(&mut self, record: &Line<'_>) -> Result<(), Fault> {
        let event = record.text("ev").unwrap_or_default();
        if self.part.sealed {
            return Err(Fault::Seal("something follows it"));
        }
        let first_of_part = self.part.first == self.report.records + 1;
        if first_of_part {
            self.part.since = record.number("ts").unwrap_or(0);
        }
        if first_of_part && self.report.segments > 1 && event != "checkpoint" {
            return Err(Fault::Signature("none follows the seal before it"));
        }
        match event.as_str() {
            "checkpoint" => self.checkpoint(record),
            "segment.sealed" => self.seal(record),
            "segment.retired" => {
                self.retired(record);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn checkpoint(&mut self, record: &Line<'_>) -> Result<(), Fault> {
        let mark = signed::mark(record, &self.keys)?;
        if mark.last != self.report.records || mark.head != self.prev {
            return Err(Fault::Signature("it is of another place"));
        }
        self.report.checkpoints += 1;
        self.report.signed = mark.last;
        Ok(())
    }

    fn seal(&mut self, record: &Line<'_>) -> Result<(), Fault> {
        let digest = self.part.digest.clone().finish();
        let count = self.report.records + 1 - self.part.first;
        let fits = record.text("sha256").as_ref() == Some(&hex(digest.as_ref()))
            && record.number("bytes") == Some(self.part.bytes)
            && record.number("count") == Some(count)
            && record.number("first") == Some(self.part.first)
            && record.number("last") == Some(self.report.records);
        if !fits {
            return Err(Fault::Seal("it does not fit the segment"));
        }
        self.part.sealed = true;
        Ok(())
    }

    fn retired(&mut self, record: &Line<'_>) {
        self.report.retired = record.number("segment").unwrap_or(0);
        if let Some(claim) = &mut self.claim
            && record.number("segment") == Some(claim.segment)
        {
            claim.confirmed = record.number("last") == Some(claim.last)
                && record.text("seal").as_ref() == Some(&claim.seal);
        }
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
                let place = (self.report.records, self.report.segments);
                self.open.entry(call()).or_insert(place);
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
        self.report.bad = Some(Bad::of(file, line, seq, what));
    }

    /// What can only be said at the end.
    fn whole(&mut self) {
        let torn = matches!(&self.report.bad, Some(bad) if matches!(bad.what, Fault::Torn { .. }));
        if self.report.bad.is_some() && !torn {
            return;
        }
        let records = self.report.records;
        let kept = self.kept.keys().next_back().copied().unwrap_or(0);
        let unsigned = records - self.report.signed.min(records);
        let nothing = self.report.checkpoints == 0 && self.report.first <= 1 && records > 1;
        let what = if self.claim.as_ref().is_some_and(|claim| !claim.confirmed) {
            Fault::Head("the segments before the first are missing, and no record retires them")
        } else if kept > records {
            Fault::Cut { kept }
        } else if !self.keys.is_empty() && (nothing || unsigned > LONGEST_UNSIGNED) {
            Fault::Unsigned
        } else {
            return;
        };
        let file = self.newest.clone().unwrap_or_else(|| self.home.clone());
        self.fail(&file, 0, what);
    }

    fn finish(mut self) -> Found {
        self.whole();
        self.report.head = Some(self.prev).filter(|_| self.report.records > 0);
        let open = self.open.into_iter();
        self.report.open = open
            .map(|(call, (seq, seg))| OpenCall { call, seq, seg })
            .collect();
        self.report.open.sort_by_key(|call| call.seq);
        Found {
            report: self.report,
            part: self.part,
        }
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
    let actual = hex(context.finish().as_ref());
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
