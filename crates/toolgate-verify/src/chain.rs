//! Verification of one chain from its first record to its last.

use crate::approvals::SignedApprovals;
use crate::bounds::UnsignedTail as Tail;
use crate::checkpoints::{self, ChainHeads};
use crate::json::{self, RecordValue};
use crate::segment::{self, MAX_RECORD_BYTES, SegmentLines};
use crate::{BadPosition, ChainResult, VerifyOptions, hex};
use ring::digest::{self, SHA256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum size of a torn write in bytes.
const MAX_TORN_BYTES: u64 = 2 * MAX_RECORD_BYTES + 16 * 1024;

struct ChainVerifier<'a> {
    against: &'a VerifyOptions,
    heads: &'a ChainHeads,
    approvals: &'a mut SignedApprovals,
    /// Position in the list of passkeys that the records have reached.
    passkeys: usize,
    chain: ChainResult,
    prev: String,
    open: BTreeSet<String>,
    end: Tail,
    segment: u64,
    /// SHA-256 digest and size of the segment so far, and the sequence number of its first record.
    digest: digest::Context,
    bytes: u64,
    start: u64,
    sealed: bool,
    /// Record before the first existing one, and whether its segment was retired.
    before: Option<(u64, u64, String, bool)>,
}

const TOO_LONG: &str = "more records than the settings of the log allow have no signed checkpoint: checkpoints were removed";

enum SegmentEnd {
    Complete,
    Torn,
}

/// Verifies a chain.
pub(crate) fn read(
    home: &Path,
    against: &VerifyOptions,
    heads: &ChainHeads,
    approvals: &mut SignedApprovals,
) -> ChainResult {
    let mut state = ChainVerifier {
        against,
        heads,
        approvals,
        passkeys: 0,
        chain: ChainResult {
            name: home
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            first_record: 1,
            ..ChainResult::default()
        },
        prev: "0".repeat(64),
        open: BTreeSet::new(),
        end: Tail::default(),
        segment: 0,
        digest: digest::Context::new(&SHA256),
        bytes: 0,
        start: 1,
        sealed: false,
        before: None,
    };
    let mut place = (home.to_owned(), 0);
    let mut outcome = state.segments(home, &mut place);
    if let Ok(end) = &outcome {
        let torn = matches!(end, SegmentEnd::Torn);
        let excused = against.live || (state.chain.records > 0 && home.join("failed").exists());
        let line = place.1;
        place.1 = 0;
        outcome = state.at_the_end().map(|()| SegmentEnd::Complete);
        if outcome.is_ok() && torn && !excused {
            place.1 = line;
            outcome =
                Err("a write was cut short by a crash; the next start sets it aside".to_owned());
        }
    }
    state.chain.open_calls = state.open.len();
    state.chain.unsigned = state.end.records;
    state.chain.stated = state.end.stated.clone();
    state.chain.unbounded = state.end.is_unbounded();
    state.chain.covered = !heads.is_empty();
    state.chain.first_bad = outcome.err().map(|why| BadPosition {
        file: place.0,
        line: place.1,
        why,
    });
    state.chain
}

impl ChainVerifier<'_> {
    fn segments(&mut self, home: &Path, place: &mut (PathBuf, u64)) -> Result<SegmentEnd, String> {
        let files = segment::segment_files(home).map_err(|e| e.to_string())?;
        let count = files.len();
        for (index, (number, path)) in files.into_iter().enumerate() {
            *place = (path.clone(), 0);
            if index == 0 && number > 1 {
                place.1 = 1;
                self.begin_late(&path, number)?;
                place.1 = 0;
            } else if number != self.segment + 1 {
                return Err("a segment is missing before this one".to_owned());
            } else if index > 0 && !self.sealed {
                return Err(
                    "the previous segment has no seal (final record): its end was cut off"
                        .to_owned(),
                );
            }
            self.segment = number;
            self.digest = digest::Context::new(&SHA256);
            (self.bytes, self.start, self.sealed) = (0, self.chain.records + 1, false);
            if let SegmentEnd::Torn = self.segment(&path, index + 1 == count, place)? {
                return Ok(SegmentEnd::Torn);
            }
        }
        Ok(SegmentEnd::Complete)
    }

    fn begin_late(&mut self, path: &Path, number: u64) -> Result<(), String> {
        let line = SegmentLines::open(path).and_then(|mut lines| lines.next());
        let line = line.map_err(|e| e.to_string())?.unwrap_or_default();
        let record = json::read(line.strip_suffix(b"\n").unwrap_or(&line));
        let found = record.and_then(|record| {
            let last = record.num("seq")?.checked_sub(1)?;
            Some((last, record.str("prev")?.to_owned()))
        });
        let (last, seal) = found.ok_or("a segment is missing before this one")?;
        self.chain.records = last;
        self.chain.first_record = last + 1;
        self.prev.clone_from(&seal);
        self.before = Some((number - 1, last, seal, false));
        Ok(())
    }

    fn segment(
        &mut self,
        path: &Path,
        last: bool,
        place: &mut (PathBuf, u64),
    ) -> Result<SegmentEnd, String> {
        let mut lines = SegmentLines::open(path).map_err(|e| e.to_string())?;
        while let Some(line) = lines.next().map_err(|e| e.to_string())? {
            place.1 += 1;
            let whole = line.ends_with(b"\n") && !line.contains(&0);
            if last && !whole && lines.size - lines.at <= MAX_TORN_BYTES {
                return Ok(SegmentEnd::Torn);
            }
            let text = line
                .strip_suffix(b"\n")
                .ok_or("the line has no newline at its end: it was cut off")?;
            self.record(text, (path, place.1))?;
            self.digest.update(&line);
            self.bytes += line.len() as u64;
            lines.at += line.len() as u64;
        }
        Ok(SegmentEnd::Complete)
    }

    /// Checks that the record continues the chain.
    fn check_position(&self, record: &RecordValue, event: &str, seq: u64) -> Result<(), String> {
        let version = record.num("v");
        if version != Some(1) {
            let found = version.map_or_else(
                || "no format version".to_owned(),
                |v| format!("format version {v}"),
            );
            return Err(format!(
                "the record has {found}; this program supports version 1"
            ));
        }
        let number = record.num("seq");
        if number != Some(seq) {
            let found = number.map_or_else(
                || "a record without a number".to_owned(),
                |n| format!("record {n}"),
            );
            return Err(format!(
                "{found} is in the place of record {seq}: a record was removed, inserted or moved"
            ));
        }
        if record.str("prev") != Some(&self.prev) {
            return Err(format!(
                "record {seq} does not continue the previous record: its \"prev\" is not the hash of that record, which was replaced"
            ));
        }
        if record.str("chain") != Some(&self.chain.name) || record.num("seg") != Some(self.segment)
        {
            return Err(format!("record {seq} belongs to another chain or segment"));
        }
        if (event == "genesis") != (seq == 1) {
            return Err("the first record of a chain, and no other, must be \"genesis\": records were removed or inserted".to_owned());
        }
        if record.num("ts").is_none()
            || record.num("mono").is_none()
            || record.str("boot").is_none()
        {
            return Err(format!(
                "record {seq} has no time: \"ts\", \"mono\" and \"boot\" are required"
            ));
        }
        Ok(())
    }

    fn record(&mut self, text: &[u8], place: (&Path, u64)) -> Result<(), String> {
        let record = json::read(text)
            .ok_or("the line is not a record in canonical JSON: it was changed or damaged")?;
        let bare = format!("toolgate-journal-record-v1\n{}", record.without("h").text());
        let hash = hex(digest::digest(&SHA256, bare.as_bytes()).as_ref());
        if record.str("h") != Some(&hash) {
            return Err(
                "the hash of the record does not match its contents: the record was changed"
                    .to_owned(),
            );
        }
        let seq = self.chain.records + 1;
        let event = record.str("ev").ok_or("the record has no event (\"ev\")")?;
        self.check_position(&record, event, seq)?;
        self.own(event, &record)?;
        self.approvals
            .add(event, &record, place, &mut self.passkeys)?;
        self.end.add(event, &record, seq == self.start);
        match self.heads.get(&seq) {
            Some(head) if *head != hash => {
                return Err(
                    "a checkpoint in a mirror covers another record here: the chain was rewritten"
                        .to_owned(),
                );
            }
            Some(_) => self.chain.mirrored = seq,
            None => {}
        }
        self.chain.records = seq;
        self.prev = hash;
        Ok(())
    }

    /// Accounts for calls and verifies the journal's own records.
    fn own(&mut self, event: &str, record: &RecordValue) -> Result<(), String> {
        if self.sealed {
            return Err("a record follows the seal, which must be the last record of a segment: it was added later".to_owned());
        }
        if self.segment > 1 && self.bytes == 0 && event != "checkpoint" {
            return Err(
                "the segment does not begin with a checkpoint: records were removed".to_owned(),
            );
        }
        let call = record.str("call").unwrap_or_default();
        match event {
            "call.begin" => drop(self.open.insert(call.to_owned())),
            "call.end" | "call.unknown" => drop(self.open.remove(call)),
            "checkpoint" => self.checkpoint(record)?,
            "segment.sealed" => self.seal(record)?,
            "segment.retired" => self.retired(record),
            _ => {}
        }
        Ok(())
    }

    fn checkpoint(&mut self, record: &RecordValue) -> Result<(), String> {
        let mark = checkpoints::verify_checkpoint(record, &self.against.keys)?;
        if mark.last != self.chain.records || mark.head != self.prev {
            return Err("the checkpoint belongs to another position: records were removed, inserted or moved".to_owned());
        }
        if !self.against.keys.is_empty() && !self.end.sign() {
            return Err(TOO_LONG.to_owned());
        }
        self.chain.checkpoints += 1;
        self.chain.signed = mark.last;
        self.chain.keys.insert(mark.key);
        Ok(())
    }

    fn seal(&mut self, record: &RecordValue) -> Result<(), String> {
        let digest = hex(self.digest.clone().finish().as_ref());
        let last = self.chain.records;
        let numbers = [
            ("bytes", self.bytes),
            ("count", last + 1 - self.start),
            ("first", self.start),
            ("last", last),
        ];
        let fits = numbers
            .iter()
            .all(|(name, is)| record.num(name) == Some(*is));
        if !fits || record.str("sha256") != Some(&digest) {
            return Err("the seal (final record) does not match the records of the segment: they were changed".to_owned());
        }
        self.sealed = true;
        Ok(())
    }

    fn retired(&mut self, record: &RecordValue) {
        if let Some((segment, last, seal, confirmed)) = &mut self.before
            && record.num("segment") == Some(*segment)
        {
            *confirmed = record.num("last") == Some(*last) && record.str("seal") == Some(seal);
        }
    }

    fn at_the_end(&self) -> Result<(), String> {
        let (records, covered) = (self.chain.records, checkpoints::last(self.heads));
        if matches!(&self.before, Some((_, _, _, false))) {
            return Err("earlier segments are missing, and no record says that they were deleted by retention".into());
        }
        if covered > records {
            return Err(format!(
                "a checkpoint in a mirror covers {covered} records: the end was cut off"
            ));
        }
        let none = self.chain.checkpoints == 0 && self.chain.first_record == 1 && records > 1;
        if !self.against.keys.is_empty() && (none || self.end.is_too_long()) {
            return Err(TOO_LONG.to_owned());
        }
        if records == 0 && !self.against.live {
            return Err(
                "the chain has no records: they were removed, or a crash happened before the first"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
