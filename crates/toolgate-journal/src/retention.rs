//! Retention: retires the oldest sealed segments as a whole; a summary of each stays in the chain.

use crate::chain;
use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::record::utc_us;
use crate::writer::JournalWriter;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use toolgate_protocol::json::Json;

/// File in the audit log directory that suspends retention.
const HOLD: &str = "hold";

/// Returns whether the file exists that suspends the retention of an audit log directory.
pub fn has_hold_file(dir: &Path) -> bool {
    dir.join(HOLD).exists()
}

/// Maximum size of a seal in bytes.
const MAX_SEAL_BYTES: u64 = 16 * 1024;

/// Sealed segment that may be retired.
struct RetirableSegment {
    path: PathBuf,
    segment: u64,
    bytes: u64,
}

impl JournalWriter {
    /// Retires segments that exceed the age or size limit: first a durable record, then the deletion.
    pub(crate) fn retire(&mut self) -> Result<(), Error> {
        let keep_all = self.options.retain_age.is_none() && self.options.retain_bytes.is_none();
        if keep_all || self.options.suspend_retention || has_hold_file(&self.options.dir) {
            return Ok(());
        }
        // An unreadable directory is left for the verifier to report.
        let Ok(old) = self.retirable_segments() else {
            return Ok(());
        };
        let all: u64 = old.iter().map(|old| old.bytes).sum();
        let mut rest = all + self.contents.bytes;
        let (mut gone, mut text) = (Vec::new(), String::new());
        for old in old {
            let Some(seal) = read_seal(&old.path) else {
                break;
            };
            if !self.exceeds_retention(&seal, rest) {
                break;
            }
            self.begin_text(&mut text)?;
            self.tip
                .push_own(retirement_entry(&old, &seal), &mut text)?;
            self.checkpoints.unsigned += 1;
            rest -= old.bytes;
            gone.push(old.path);
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.append_text(&text)?;
        // A file that could not be deleted is harmless and is retried at the next rotation.
        gone.iter().for_each(|path| drop(fs::remove_file(path)));
        let _ = self.options.disk.sync_dir(&self.chain.dir);
        Ok(())
    }

    /// Returns the segments that may be retired, oldest first: sealed, and before the first with an open call.
    fn retirable_segments(&self) -> io::Result<Vec<RetirableSegment>> {
        let end = self.open_calls.oldest_segment().unwrap_or(self.tip.seg);
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.chain.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(chain::segment_number);
            if let Some(segment) = number.filter(|number| *number < end.min(self.tip.seg)) {
                let (path, bytes) = (entry.path(), entry.metadata()?.len());
                all.push(RetirableSegment {
                    path,
                    segment,
                    bytes,
                });
            }
        }
        all.sort_by_key(|old| old.segment);
        Ok(all)
    }

    fn exceeds_retention(&self, seal: &Json, rest: u64) -> bool {
        let sealed = seal.get("ts").and_then(|at| at.u64());
        let age = utc_us().saturating_sub(sealed.unwrap_or(u64::MAX));
        let old = |keep: std::time::Duration| u128::from(age) > keep.as_micros();
        self.options.retain_age.is_some_and(old)
            || self.options.retain_bytes.is_some_and(|keep| rest > keep)
    }
}

fn retirement_entry(old: &RetirableSegment, seal: &Json) -> AuditEntry {
    let value = |name| seal.get(name).map_or(Value::Null, |value| value.to_value());
    AuditEntry::new(AuditEvent::SEGMENT_RETIRED)
        .with("bytes", old.bytes)
        .with("count", value("count"))
        .with("first", value("first"))
        .with("last", value("seq"))
        .with("seal", value("h"))
        .with("segment", old.segment)
        .with("sha256", value("sha256"))
}

/// Returns the last record of a file if it is a complete seal.
fn read_seal(file: &Path) -> Option<Json> {
    let mut input = File::open(file).ok()?;
    let length = input.metadata().ok()?.len();
    let start = length.saturating_sub(MAX_SEAL_BYTES);
    input.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    input.take(MAX_SEAL_BYTES).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_suffix(b"\n")?.rsplit(|b| *b == b'\n').next()?;
    let seal = Json::read_stored(line).ok()?;
    (seal.get("ev")?.str_cow()? == "segment.sealed").then_some(seal)
}
