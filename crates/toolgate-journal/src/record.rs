//! Records: an entry, its position in the chain, and the hash over both.

use crate::entry::{AuditEntry, EntryField, NamePrefix, RESERVED_HEAD_BYTES, ValidatedEntry};
use crate::error::Error;
use crate::options::MAX_RECORD_BYTES;
use ring::digest;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use toolgate_protocol::{hex, json::rfc8785};

/// Domain separator of record hashes.
const DOMAIN: &[u8] = b"toolgate-journal-record-v1\n";

/// `prev` of the first record.
const GENESIS_PREV: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Version of the record format, the member `v`.
const FORMAT_VERSION: u64 = 1;

/// Member that the chain adds to a record.
#[derive(Clone, Copy)]
enum HeadMember {
    Boot,
    Chain,
    Event,
    Hash,
    Monotonic,
    PreviousHash,
    Segment,
    Sequence,
    Timestamp,
    Version,
}

/// The members that the chain adds, in canonical order.
const HEAD: [(&str, NamePrefix, HeadMember); 10] = [
    head_member("boot", HeadMember::Boot),
    head_member("chain", HeadMember::Chain),
    head_member("ev", HeadMember::Event),
    head_member("h", HeadMember::Hash),
    head_member("mono", HeadMember::Monotonic),
    head_member("prev", HeadMember::PreviousHash),
    head_member("seg", HeadMember::Segment),
    head_member("seq", HeadMember::Sequence),
    head_member("ts", HeadMember::Timestamp),
    head_member("v", HeadMember::Version),
];

const fn head_member(
    name: &'static str,
    member: HeadMember,
) -> (&'static str, NamePrefix, HeadMember) {
    (name, NamePrefix::of(name), member)
}

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
        let split = self.write_unhashed(entry, out);
        let hash = hash(
            out.get(start..split).unwrap_or_default(),
            out.get(split..).unwrap_or_default(),
        );
        out.insert_str(split, &["\"h\":\"", &hash, "\","].concat());
        out.push('\n');
        self.last_hash = hash;
    }

    /// Writes the record without its hash, and returns the offset at which the hash stands. A member always follows it.
    fn write_unhashed(&self, entry: &ValidatedEntry, out: &mut String) -> usize {
        let entry = &entry.entry;
        let mut split = out.len();
        out.push('{');
        let mut fields = entry.fields.iter().peekable();
        // Both are in canonical order.
        for (name, prefix, member) in HEAD {
            let is_before = |field: &&EntryField| field.compare_name(prefix, name).is_lt();
            while let Some(field) = fields.next_if(is_before) {
                entry.write_field(field, out);
            }
            match member {
                HeadMember::Boot => push_text(out, name, &self.boot),
                HeadMember::Chain => push_text(out, name, &self.chain),
                HeadMember::Event => push_text(out, name, entry.event.as_str()),
                HeadMember::Hash => split = out.len(),
                HeadMember::Monotonic => push_number(out, name, mono_us()),
                HeadMember::PreviousHash => push_text(out, name, &self.last_hash),
                HeadMember::Segment => push_number(out, name, self.seg),
                HeadMember::Sequence => push_number(out, name, self.last_seq),
                HeadMember::Timestamp => push_number(out, name, utc_us()),
                HeadMember::Version => push_number(out, name, FORMAT_VERSION),
            }
        }
        fields.for_each(|field| entry.write_field(field, out));
        out.pop();
        out.push('}');
        split
    }
}

/// Appends a member with a text that needs no escapes, and a comma.
fn push_text(out: &mut String, name: &str, text: &str) {
    push_name(out, name);
    out.push('"');
    out.push_str(text);
    out.push_str("\",");
}

/// Appends a member with a number, and a comma.
fn push_number(out: &mut String, name: &str, number: u64) {
    push_name(out, name);
    rfc8785::write_number(out, number);
    out.push(',');
}

fn push_name(out: &mut String, name: &str) {
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
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
