//! Entries that callers append to the journal.

use crate::error::Error;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use toolgate_protocol::json::rfc8785::{self, NonCanonicalValue};

/// Field names that the journal fills in itself.
const RESERVED_FIELDS: [&str; 10] = [
    "boot", "chain", "ev", "h", "mono", "prev", "seg", "seq", "ts", "v",
];

/// Initial capacity for the values of an entry, in bytes.
const TYPICAL_TEXT_BYTES: usize = 1024;

/// Initial capacity for the fields of an entry.
const TYPICAL_FIELDS: usize = 24;

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
    /// Audit event: an upstream server is ready for use.
    pub const SERVER_STARTED: Self = Self("server.started");
    /// Audit event: an upstream server ended, or could not be started.
    pub const SERVER_FAILED: Self = Self("server.failed");
    /// Audit event: an upstream server was stopped with the gateway or by a reload.
    pub const SERVER_STOPPED: Self = Self("server.stopped");
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
///
/// A field is an integer, a string, a boolean, an array or an object; fractions and null are rejected when the entry is
/// appended.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// Event type of the audit entry.
    pub event: AuditEvent,
    /// The values of all fields as canonical JSON, one after the other.
    pub(crate) text: String,
    pub(crate) fields: Vec<EntryField>,
    /// The first value without a canonical form.
    invalid: Option<NonCanonicalValue>,
}

/// Field of an entry: its name and the place of its value.
#[derive(Clone, Debug)]
pub(crate) struct EntryField {
    pub(crate) name: Cow<'static, str>,
    value: Range<usize>,
}

impl AuditEntry {
    /// Creates an audit entry without fields.
    pub fn new(event: impl Into<AuditEvent>) -> Self {
        Self {
            event: event.into(),
            text: String::with_capacity(TYPICAL_TEXT_BYTES),
            fields: Vec::with_capacity(TYPICAL_FIELDS),
            invalid: None,
        }
    }

    /// Adds or replaces a field of the audit entry.
    #[must_use]
    pub fn with(self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.with_written(name, |text| rfc8785::write(text, &value))
    }

    /// Adds or replaces a field of the audit entry: an array of objects, whose member names are in canonical order.
    #[doc(hidden)]
    #[must_use]
    pub fn with_objects<'a, const N: usize>(
        self,
        name: impl Into<Cow<'static, str>>,
        objects: impl Iterator<Item = [(&'static str, &'a str); N]>,
    ) -> Self {
        self.with_written(name, |text| {
            text.push('[');
            for (nth, members) in objects.enumerate() {
                text.push_str(if nth == 0 { "{" } else { ",{" });
                for (at, (name, value)) in members.into_iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    rfc8785::write_string(text, name);
                    text.push(':');
                    rfc8785::write_string(text, value);
                }
                text.push('}');
            }
            text.push(']');
            Ok(())
        })
    }

    fn with_written(
        mut self,
        name: impl Into<Cow<'static, str>>,
        write: impl FnOnce(&mut String) -> Result<(), NonCanonicalValue>,
    ) -> Self {
        let start = self.text.len();
        if let Err(why) = write(&mut self.text) {
            self.invalid.get_or_insert(why);
        }
        let (name, value) = (name.into(), start..self.text.len());
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.value = value,
            None => self.fields.push(EntryField { name, value }),
        }
        self
    }

    /// Returns the value of a field of the audit entry.
    pub fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Returns the value of a field as canonical JSON.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(self.value(field))
    }

    pub(crate) fn value(&self, field: &EntryField) -> &str {
        self.text.get(field.value.clone()).unwrap_or_default()
    }

    /// Returns the canonical JSON of all values, one after the other. It holds whatever a value holds.
    #[doc(hidden)]
    pub fn values(&self) -> &str {
        &self.text
    }

    /// Replaces strings of the audit entry, at any depth, by what `edit` returns for them.
    #[doc(hidden)]
    #[must_use]
    pub fn with_edited_strings(self, edit: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut edited = Self::new(self.event);
        edited.invalid = self.invalid.clone();
        for field in &self.fields {
            let value = serde_json::from_str(self.value(field));
            let mut value: Value = value.unwrap_or_default();
            edit_strings(&mut value, edit);
            edited = edited.with(field.name.clone(), value);
        }
        edited
    }
}

impl PartialEq for AuditEntry {
    /// Compares the events and the fields, whatever their order.
    fn eq(&self, other: &Self) -> bool {
        let same = |field: &EntryField| other.raw(&field.name) == Some(self.value(field));
        self.event == other.event
            && self.invalid == other.invalid
            && self.fields.len() == other.fields.len()
            && self.fields.iter().all(same)
    }
}

fn edit_strings(value: &mut Value, edit: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(new) = edit(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| edit_strings(item, edit)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| edit_strings(member, edit)),
        _ => {}
    }
}

/// Validated entry, ready to be added to a chain: its fields are in canonical order.
#[derive(Debug)]
pub(crate) struct ValidatedEntry(pub(crate) AuditEntry);

/// Entry that could not be queued, and the reason.
#[derive(Debug)]
pub struct RejectedEntry {
    /// The entry, possibly shortened.
    pub entry: AuditEntry,
    /// Reason of the rejection.
    pub error: Error,
}

/// Urgency of an entry: whether it wakes the writer of the journal.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Urgency {
    /// The entry is written at once.
    Urgent,
    /// The entry is written with the next urgent one, or a few milliseconds later.
    CanWait,
}

impl ValidatedEntry {
    /// Validates an entry of a caller.
    pub(crate) fn validate(entry: AuditEntry, limit: usize) -> Result<Self, Box<RejectedEntry>> {
        match check_event(&entry) {
            Ok(()) => Self::order(entry, limit),
            Err(error) => Err(Box::new(RejectedEntry { entry, error })),
        }
    }

    /// Brings the fields of an entry of the journal into order.
    pub(crate) fn serialize(entry: AuditEntry, limit: usize) -> Result<Self, Error> {
        Self::order(entry, limit).map_err(|rejected| rejected.error)
    }

    fn order(mut entry: AuditEntry, limit: usize) -> Result<Self, Box<RejectedEntry>> {
        if let Err(error) = check_fields(&entry) {
            return Err(Box::new(RejectedEntry { entry, error }));
        }
        let order = |a: &EntryField, b: &EntryField| rfc8785::compare_keys(&a.name, &b.name);
        entry.fields.sort_unstable_by(order);
        let mut ready = Self(entry);
        ready.shorten(limit.saturating_sub(RESERVED_HEAD_BYTES));
        Ok(ready)
    }

    pub(crate) fn event(&self) -> AuditEvent {
        self.0.event
    }

    /// Returns the call id of the entry, a quoted string.
    pub(crate) fn call(&self) -> Option<&str> {
        self.0.raw("call")
    }

    /// Returns an upper bound of the record's size in bytes, without the fields that the chain adds.
    pub(crate) fn size(&self) -> usize {
        // Escapes can make names up to six times as long.
        let fields = self.0.fields.iter();
        fields
            .map(|field| field.name.len() * 6 + field.value.len() + 4)
            .sum()
    }

    /// Replaces values by their length until the record fits: first the bulky fields, then the longest ones.
    fn shorten(&mut self, room: usize) {
        for bulky in [true, false] {
            while self.size() > room {
                let AuditEntry { fields, text, .. } = &mut self.0;
                let longest = fields.iter_mut().filter(|field| {
                    field.name != "call" && (!bulky || BULKY_FIELDS.contains(&&*field.name))
                });
                match longest.max_by_key(|field| field.value.len()) {
                    Some(field) if field.value.len() > 64 => {
                        field.value = push_marker(text, field.value.len());
                    }
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
        let AuditEntry { fields, text, .. } = &mut self.0;
        fields.retain(|field| field.name == "call");
        fields.push(EntryField {
            name: "omitted".into(),
            value: push_marker(text, all),
        });
    }
}

fn check_event(entry: &AuditEntry) -> Result<(), Error> {
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
    match entry.event.is_about_a_call() {
        true => check_call(entry),
        false => Ok(()),
    }
}

fn check_fields(entry: &AuditEntry) -> Result<(), Error> {
    let mut names = entry.fields.iter().map(|field| &*field.name);
    if let Some(name) = names.find(|name| RESERVED_FIELDS.contains(name)) {
        return Err(Error::entry(format!(
            "the field name `{name}` is reserved for the journal; choose another name"
        )));
    }
    match &entry.invalid {
        Some(why) => Err(Error::entry(why.to_string())),
        None => Ok(()),
    }
}

/// Appends the replacement of an omitted value, and returns its place.
fn push_marker(text: &mut String, length: usize) -> Range<usize> {
    let start = text.len();
    // Writing to a string cannot fail.
    let _ = write!(text, "\"[omitted: {length} bytes]\"");
    start..text.len()
}

fn check_call(entry: &AuditEntry) -> Result<(), Error> {
    let id = entry.raw("call").filter(|call| call.starts_with('"'));
    let length = id.map_or(0, |id| match id.contains('\\') {
        false => id.len() - 2,
        true => serde_json::from_str(id).map_or(0, |id: String| id.len()),
    });
    match (1..=MAX_CALL_ID_BYTES).contains(&length) {
        true => Ok(()),
        false => Err(Error::entry(format!(
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
        let ready = ValidatedEntry::validate(entry, 2048).unwrap();
        let raw = |name| ready.0.raw(name).unwrap();
        assert_eq!(raw("args"), "\"[omitted: 5002 bytes]\"");
        assert!(raw("note").contains("zzz") && raw("res").contains("yyy"));
        let names: Vec<&str> = ready.0.fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["args", "note", "res"]);
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
            let ready = ValidatedEntry::validate(entry, 4096).unwrap();
            assert!(ready.size() <= 4096);
            assert_eq!(ready.call(), Some("\"c1\""));
        }
    }

    #[test]
    fn rejects_reserved_names() {
        for name in RESERVED_FIELDS {
            assert!(
                ValidatedEntry::validate(AuditEntry::new(AuditEvent::DENY).with(name, 1), 4096)
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
                ValidatedEntry::validate(AuditEntry::new(event), 4096).is_err(),
                "{event}"
            );
        }
    }

    #[test]
    fn rejects_calls_without_an_id() {
        assert!(ValidatedEntry::validate(AuditEntry::new(AuditEvent::CALL_END), 4096).is_err());
        assert!(
            ValidatedEntry::validate(AuditEntry::new(AuditEvent::CALL_END).with("call", 7), 4096)
                .is_err()
        );
        assert!(
            ValidatedEntry::validate(
                AuditEntry::new(AuditEvent::CALL_END).with("call", json!("c")),
                4096
            )
            .is_ok()
        );
    }
}
