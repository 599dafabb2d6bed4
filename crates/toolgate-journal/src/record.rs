//! Records: an entry, its position in the chain, and the hash over both.

use crate::entry::{AuditEntry, RESERVED_HEAD_BYTES, ValidatedEntry};
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
        self.push(&ValidatedEntry::serialize(&entry, MAX_RECORD_BYTES)?, out);
        Ok(())
    }

    /// Appends the next record of the hash chain and a newline to `out`.
    pub(crate) fn push(&mut self, entry: &ValidatedEntry, out: &mut String) {
        self.last_seq += 1;
        let (mut body, at) = self.body(entry);
        let hash = hash(&body);
        body.insert_str(at, &format!("\"h\":\"{hash}\","));
        out.push_str(&body);
        out.push('\n');
        self.last_hash = hash;
    }

    /// Returns the record without `h`, and the offset at which `h` belongs. The key `mono` always follows it.
    fn body(&self, entry: &ValidatedEntry) -> (String, usize) {
        let mut out = String::with_capacity(RESERVED_HEAD_BYTES + entry.size());
        let mut at = None;
        let mut put = |name: &str, value: &str| {
            out.push(if out.is_empty() { '{' } else { ',' });
            if at.is_none() && rfc8785::compare_keys(name, "h").is_gt() {
                at = Some(out.len());
            }
            rfc8785::write_string(&mut out, name);
            out.push(':');
            out.push_str(value);
        };
        // Both are in canonical order.
        let mut fields = entry.fields.iter().peekable();
        for (name, value) in self.head(entry) {
            let is_before =
                |field: &&(String, String)| rfc8785::compare_keys(&field.0, name).is_lt();
            while let Some((name, value)) = fields.next_if(is_before) {
                put(name, value);
            }
            put(name, &value);
        }
        for (name, value) in fields {
            put(name, value);
        }
        out.push('}');
        (out, at.unwrap_or(1))
    }

    /// Returns the members that the chain adds, in canonical order.
    fn head(&self, entry: &ValidatedEntry) -> [(&'static str, String); 9] {
        let quoted = |text: &str| format!("\"{text}\"");
        [
            ("boot", quoted(&self.boot)),
            ("chain", quoted(&self.chain)),
            ("ev", quoted(entry.event.as_str())),
            ("mono", mono_us().to_string()),
            ("prev", quoted(&self.last_hash)),
            ("seg", self.seg.to_string()),
            ("seq", self.last_seq.to_string()),
            ("ts", utc_us().to_string()),
            ("v", "1".to_owned()),
        ]
    }
}

/// Returns the time in UTC, in microseconds since the Unix epoch.
pub(crate) fn utc_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

fn hash(body: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(DOMAIN);
    context.update(body.as_bytes());
    hex::encode(context.finish().as_ref())
}

/// Returns the monotonic time in microseconds; nanoseconds would exceed 2^53 after 104 days.
fn mono_us() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}
