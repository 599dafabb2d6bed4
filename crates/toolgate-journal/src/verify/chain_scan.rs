//! Verification of one chain: its segments in order, line by line.

use super::checkpoints::MirrorCheckpoints;
use super::record_line::RecordLine;
use super::report::{ChainReport, FaultPosition, OpenCall, RecordFault};
use super::rules::check_hash;
use super::terms::UnsignedEnd;
use ring::digest;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Maximum length of a line in bytes, which bounds memory use.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Maximum size of a torn write in bytes: one write of about 1 MiB, one record and a checkpoint.
const MAX_TORN_BYTES: u64 = 2 * MAX_LINE_BYTES + 16 * 1024;

/// State of the verification between two records.
pub(super) struct ChainScan {
    pub(super) home: PathBuf,
    pub(super) report: ChainReport,
    pub(super) prev: String,
    pub(super) open: BTreeMap<String, (u64, u64)>,
    pub(super) keys: Vec<String>,
    pub(super) mirrored_heads: BTreeMap<u64, String>,
    /// Unproven start of the chain after retirement: a segment, and the record before it.
    pub(super) unproven_start: Option<UnprovenStart>,
    pub(super) current_segment: SegmentScan,
    pub(super) newest: Option<PathBuf>,
    pub(super) unsigned: UnsignedEnd,
}

/// Unproven start of a chain, until a record of the retirement confirms it.
pub(super) struct UnprovenStart {
    /// Number of the last missing segment.
    pub(super) segment: u64,
    pub(super) last: u64,
    pub(super) seal: String,
    pub(super) confirmed: bool,
}

/// Segment that is being verified.
pub(crate) struct SegmentScan {
    /// Sequence number of its first record.
    pub(crate) first: u64,
    /// Write time of its first record in microseconds since the Unix epoch; 0 if there is none.
    pub(crate) since: u64,
    pub(crate) digest: digest::Context,
    /// True if its last record is a seal.
    pub(crate) sealed: bool,
    pub(super) bytes: u64,
}

impl SegmentScan {
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

/// Result of the verification of a chain, and its last segment.
pub(crate) struct ChainFindings {
    pub(crate) report: ChainReport,
    pub(crate) part: SegmentScan,
}

pub(super) type SegmentIoError = (PathBuf, io::Error);

impl ChainScan {
    pub(super) fn new(
        home: &Path,
        live: bool,
        keys: Vec<String>,
        kept: &mut MirrorCheckpoints,
    ) -> Self {
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
            mirrored_heads: kept,
            unproven_start: None,
            current_segment: SegmentScan::new(1),
            newest: None,
            unsigned: UnsignedEnd::default(),
        }
    }

    /// Starts after a segment whose seal has a sequence number and a hash.
    pub(super) fn begin_after(&mut self, segment: u64, last: u64, hash: String) {
        self.report.segments = segment;
        self.report.records = last;
        self.report.first_record = last + 1;
        self.prev = hash;
    }

    pub(super) fn files(&mut self, files: Vec<(u64, PathBuf)>) -> Result<(), SegmentIoError> {
        let last = files.len();
        for (index, (number, file)) in files.into_iter().enumerate() {
            let from_here = index == 0 && self.report.segments == 0 && number > 1;
            if !from_here && number != self.report.segments + 1 {
                let what = RecordFault::Head("a segment is missing before this one");
                self.fail(&file, 0, what);
                break;
            }
            if index > 0 && !self.current_segment.sealed {
                self.fail(
                    &file,
                    0,
                    RecordFault::Head("the previous segment has no seal: its end was cut off"),
                );
                break;
            }
            self.report.segments = number;
            self.report.end = (number, 0);
            self.current_segment = SegmentScan::new(self.report.records + 1);
            self.newest = Some(file.clone());
            if from_here
                && let Err(fault) = self
                    .accept_start(&file, number)
                    .map_err(|e| (file.clone(), e))?
            {
                self.fail(&file, 1, fault);
                break;
            }
            self.segment(&file, index + 1 == last)
                .map_err(|cause| (file, cause))?;
            if self.report.first_fault.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Accepts the position of the first record; a record of the retirement must confirm it.
    fn accept_start(&mut self, file: &Path, number: u64) -> io::Result<Result<(), RecordFault>> {
        let mut line = Vec::new();
        BufReader::new(File::open(file)?)
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line)?;
        let read = RecordLine::parse(line.strip_suffix(b"\n").unwrap_or(&line));
        let place = read.ok().and_then(|record| {
            let last = record.number("seq")?.checked_sub(1)?;
            Some((last, record.text("prev")?))
        });
        let Some((last, seal)) = place else {
            return Ok(Err(RecordFault::Head(
                "a segment is missing before this one",
            )));
        };
        self.begin_after(number, last, seal.clone());
        self.current_segment = SegmentScan::new(last + 1);
        self.unproven_start = Some(UnprovenStart {
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
                .take(MAX_LINE_BYTES + 1)
                .read_until(b'\n', &mut line)?
                == 0
            {
                return Ok(());
            }
            if let Err(fault) = self.line(&line, file, last) {
                if !(self.report.live && matches!(fault, RecordFault::Torn { .. })) {
                    self.fail(file, number, fault);
                }
                return Ok(());
            }
            self.report.end.1 += line.len() as u64;
            self.current_segment.bytes += line.len() as u64;
            self.current_segment.digest.update(&line);
        }
    }

    fn line(&mut self, line: &[u8], file: &Path, last: bool) -> Result<(), RecordFault> {
        let whole = line.strip_suffix(b"\n");
        if last && (whole.is_none() || line.contains(&0)) {
            let size = fs::metadata(file).map_or(0, |meta| meta.len());
            let bytes = size.saturating_sub(self.report.end.1);
            if bytes <= MAX_TORN_BYTES {
                return Err(RecordFault::Torn { bytes });
            }
        }
        let whole = whole.ok_or(RecordFault::Form("it has no newline at its end"))?;
        let record = RecordLine::parse(whole).map_err(RecordFault::Form)?;
        let hash = check_hash(&record)?;
        self.check_position(&record)?;
        self.check_own_record(&record)?;
        let seq = self.report.records + 1;
        if self
            .mirrored_heads
            .get(&seq)
            .is_some_and(|kept| *kept != hash)
        {
            return Err(RecordFault::Forked);
        }
        if self.mirrored_heads.contains_key(&seq) {
            self.report.mirrored = Some(seq);
        }
        self.update(&record);
        self.prev = hash;
        Ok(())
    }

    pub(super) fn fail(&mut self, file: &Path, line: u64, what: RecordFault) {
        let seq = self.report.records + 1;
        self.report.first_fault = Some(FaultPosition::of(file, line, seq, what));
    }

    /// Verifies the conditions that are known only at the end.
    fn check_end(&mut self) {
        let torn = matches!(&self.report.first_fault, Some(bad) if matches!(bad.fault, RecordFault::Torn { .. }));
        if self.report.first_fault.is_some() && !torn {
            return;
        }
        let records = self.report.records;
        let kept = self.mirrored_heads.keys().next_back().copied().unwrap_or(0);
        let nothing = self.report.checkpoints == 0 && self.report.first_record <= 1 && records > 1;
        let what = if self
            .unproven_start
            .as_ref()
            .is_some_and(|claim| !claim.confirmed)
        {
            RecordFault::Head(
                "earlier segments are missing, and no record says that they were deleted by retention",
            )
        } else if kept > records {
            RecordFault::Cut { kept }
        } else if !self.keys.is_empty() && (nothing || self.unsigned.is_too_long()) {
            RecordFault::Unsigned
        } else {
            return;
        };
        let file = self.newest.clone().unwrap_or_else(|| self.home.clone());
        self.fail(&file, 0, what);
    }

    pub(super) fn finish(mut self) -> ChainFindings {
        self.check_end();
        self.report.head = Some(self.prev).filter(|_| self.report.records > 0);
        let open = self.open.into_iter();
        self.report.open_calls = open
            .map(|(call, (seq, seg))| OpenCall { call, seq, seg })
            .collect();
        self.report.open_calls.sort_by_key(|call| call.seq);
        self.report.unsigned = self.unsigned.records;
        self.report.unbounded = self.unsigned.is_unbounded();
        self.report.covered = !self.mirrored_heads.is_empty();
        self.report.terms = self.unsigned.stated;
        ChainFindings {
            report: self.report,
            part: self.current_segment,
        }
    }
}
