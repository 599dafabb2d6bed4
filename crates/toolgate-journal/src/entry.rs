//! Entries that callers append to the journal.

use crate::error::Error;
use serde_json::{Map, Value};
use toolgate_protocol::json::rfc8785;

/// Field names that the journal fills in itself.
const RESERVED_FIELDS: [&str; 10] = [
    "boot", "chain", "ev", "h", "mono", "prev", "seg", "seq", "ts", "v",
];

/// Bytes reserved for these fields.
pub(crate) const RESERVED_HEAD_BYTES: usize = 512;

/// Fields that are omitted first if a record is too long.
const BULKY_FIELDS: [&str; 3] = ["args", "res", "text"];

/// Maximum length of a `call` id in bytes.
const MAX_CALL_ID_BYTES: usize = 256;

/// Event type of an audit record, its field `ev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuditEvent(&'static str);

impl AuditEvent {
    /// Audit event: a call is about to be sent to the upstream server. Needs the field `call`.
    pub const CALL_BEGIN: Self = Self("call.begin");
    /// Audit event: a call has ended and its response is about to be released. Needs the field `call`.
    pub const CALL_END: Self = Self("call.end");
    /// Audit event: a call has an unknown outcome, for example after a crash. Needs the field `call`.
    pub const CALL_UNKNOWN: Self = Self("call.unknown");
    /// Audit event: a rule denied a call.
    pub const DENY: Self = Self("deny");
    /// Audit event: a client listed items.
    pub const LIST: Self = Self("list");
    /// Audit event: a tool's definition was seen and pinned for the first time.
    pub const TOOL_PINNED: Self = Self("tool.pinned");
    /// Audit event: a tool's definition differs from its pin.
    pub const TOOL_CHANGED: Self = Self("tool.changed");
    /// Audit event: a tool's definition equals its pin again after a change.
    pub const TOOL_RETURNED: Self = Self("tool.returned");
    /// Audit event: an approver allowed or denied a call.
    pub const APPROVAL: Self = Self("approval");
    /// Audit event: the operator froze or thawed a caller, a server or all calls (kill switch).
    pub const FREEZE: Self = Self("freeze");
    /// Audit event: the operator created or revoked an API key.
    pub const KEY: Self = Self("key");
    /// Audit event: an elicitation was sent to the client.
    pub const ELICIT: Self = Self("elicit");
    /// Audit event: the credentials of a request were rejected.
    pub const AUTH_FAIL: Self = Self("auth.fail");
    /// Audit event: the configuration was reloaded.
    pub const POLICY_RELOAD: Self = Self("policy.reload");
    /// Audit event: an upstream server became available.
    pub const UPSTREAM_UP: Self = Self("upstream.up");
    /// Audit event: an upstream server became unavailable.
    pub const UPSTREAM_DOWN: Self = Self("upstream.down");
    /// Audit event: calls were rejected because of overload.
    pub const OVERLOAD: Self = Self("overload");
    /// Audit event: the program is shutting down.
    pub const DRAIN: Self = Self("drain");

    pub(crate) const GENESIS: Self = Self("genesis");
    pub(crate) const RECOVERED: Self = Self("recovered");
    pub(crate) const CHECKPOINT: Self = Self("checkpoint");
    pub(crate) const SEGMENT_RETIRED: Self = Self("segment.retired");
    pub(crate) const SEGMENT_SEALED: Self = Self("segment.sealed");

    /// Returns the name of the audit event, as in the field `ev`.
    pub fn as_str(&self) -> &'static str {
        self.0
    }

    fn is_about_a_call(self) -> bool {
        matches!(self, Self::CALL_BEGIN | Self::CALL_END | Self::CALL_UNKNOWN)
    }

    /// Returns whether only the journal itself writes the event.
    fn is_own(self) -> bool {
        matches!(self.0, "genesis" | "recovered" | "checkpoint") || self.0.starts_with("segment.")
    }

    fn is_well_formed(self) -> bool {
        let plain =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'_');
        !self.0.is_empty() && self.0.len() <= 64 && self.0.bytes().all(plain)
    }
}

impl From<&'static str> for AuditEvent {
    /// Creates an audit event from a name of at most 64 lower-case letters, digits, `.` and `_`. The name is checked
    /// when an entry is appended.
    fn from(name: &'static str) -> Self {
        Self(name)
    }
}

/// Entry to append to the audit log: an event and its fields, not yet a record of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Event type of the audit entry.
    pub event: AuditEvent,
    /// Fields of the audit entry: integers, strings, booleans, arrays and objects; no fractions, no null.
    pub fields: Map<String, Value>,
}

impl AuditEntry {
    /// Creates an audit entry without fields.
    pub fn new(event: impl Into<AuditEvent>) -> Self {
        Self {
            event: event.into(),
            fields: Map::new(),
        }
    }

    /// Adds or replaces a field of the audit entry.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }
}

/// Validated entry, ready to be added to a chain.
#[derive(Debug)]
pub(crate) struct ValidatedEntry {
    pub(crate) event: AuditEvent,
    /// Field names and canonical values, in canonical order.
    pub(crate) fields: Vec<(String, String)>,
}

impl ValidatedEntry {
    /// Validates an entry of a caller.
    pub(crate) fn validate(entry: &AuditEntry, limit: usize) -> Result<Self, Error> {
        if entry.event.is_own() {
            return Err(Error::entry(format!(
                "the event `{}` is reserved for the journal; choose another event",
                entry.event.0
            )));
        }
        if !entry.event.is_well_formed() {
            return Err(Error::entry(format!(
                "the event `{}` is malformed; use 1 to 64 lower-case letters, digits, dots and underscores",
                entry.event.0
            )));
        }
        if entry.event.is_about_a_call() {
            check_call(entry)?;
        }
        Self::serialize(entry, limit)
    }

    /// Serializes an entry. Also used for the journal's own entries.
    pub(crate) fn serialize(entry: &AuditEntry, limit: usize) -> Result<Self, Error> {
        let mut fields = Vec::with_capacity(entry.fields.len());
        for (name, value) in &entry.fields {
            if RESERVED_FIELDS.contains(&name.as_str()) {
                return Err(Error::entry(format!(
                    "the field name `{name}` is reserved for the journal; choose another name"
                )));
            }
            let value = rfc8785::to_string(value).map_err(|why| Error::entry(why.to_string()))?;
            fields.push((name.clone(), value));
        }
        fields.sort_by(|a, b| rfc8785::compare_keys(&a.0, &b.0));
        let mut ready = Self {
            event: entry.event,
            fields,
        };
        ready.shorten(limit.saturating_sub(RESERVED_HEAD_BYTES));
        Ok(ready)
    }

    /// Returns an upper bound of the record's size in bytes, without the fields that the chain adds.
    pub(crate) fn size(&self) -> usize {
        // Escapes can make names up to six times as long.
        self.fields
            .iter()
            .map(|(name, value)| name.len() * 6 + value.len() + 4)
            .sum()
    }

    /// Replaces values by their length until the record fits: first the bulky fields, then the longest ones.
    fn shorten(&mut self, room: usize) {
        for bulky in [true, false] {
            while self.size() > room {
                let longest = self.fields.iter_mut().filter(|(name, _)| {
                    name != "call" && (!bulky || BULKY_FIELDS.contains(&name.as_str()))
                });
                match longest.max_by_key(|(_, value)| value.len()) {
                    Some((_, value)) if value.len() > 64 => *value = marker(value.len()),
                    _ => break,
                }
            }
        }
        if self.size() > room {
            self.keep_only_the_call();
        }
    }

    /// Drops all fields except `call`, if thousands of small fields or huge names still exceed the limit.
    fn keep_only_the_call(&mut self) {
        let all = self.size();
        self.fields.retain(|(name, _)| name == "call");
        self.fields.push(("omitted".to_owned(), marker(all)));
    }
}

fn marker(length: usize) -> String {
    format!("\"[omitted: {length} bytes]\"")
}

fn check_call(entry: &AuditEntry) -> Result<(), Error> {
    match entry.fields.get("call") {
        Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_CALL_ID_BYTES => Ok(()),
        _ => Err(Error::entry(format!(
            "an entry of the event `{}` needs the field `call`, a string of 1 to {MAX_CALL_ID_BYTES} bytes",
            entry.event.0
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replaces_bulky_fields_by_their_length() {
        let entry = AuditEntry::new(AuditEvent::DENY)
            .with("args", "x".repeat(5000))
            .with("res", "y".repeat(100))
            .with("note", "z".repeat(500));
        let ready = ValidatedEntry::validate(&entry, 2048).unwrap();
        assert_eq!(
            ready.fields[0],
            ("args".to_owned(), "\"[omitted: 5002 bytes]\"".to_owned())
        );
        assert!(ready.fields[1].1.contains("zzz"));
        assert!(ready.fields[2].1.contains("yyy"));
    }

    #[test]
    fn shortens_every_oversized_call() {
        let long = AuditEntry::new(AuditEvent::CALL_BEGIN)
            .with("call", "c1")
            .with("other", "x".repeat(9000));
        let mut many = AuditEntry::new(AuditEvent::CALL_BEGIN).with("call", "c1");
        for at in 0..3000 {
            many = many.with(format!("f{at}"), at);
        }
        for entry in [long, many] {
            let ready = ValidatedEntry::validate(&entry, 4096).unwrap();
            assert!(ready.size() <= 4096);
            assert!(
                ready
                    .fields
                    .contains(&("call".to_owned(), "\"c1\"".to_owned()))
            );
        }
    }

    #[test]
    fn rejects_reserved_names() {
        for name in RESERVED_FIELDS {
            assert!(
                ValidatedEntry::validate(&AuditEntry::new(AuditEvent::DENY).with(name, 1), 4096)
                    .is_err(),
                "{name}"
            );
        }
        for event in [
            "genesis",
            "recovered",
            "checkpoint",
            "segment.sealed",
            "",
            "Deny",
            "a b",
        ] {
            assert!(
                ValidatedEntry::validate(&AuditEntry::new(event), 4096).is_err(),
                "{event}"
            );
        }
    }

    #[test]
    fn rejects_calls_without_an_id() {
        assert!(ValidatedEntry::validate(&AuditEntry::new(AuditEvent::CALL_END), 4096).is_err());
        assert!(
            ValidatedEntry::validate(&AuditEntry::new(AuditEvent::CALL_END).with("call", 7), 4096)
                .is_err()
        );
        assert!(
            ValidatedEntry::validate(
                &AuditEntry::new(AuditEvent::CALL_END).with("call", json!("c")),
                4096
            )
            .is_ok()
        );
    }
}
