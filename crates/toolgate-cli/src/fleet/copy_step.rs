//! Next piece of the copy of a chain, read from its segment files and checked against the end of the copy.

use crate::timestamp::millis;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    time::SystemTime,
};
use toolgate_journal::{read::SegmentFile, verify::RecordLink};
use toolgate_store::postgres::{AuditPiece, CopiedChain};

/// Maximum size of a piece. A record has at most 64 KiB.
const MAX_PIECE_BYTES: u64 = 256 * 1024;

/// Next step of the copy of a chain.
pub(super) enum CopyStep {
    Append(CopiedChain, AuditPiece),
    Complete,
    /// The log does not continue the copy, for this reason.
    Diverged(String),
}

/// Returns the next piece of a chain after the end of its copy.
pub(super) fn next_step(
    chain: &str,
    end: Option<&CopiedChain>,
    files: &[SegmentFile],
) -> io::Result<CopyStep> {
    let Some(end) = end else {
        let Some(first) = files.first() else {
            return Ok(CopyStep::Complete);
        };
        return NewLines::new(chain, first, None)?.step(files);
    };
    let of_end = files.iter().find(|file| file.number == end.segment);
    if let Some(file) = of_end {
        let lines = match NewLines::after(file, end)? {
            Ok(lines) => lines,
            Err(why) => return Ok(CopyStep::Diverged(why)),
        };
        match lines.step(files)? {
            CopyStep::Complete => {}
            step => return Ok(step),
        }
    }
    let next = files.iter().find(|file| file.number > end.segment);
    match (of_end, next) {
        (Some(_), None) => Ok(CopyStep::Complete),
        (None, None) => Ok(CopyStep::Diverged(format!(
            "segment {} is gone, of which {} bytes are copied",
            end.segment, end.bytes
        ))),
        (Some(_), Some(next)) if next.number != end.segment + 1 => Ok(CopyStep::Diverged(format!(
            "segment {} is missing",
            end.segment + 1
        ))),
        (of_end, Some(next)) => {
            let mut lines = NewLines::new(chain, next, Some(end))?;
            if of_end.is_none() && !lines.continues() {
                // Retention removed what was not copied yet. The record of it says so, and verification checks it.
                lines.begin_after_gap();
            }
            lines.step(files)
        }
    }
}

/// New lines of a segment.
struct NewLines<'a> {
    chain: &'a str,
    file: &'a SegmentFile,
    /// End of the copy that the lines have to continue.
    end: Option<CopiedChain>,
    /// Offset of the lines.
    start: u64,
    lines: Vec<u8>,
    /// True if the file has more bytes than one piece.
    is_full: bool,
    opened: File,
}

impl<'a> NewLines<'a> {
    /// Reads the first lines of a segment.
    fn new(
        chain: &'a str,
        file: &'a SegmentFile,
        end: Option<&CopiedChain>,
    ) -> io::Result<NewLines<'a>> {
        NewLines::read(File::open(&file.path)?, (chain, file, 0), end)
    }

    /// Reads the lines after the last copied one, or returns why the file no longer has that line.
    fn after(
        file: &'a SegmentFile,
        end: &'a CopiedChain,
    ) -> io::Result<Result<NewLines<'a>, String>> {
        let mut opened = File::open(&file.path)?;
        opened.seek(SeekFrom::Start(end.bytes.saturating_sub(end.line_bytes)))?;
        let mut last = Vec::new();
        opened
            .by_ref()
            .take(end.line_bytes)
            .read_to_end(&mut last)?;
        let hash = last.strip_suffix(b"\n").map(RecordLink::read);
        let is_same = matches!(&hash, Some(Ok(link)) if link.hash == end.head);
        if last.len() as u64 != end.line_bytes || !is_same {
            return Ok(Err(format!(
                "the record {} was removed or changed after it was copied (segment {}, byte {})",
                end.seq, end.segment, end.bytes
            )));
        }
        NewLines::read(opened, (&end.chain, file, end.bytes), Some(end)).map(Ok)
    }

    /// Reads at most one piece from the position of an open file, which is at this offset.
    fn read(
        mut opened: File,
        (chain, file, start): (&'a str, &'a SegmentFile, u64),
        end: Option<&CopiedChain>,
    ) -> io::Result<NewLines<'a>> {
        let mut lines = Vec::new();
        opened
            .by_ref()
            .take(MAX_PIECE_BYTES)
            .read_to_end(&mut lines)?;
        Ok(NewLines {
            chain,
            file,
            end: end.cloned(),
            start,
            is_full: lines.len() as u64 == MAX_PIECE_BYTES,
            lines,
            opened,
        })
    }

    /// Returns whether the first line continues the copy.
    fn continues(&self) -> bool {
        let line = self.lines.split(|byte| *byte == b'\n').next();
        let link = line.and_then(|line| RecordLink::read(line).ok());
        link.zip(self.end.as_ref())
            .is_some_and(|(link, end)| link.prev == end.head)
    }

    fn begin_after_gap(&mut self) {
        if let Some(end) = &mut self.end {
            end.first_segment = self.file.number;
            end.head.clear();
        }
    }

    /// Returns the piece of all complete lines, if they continue the chain.
    fn step(mut self, files: &[SegmentFile]) -> io::Result<CopyStep> {
        let whole = self.lines.iter().rposition(|byte| *byte == b'\n');
        self.lines.truncate(whole.map_or(0, |at| at + 1));
        if self.lines.is_empty() {
            return Ok(match self.is_full {
                true => CopyStep::Diverged(format!(
                    "segment {} has a line that is no record",
                    self.file.number
                )),
                false => CopyStep::Complete,
            });
        }
        let mut after = CopiedChain {
            chain: self.chain.to_owned(),
            gateway: String::new(),
            first_segment: self.file.number,
            segment: self.file.number,
            bytes: self.start,
            seq: 0,
            head: String::new(),
            line_bytes: 0,
            retired: 0,
            copied_at: millis(SystemTime::now()),
            problem: None,
        };
        if let Some(end) = self.end.take() {
            after.first_segment = end.first_segment;
            after.seq = end.seq;
            after.head = end.head;
            after.retired = end.retired;
        }
        let mut length = 0;
        for line in self.lines.split_inclusive(|byte| *byte == b'\n') {
            let link = RecordLink::read(line.strip_suffix(b"\n").unwrap_or(line));
            let why = match link {
                Ok(link) => match continue_with(&mut after, &link) {
                    Ok(()) => {
                        after.line_bytes = line.len() as u64;
                        length += line.len();
                        continue;
                    }
                    Err(why) => why,
                },
                Err(fault) => fault.to_string(),
            };
            if length > 0 {
                // What comes before is good.
                break;
            }
            // After a failed sync, the end of a chain may be torn. Nothing follows it.
            let is_last = files
                .last()
                .is_some_and(|last| last.number == self.file.number);
            let home = self.file.path.parent().unwrap_or(Path::new(""));
            return Ok(match is_last && home.join("failed").exists() {
                true => CopyStep::Complete,
                false => CopyStep::Diverged(format!(
                    "the record after {} (segment {}, byte {}) does not continue it: {why}",
                    after.seq, self.file.number, self.start
                )),
            });
        }
        self.lines.truncate(length);
        after.bytes += length as u64;
        // Only what survives a power cut is copied, so that the log never has less than its copy.
        self.opened.sync_data()?;
        let piece = AuditPiece {
            segment: self.file.number,
            start: self.start,
            bytes: self.lines,
        };
        Ok(CopyStep::Append(after, piece))
    }
}

/// Moves the end of a copy to the next record, or returns why the record is not the next one.
fn continue_with(end: &mut CopiedChain, link: &RecordLink) -> Result<(), String> {
    if link.chain != end.chain || link.segment != end.segment {
        return Err("it belongs to another segment".to_owned());
    }
    // The first copied record has no predecessor in the copy.
    let is_first = end.head.is_empty();
    if !is_first && (link.prev != end.head || link.seq != end.seq + 1) {
        return Err("it follows another record".to_owned());
    }
    end.seq = link.seq;
    end.head.clone_from(&link.hash);
    end.retired = end.retired.max(link.retires.unwrap_or(0));
    Ok(())
}

#[cfg(test)]
#[path = "copy_step_tests.rs"]
mod tests;
