//! What a writer knows of the segment it writes, and of the calls that are open.

use crate::entry::{Event, Ready};
use crate::record::hex;
use ring::digest;
use std::collections::BTreeMap;

/// The contents of a segment: how much, since when, and their digest.
#[derive(Clone)]
pub(crate) struct Contents {
    pub(crate) bytes: u64,
    /// Number of the first record, or of the one that will be.
    pub(crate) first: u64,
    /// When the segment was begun, in microseconds since 1970.
    pub(crate) since: u64,
    digest: digest::Context,
}

impl Contents {
    /// An empty segment whose first record will have this number.
    pub(crate) fn new(first: u64, since: u64) -> Self {
        Self {
            bytes: 0,
            first,
            since,
            digest: digest::Context::new(&digest::SHA256),
        }
    }

    /// A segment that is there already.
    pub(crate) fn resumed(bytes: u64, first: u64, since: u64, digest: digest::Context) -> Self {
        Self {
            bytes,
            first,
            since,
            digest,
        }
    }

    /// Nothing was written yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// More was written.
    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.digest.update(text.as_bytes());
    }

    /// SHA-256 of all of it.
    pub(crate) fn sha256(&self) -> String {
        hex(self.digest.clone().finish().as_ref())
    }
}

/// The calls that began and did not end, and the segment in which each began.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(BTreeMap<String, u64>);

impl OpenCalls {
    /// Those that were open when the chain was taken over; they are closed by the first records.
    pub(crate) fn of(calls: impl Iterator<Item = (String, u64)>) -> Self {
        // Kept as they stand in records, with quotes.
        Self(calls.map(|(call, seg)| (quoted(&call), seg)).collect())
    }

    /// Keeps account of a record in that segment.
    pub(crate) fn follow(&mut self, record: &Ready, seg: u64) {
        let Some((_, call)) = record.fields.iter().find(|(name, _)| name == "call") else {
            return;
        };
        if record.event == Event::CALL_BEGIN {
            self.0.entry(call.clone()).or_insert(seg);
        } else if matches!(record.event, Event::CALL_END | Event::CALL_UNKNOWN) {
            self.0.remove(call);
        }
    }

    /// Whether the call of a record is open.
    pub(crate) fn has(&self, record: &Ready) -> bool {
        let call = record.fields.iter().find(|(name, _)| name == "call");
        call.is_some_and(|(_, call)| self.0.contains_key(call))
    }

    /// The oldest segment with the beginning of an open call.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        self.0.values().min().copied()
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    crate::canon::put_string(&mut out, text);
    out
}
