//! Entries that callers append to the journal.

use crate::error::Error;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::Range;
use toolgate_protocol::json::rfc8785::{self, NonCanonicalValue};

/// Returns whether the journal fills in a field of this name itself.
fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "boot" | "chain" | "ev" | "h" | "mono" | "prev" | "seg" | "seq" | "ts" | "v"
    )
}

/// Initial capacity for the values of an entry, in bytes.
const TYPICAL_TEXT_BYTES: usize = 512;

/// Initial capacity for the trusted values of an entry, in bytes.
const TYPICAL_TRUSTED_BYTES: usize = 512;

/// Initial capacity for the fields of an entry.
const TYPICAL_FIELDS: usize = 24;

/// Bytes reserved for these fields.
pub(crate) const RESERVED_HEAD_BYTES: usize = 512;

/// Fields that are omitted first if a record is too long.
const BULKY_FIELDS: [&str; 5] = ["args", "args_enc", "res", "res_enc", "text"];

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
    /// The values of most fields as canonical JSON, one after the other.
    text: String,
    /// The values that the program itself chose, such as digests and numbers, in the same form.
    trusted: String,
    /// The fields in canonical order.
    pub(crate) fields: Vec<EntryField>,
    /// The first value without a canonical form.
    invalid: Option<NonCanonicalValue>,
}

/// Field of an entry: its name and the place of its value.
#[derive(Clone, Debug)]
pub(crate) struct EntryField {
    pub(crate) name: Cow<'static, str>,
    prefix: NamePrefix,
    /// True if the name needs no escapes.
    is_plain: bool,
    value: Range<usize>,
    /// True if the value stands in the text of trusted values.
    is_trusted: bool,
}

/// First eight bytes of a field name. Most names differ in them, so that comparing two names takes one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamePrefix(u64);

impl NamePrefix {
    const NON_ASCII: u64 = 0x8080_8080_8080_8080;

    pub(crate) const fn of(name: &str) -> Self {
        let (bytes, mut prefix, mut at) = (name.as_bytes(), 0, 0);
        while at < 8 {
            let byte = if at < bytes.len() { bytes[at] } else { 0 };
            prefix = prefix << 8 | byte as u64;
            at += 1;
        }
        Self(prefix)
    }

    /// Compares two names in canonical order. Beyond ASCII, that is not the order of the bytes.
    pub(crate) fn compare((a, name): (Self, &str), (b, other): (Self, &str)) -> Ordering {
        if a != b && (a.0 | b.0) & Self::NON_ASCII == 0 {
            return a.cmp(&b);
        }
        rfc8785::compare_keys(name, other)
    }
}

impl EntryField {
    /// Compares the name with another one, in canonical order.
    pub(crate) fn compare_name(&self, prefix: NamePrefix, name: &str) -> Ordering {
        NamePrefix::compare((self.prefix, &self.name), (prefix, name))
    }
}

impl AuditEntry {
    /// Creates an audit entry without fields.
    pub fn new(event: impl Into<AuditEvent>) -> Self {
        Self {
            event: event.into(),
            text: String::with_capacity(TYPICAL_TEXT_BYTES),
            trusted: String::with_capacity(TYPICAL_TRUSTED_BYTES),
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

    /// Adds or replaces a field of the audit entry: a text.
    #[doc(hidden)]
    #[must_use]
    pub fn with_text(self, name: impl Into<Cow<'static, str>>, value: &str) -> Self {
        self.with_written(name, |text| {
            rfc8785::write_string(text, value);
            Ok(())
        })
    }

    /// Adds or replaces a field of the audit entry: a text that the program itself chose, such as a digest or a keyword.
    /// [`AuditEntry::values`] leaves it out.
    #[doc(hidden)]
    #[must_use]
    pub fn with_trusted_text(self, name: impl Into<Cow<'static, str>>, value: &str) -> Self {
        self.with_trusted(name, |text| rfc8785::write_string(text, value))
    }

    /// Adds or replaces a field of the audit entry: a number up to 2^53 - 1; a larger one becomes that.
    #[doc(hidden)]
    #[must_use]
    pub fn with_number(self, name: impl Into<Cow<'static, str>>, value: u64) -> Self {
        self.with_trusted(name, |text| rfc8785::write_number(text, value))
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
        let value = start..self.text.len();
        self.set_field(name.into(), value, false);
        self
    }

    fn with_trusted(
        mut self,
        name: impl Into<Cow<'static, str>>,
        write: impl FnOnce(&mut String),
    ) -> Self {
        let start = self.trusted.len();
        write(&mut self.trusted);
        let value = start..self.trusted.len();
        self.set_field(name.into(), value, true);
        self
    }

    /// Adds or replaces a field; the fields stay in canonical order.
    fn set_field(&mut self, name: Cow<'static, str>, value: Range<usize>, is_trusted: bool) {
        let found = self.find(&name);
        let field = EntryField {
            prefix: NamePrefix::of(&name),
            is_plain: name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            name,
            value,
            is_trusted,
        };
        match found {
            Ok(at) => self.fields[at] = field,
            Err(at) => self.fields.insert(at, field),
        }
    }

    /// Returns the position of a field, or the one at which it would stand.
    fn find(&self, name: &str) -> Result<usize, usize> {
        let prefix = NamePrefix::of(name);
        // Most entries are made in canonical order.
        match self.fields.last() {
            Some(last) if last.compare_name(prefix, name).is_lt() => Err(self.fields.len()),
            _ => self
                .fields
                .binary_search_by(|field| field.compare_name(prefix, name)),
        }
    }

    /// Returns the value of a field of the audit entry.
    pub fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Returns the value of a field as canonical JSON.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let at = self.find(name).ok()?;
        self.fields.get(at).map(|field| self.value(field))
    }

    pub(crate) fn value(&self, field: &EntryField) -> &str {
        let text = match field.is_trusted {
            true => &self.trusted,
            false => &self.text,
        };
        text.get(field.value.clone()).unwrap_or_default()
    }

    /// Appends a field as a member of the record, and a comma.
    pub(crate) fn write_field(&self, field: &EntryField, out: &mut String) {
        match field.is_plain {
            true => {
                out.push('"');
                out.push_str(&field.name);
                out.push_str("\":");
            }
            false => {
                rfc8785::write_string(out, &field.name);
                out.push(':');
            }
        }
        out.push_str(self.value(field));
        out.push(',');
    }

    /// Returns the canonical JSON of all values that are not trusted, one after the other. It holds whatever such a value
    /// holds.
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
            let value = self.value(field);
            if field.is_trusted {
                edited = edited.with_trusted(field.name.clone(), |text| text.push_str(value));
                continue;
            }
            let value = serde_json::from_str(value);
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

/// Validated entry, ready to be added to a chain.
#[derive(Debug)]
pub(crate) struct ValidatedEntry {
    pub(crate) entry: AuditEntry,
    /// Upper bound of the record's size in bytes, without the fields that the chain adds.
    size: usize,
}

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
            Ok(()) => Self::bounded(entry, limit),
            Err(error) => Err(Box::new(RejectedEntry { entry, error })),
        }
    }

    /// Validates the fields of an entry of the journal.
    pub(crate) fn serialize(entry: AuditEntry, limit: usize) -> Result<Self, Error> {
        Self::bounded(entry, limit).map_err(|rejected| rejected.error)
    }

    fn bounded(entry: AuditEntry, limit: usize) -> Result<Self, Box<RejectedEntry>> {
        if let Err(error) = check_fields(&entry) {
            return Err(Box::new(RejectedEntry { entry, error }));
        }
        let size = record_size(&entry);
        let mut ready = Self { entry, size };
        let room = limit.saturating_sub(RESERVED_HEAD_BYTES);
        if size > room {
            shorten(&mut ready.entry, room);
            ready.size = record_size(&ready.entry);
        }
        Ok(ready)
    }

    pub(crate) fn event(&self) -> AuditEvent {
        self.entry.event
    }

    /// Returns the call id of the entry, a quoted string.
    pub(crate) fn call(&self) -> Option<&str> {
        self.entry.raw("call")
    }

    /// Returns an upper bound of the record's size in bytes, without the fields that the chain adds.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

/// Returns an upper bound of the record's size in bytes, without the fields that the chain adds.
fn record_size(entry: &AuditEntry) -> usize {
    // Escapes can make names up to six times as long.
    let fields = entry.fields.iter();
    fields
        .map(|field| field.name.len() * 6 + field.value.len() + 4)
        .sum()
}

/// Replaces values by their length until the record fits: first the bulky fields, then the longest ones.
fn shorten(entry: &mut AuditEntry, room: usize) {
    for bulky in [true, false] {
        while record_size(entry) > room {
            let fields = entry.fields.iter().filter(|field| {
                field.name != "call" && (!bulky || BULKY_FIELDS.contains(&&*field.name))
            });
            let longest = fields.max_by_key(|field| field.value.len());
            match longest.map(|field| (field.name.clone(), field.value.len())) {
                Some((name, length)) if length > 64 => set_omitted(entry, name, length),
                _ => break,
            }
        }
    }
    let all = record_size(entry);
    if all > room {
        // Thousands of small fields or huge names still exceed the limit.
        entry.fields.retain(|field| field.name == "call");
        set_omitted(entry, "omitted".into(), all);
    }
}

/// Replaces a value by its length in bytes.
fn set_omitted(entry: &mut AuditEntry, name: Cow<'static, str>, length: usize) {
    let start = entry.trusted.len();
    // Writing to a string cannot fail.
    let _ = write!(entry.trusted, "\"[omitted: {length} bytes]\"");
    let value = start..entry.trusted.len();
    entry.set_field(name, value, true);
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
    if let Some(name) = names.find(|name| is_reserved(name)) {
        return Err(Error::entry(format!(
            "the field name `{name}` is reserved for the journal; choose another name"
        )));
    }
    match &entry.invalid {
        Some(why) => Err(Error::entry(why.to_string())),
        None => Ok(()),
    }
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
        let raw = |name| ready.entry.raw(name).unwrap();
        assert_eq!(raw("args"), "\"[omitted: 5002 bytes]\"");
        assert!(raw("note").contains("zzz") && raw("res").contains("yyy"));
        let names: Vec<&str> = ready
            .entry
            .fields
            .iter()
            .map(|field| &*field.name)
            .collect();
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
    fn fields_stand_in_canonical_order() {
        let names = [
            "",
            "a",
            "a\0",
            "ab",
            "abcdefgh",
            "abcdefgha",
            "abcdefghb",
            "abcdefghi",
            "b",
            "\u{80}",
            "ö",
            "öb",
            "\u{1f600}",
            "\u{1f600}a",
            "\u{e000}",
            "\u{fb33}",
            "\u{ffff}",
            "abcdefgö",
            "abcdefg\u{1f600}",
            "abcdefg\u{fb33}",
            "say \"so\"",
        ];
        for first in names {
            for second in names {
                let order = NamePrefix::compare(
                    (NamePrefix::of(first), first),
                    (NamePrefix::of(second), second),
                );
                assert_eq!(
                    order,
                    rfc8785::compare_keys(first, second),
                    "{first} {second}"
                );
            }
        }
        let entry = names
            .iter()
            .rev()
            .chain(&names)
            .fold(AuditEntry::new(AuditEvent::DENY), |entry, name| {
                entry.with(*name, 1)
            });
        assert_eq!(entry.fields.len(), names.len());
        let written = entry
            .fields
            .iter()
            .fold(String::from("{"), |mut text, field| {
                entry.write_field(field, &mut text);
                text
            });
        let read = rfc8785::read_object(format!("{}}}", written.trim_end_matches(',')).as_bytes());
        assert!(read.is_ok(), "{written}");
    }

    #[test]
    fn rejects_reserved_names() {
        for name in [
            "boot", "chain", "ev", "h", "mono", "prev", "seg", "seq", "ts", "v",
        ] {
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
