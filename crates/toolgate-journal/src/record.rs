//! Records: an entry, its position in the chain, and the hash over both.

use crate::entry::{AuditEntry, EntryField, RESERVED_HEAD_BYTES, ValidatedEntry};
use crate::error::Error;
use crate::options::MAX_RECORD_BYTES;
use ring::digest;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use toolgate_protocol::{hex, json::rfc8785};

/// Domain separator of record hashes.
const DOMAIN: &[u8] = b"toolgate-journal-record-v1\n";

/// `prev` of the first record.
const GENESIS_PREV: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Value of a member that the chain adds.
enum HeadValue<'a> {
    Text(&'a str),
    Number(u64),
}

/// The member of the hash, up to its digits.
const HASH_MEMBER: &str = "\"h\":\"";

/// Version of the record format, the member `v`.
const FORMAT_VERSION: u64 = 1;

/// End of the hash chain: everything that the next record refers to.
#[derive(Debug)]
pub(crate) struct ChainTip {
    pub(crate) chain: Arc<str>,
    pub(crate) seg: u64,
    /// Sequence number of the last record; 0 before the first.
    pub(crate) last_seq: u64,
    /// Hash of the last record.
    pub(crate) last_hash: String,
    boot: String,
}

impl ChainTip {
    /// Creates the end of a chain from the sequence number and hash of its last record, if there is one.
    pub(crate) fn new(chain: &str, seg: u64, last: Option<(u64, String)>) -> Self {
        let (seq, prev) = last.unwrap_or_else(|| (0, GENESIS_PREV.to_owned()));
        Self {
            chain: chain.into(),
            seg,
            last_seq: seq,
            last_hash: prev,
            boot: crate::boot::boot_id(),
        }
    }

    /// Appends the next record, one of the journal's own, and a newline to `out`.
    pub(crate) fn push_own(&mut self, entry: AuditEntry, out: &mut String) -> Result<(), Error> {
        self.push(&ValidatedEntry::serialize(entry, MAX_RECORD_BYTES)?, out);
        Ok(())
    }

    /// Appends the next record of the hash chain and a newline to `out`.
    pub(crate) fn push(&mut self, entry: &ValidatedEntry, out: &mut String) {
        self.last_seq += 1;
        out.reserve(RESERVED_HEAD_BYTES + entry.size());
        let start = out.len();
        let digits = self.write_record(entry, out);
        let hash = hash(
            out.get(start..digits - HASH_MEMBER.len())
                .unwrap_or_default(),
            out.get(digits + GENESIS_PREV.len() + "\",".len()..)
                .unwrap_or_default(),
        );
        out.replace_range(digits..digits + hash.len(), &hash);
        out.push('\n');
        self.last_hash = hash;
    }

    /// Writes the record with zeros for its hash, and returns their offset. A member always follows `h`.
    fn write_record(&self, entry: &ValidatedEntry, out: &mut String) -> usize {
        let mut digits = out.len();
        out.push('{');
        let mut fields = entry.0.fields.iter().peekable();
        // Both are in canonical order.
        for (name, value) in self.head(entry) {
            let is_before = |field: &&EntryField| rfc8785::compare_keys(&field.name, name).is_lt();
            while let Some(field) = fields.next_if(is_before) {
                write_field(&entry.0, field, out);
            }
            rfc8785::write_string(out, name);
            out.push(':');
            if name == "h" {
                digits = out.len() + 1;
            }
            match value {
                HeadValue::Text(text) => rfc8785::write_string(out, text),
                // Writing to a string cannot fail.
                HeadValue::Number(number) => _ = write!(out, "{number}"),
            }
            out.push(',');
        }
        for field in fields {
            write_field(&entry.0, field, out);
        }
        out.pop();
        out.push('}');
        digits
    }

    /// Returns the members that the chain adds, in canonical order.
    fn head<'a>(&'a self, entry: &ValidatedEntry) -> [(&'static str, HeadValue<'a>); 10] {
        use HeadValue::{Number, Text};
        [
            ("boot", Text(&self.boot)),
            ("chain", Text(&self.chain)),
            ("ev", Text(entry.event().as_str())),
            ("h", Text(GENESIS_PREV)),
            ("mono", Number(mono_us())),
            ("prev", Text(&self.last_hash)),
            ("seg", Number(self.seg)),
            ("seq", Number(self.last_seq)),
            ("ts", Number(utc_us())),
            ("v", Number(FORMAT_VERSION)),
        ]
    }
}

/// Writes a member of an entry, and a comma.
fn write_field(entry: &AuditEntry, field: &EntryField, out: &mut String) {
    rfc8785::write_string(out, &field.name);
    out.push(':');
    out.push_str(entry.value(field));
    out.push(',');
}

/// Returns the time in UTC, in microseconds since the Unix epoch.
pub(crate) fn utc_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

/// Returns the hash of a record, whose text without the member `h` consists of two parts.
fn hash(before: &str, after: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(DOMAIN);
    context.update(before.as_bytes());
    context.update(after.as_bytes());
    hex::encode(context.finish().as_ref())
}

/// Returns the monotonic time in microseconds; nanoseconds would exceed 2^53 after 104 days.
fn mono_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000 + now.tv_nsec / 1000).unwrap_or(0)
}
