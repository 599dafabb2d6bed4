//! State of the segment that a writer appends to, and of the open calls.

use crate::entry::{AuditEvent, ValidatedEntry};
use ring::digest;
use std::collections::BTreeMap;
use toolgate_protocol::{hex, json::rfc8785};

/// Contents of the current segment: size, start time, and digest.
#[derive(Clone)]
pub(crate) struct SegmentContents {
    pub(crate) bytes: u64,
    /// Sequence number of the first record, or of the next one if the segment is empty.
    pub(crate) first_seq: u64,
    /// Start time of the segment in microseconds since the Unix epoch.
    pub(crate) started_us: u64,
    digest: digest::Context,
}

impl SegmentContents {
    /// Creates the state of an empty segment whose first record gets a sequence number.
    pub(crate) fn new(first: u64, since: u64) -> Self {
        Self {
            bytes: 0,
            first_seq: first,
            started_us: since,
            digest: digest::Context::new(&digest::SHA256),
        }
    }

    /// Creates the state of an existing segment.
    pub(crate) fn resumed(bytes: u64, first: u64, since: u64, digest: digest::Context) -> Self {
        Self {
            bytes,
            first_seq: first,
            started_us: since,
            digest,
        }
    }

    /// Returns whether the segment is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Accounts for appended text.
    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.digest.update(text.as_bytes());
    }

    /// Returns the SHA-256 digest of the segment in hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        hex::encode(self.digest.clone().finish().as_ref())
    }
}

/// Open calls (`call.begin` without an end), and the segment in which each began.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(BTreeMap<String, u64>);

impl OpenCalls {
    /// Creates the set from the calls that were open when the chain was taken over. The first records close them.
    pub(crate) fn from_calls(calls: impl Iterator<Item = (String, u64)>) -> Self {
        // Stored as in records, with quotes.
        Self(calls.map(|(call, seg)| (quoted(&call), seg)).collect())
    }

    /// Updates the open calls by a record in a segment.
    pub(crate) fn update(&mut self, record: &ValidatedEntry, seg: u64) {
        let Some(call) = record.call() else {
            return;
        };
        match record.event() {
            AuditEvent::CALL_BEGIN => _ = self.0.entry(call.to_owned()).or_insert(seg),
            AuditEvent::CALL_END | AuditEvent::CALL_UNKNOWN => _ = self.0.remove(call),
            _ => {}
        }
    }

    /// Returns whether the call of a record is open.
    pub(crate) fn has(&self, record: &ValidatedEntry) -> bool {
        record.call().is_some_and(|call| self.0.contains_key(call))
    }

    /// Returns the oldest segment in which an open call began.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        self.0.values().min().copied()
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    rfc8785::write_string(&mut out, text);
    out
}
