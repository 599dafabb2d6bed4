//! Audit recorder: writes to the journal and buffers entries that must not be lost while its queue is full.

#[cfg(not(all(feature = "audit", unix)))]
use crate::no_journal::AuditJournal;
use crate::{
    SecretRedactor,
    rejection_counts::RejectionCounts,
    sanitize::{secrets::may_hold_secret, text::is_clean_json},
};
use futures_util::FutureExt;
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use toolgate_core::{
    BoxFuture, Call, CallerAttributes, Error, ErrorKind, InputRequestKind, Item, RefusalReason,
    escape_bidi,
};
#[cfg(all(feature = "audit", unix))]
use toolgate_journal::AuditJournal;
use toolgate_journal::{AuditEntry, AuditEvent, Error as Failed, RejectedEntry, Urgency};

/// A future that resolves when an audit record is on disk.
pub(crate) type RecordWritten = BoxFuture<'static, Result<(), Error>>;

/// Recorder of audit records: writes them to a hash-chained journal, or to the program's log.
///
/// A call that is dropped cannot wait for room. Its end waits here, in memory, and goes before whatever is recorded
/// next; meanwhile no call begins. Should the program die before that, recovery closes the call as unknown. Refusals
/// that find no room are counted, and the count is recorded as `overload`: a flood of them must not feed itself. So are
/// entries that are dropped because too many wait.
pub struct AuditRecorder {
    sink: AuditSink,
    buffered: Mutex<BufferedRecords>,
    rejections: RejectionCounts,
}

enum AuditSink {
    Journal(Arc<AuditJournal>),
    Log,
}

/// Records that found the queue full.
#[derive(Default)]
struct BufferedRecords {
    entries: VecDeque<AuditEntry>,
    refusals: u64,
    /// Entries that were dropped because too many waited.
    dropped: u64,
}

impl AuditRecorder {
    /// Entries that may wait for room. One more is dropped and counted; the end of a call is closed as unknown at the
    /// next start.
    const MAX_BUFFERED_RECORDS: usize = 8192;

    /// Creates an audit recorder that writes to a hash-chained journal.
    #[cfg(all(feature = "audit", unix))]
    pub fn new(journal: Arc<AuditJournal>) -> AuditRecorder {
        AuditRecorder {
            sink: AuditSink::Journal(journal),
            buffered: Mutex::default(),
            rejections: RejectionCounts::default(),
        }
    }

    /// Creates an audit recorder that writes `tracing` events without contents (level INFO, target `toolgate::audit`).
    /// They are not evidence: use it in your own program until it has a journal.
    pub fn log() -> AuditRecorder {
        AuditRecorder {
            sink: AuditSink::Log,
            buffered: Mutex::default(),
            rejections: RejectionCounts::default(),
        }
    }

    /// Creates an audit recorder with its own hash-chained journal in a folder, which is created if missing. Each
    /// process has its own chain in it; `toolgate audit verify` checks them.
    ///
    /// # Errors
    /// Fails if the folder or its files cannot be written, or if a record in them was changed.
    #[cfg(all(feature = "audit", unix))]
    pub fn in_folder(directory: impl Into<std::path::PathBuf>) -> Result<AuditRecorder, Failed> {
        let journal = AuditJournal::open(toolgate_journal::JournalOptions::new(directory.into()))?;
        Ok(AuditRecorder::new(Arc::new(journal)))
    }

    /// Returns the hash-chained journal of the audit recorder, or `None` if it writes to the program's log.
    pub fn journal(&self) -> Option<&Arc<AuditJournal>> {
        match &self.sink {
            AuditSink::Journal(journal) => Some(journal),
            AuditSink::Log => None,
        }
    }

    /// Returns whether records are consumed. If not, none need to be built.
    pub(crate) fn is_consumed(&self) -> bool {
        match &self.sink {
            AuditSink::Journal(_) => true,
            AuditSink::Log => tracing::event_enabled!(
                target: "toolgate::audit",
                tracing::Level::INFO,
                event, call, caller, method, name, decision, out, micros
            ),
        }
    }

    /// Returns a keyed digest that identifies contents later; `None` without a journal, which holds the key.
    pub(crate) fn mac(&self, bytes: &[u8]) -> Option<String> {
        self.journal().map(|journal| journal.keyed_digest(bytes))
    }

    /// Queues an entry. The returned future resolves when it is on disk; dropping the future does not drop the entry.
    ///
    /// # Errors
    /// Nothing was queued: the queue is full, or the journal failed.
    pub(crate) fn append(&self, entry: AuditEntry) -> Result<RecordWritten, Error> {
        self.append_as(entry, Urgency::Urgent)
    }

    /// Like [`AuditRecorder::append`], for an entry that may wait a few milliseconds for the next one.
    pub(crate) fn append_as(
        &self,
        entry: AuditEntry,
        urgency: Urgency,
    ) -> Result<RecordWritten, Error> {
        self.try_append(sanitize_entry(entry), urgency)
            .map_err(|rejected| audit_error(rejected.error))
    }

    /// Like [`AuditRecorder::append`], but buffers the sanitized entry if it cannot be queued now.
    pub(crate) fn append_or_buffer(&self, entry: AuditEntry) -> Result<RecordWritten, Error> {
        let appended = self.try_append(sanitize_entry(entry), Urgency::Urgent);
        appended.map_err(|rejected| {
            self.buffer(rejected.entry);
            audit_error(rejected.error)
        })
    }

    fn try_append(
        &self,
        entry: AuditEntry,
        urgency: Urgency,
    ) -> Result<RecordWritten, Box<RejectedEntry>> {
        let AuditSink::Journal(journal) = &self.sink else {
            log(&entry);
            return Ok(Box::pin(async { Ok(()) }));
        };
        if let Err(error) = self.flush(journal) {
            return Err(Box::new(RejectedEntry { entry, error }));
        }
        let written = journal.try_append(entry, urgency)?;
        Ok(Box::pin(
            written.map(|answer| answer.map(|_| ()).map_err(audit_error)),
        ))
    }

    /// Queues an entry without waiting; buffers it if the queue is full.
    pub(crate) fn note(&self, entry: AuditEntry) {
        let entry = sanitize_entry(entry);
        let AuditSink::Journal(journal) = &self.sink else {
            return log(&entry);
        };
        let noted = match self.flush(journal) {
            Ok(()) => journal.try_enqueue(entry),
            Err(error) => Err(Box::new(RejectedEntry { entry, error })),
        };
        if let Err(rejected) = noted
            && matches!(rejected.error, Failed::Overloaded)
        {
            self.buffer(rejected.entry);
        }
    }

    /// Records, in the audit log, an input request that a server sends outside of any call, and whether it was allowed.
    pub fn note_input_request(
        &self,
        server: &str,
        request: &InputRequestKind,
        rejection: Option<&Error>,
    ) {
        let request = match request {
            InputRequestKind::Approve(_) => "approval",
            InputRequestKind::Elicit(_) => "elicitation",
            InputRequestKind::Sample(_) => "sampling",
            InputRequestKind::Roots => "roots",
            InputRequestKind::SignIn(_) => "sign_in",
        };
        let entry = AuditEntry::new(AuditEvent::ELICIT)
            .with("srv", server)
            .with("what", request);
        self.note(match rejection {
            Some(error) => entry
                .with("dec", "deny")
                .with("why", error.public_message()),
            None => entry.with("dec", "allow"),
        });
    }

    /// Counts a call that a limit rejected. Returns true if it needs a record of its own; of a flood of rejections, only
    /// the number is recorded.
    pub(crate) fn lists_rejection(&self, caller: &str, by: &'static str) -> bool {
        if self.journal().is_none() {
            return true;
        }
        let (is_listed, before) = self.rejections.count(caller, by, Instant::now());
        before.into_iter().for_each(|record| self.note(record));
        is_listed
    }

    /// Records the numbers of rejected calls that were counted instead of listed, once their time is over. A gateway calls
    /// it every few seconds; otherwise a flood that has ended is recorded only with the next rejection or the end of the
    /// program.
    #[doc(hidden)]
    pub fn record_rejection_counts(&self) {
        let records = self.rejections.take(Instant::now(), false);
        records.into_iter().for_each(|record| self.note(record));
    }

    fn buffer(&self, entry: AuditEntry) {
        let mut late = self.buffered();
        if entry.event == AuditEvent::DENY {
            late.refusals += 1;
        } else if late.entries.len() < AuditRecorder::MAX_BUFFERED_RECORDS {
            late.entries.push_back(entry);
        } else {
            late.dropped += 1;
        }
    }

    /// Queues the buffered entries, in order.
    fn flush(&self, journal: &AuditJournal) -> Result<(), Failed> {
        let mut late = self.buffered();
        while let Some(entry) = late.entries.pop_front() {
            if let Err(rejected) = journal.try_enqueue(entry) {
                late.entries.push_front(rejected.entry);
                return Err(rejected.error);
            }
        }
        if late.refusals > 0 || late.dropped > 0 {
            let entry = AuditEntry::new(AuditEvent::OVERLOAD).with("refused", late.refusals);
            journal.enqueue(match late.dropped {
                0 => entry,
                dropped => entry.with("dropped", dropped),
            })?;
            (late.refusals, late.dropped) = (0, 0);
        }
        Ok(())
    }

    fn buffered(&self) -> MutexGuard<'_, BufferedRecords> {
        self.buffered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AuditRecorder {
    fn drop(&mut self) {
        let records = self.rejections.take(Instant::now(), true);
        records.into_iter().for_each(|record| self.note(record));
    }
}

impl fmt::Debug for AuditRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sink {
            AuditSink::Journal(journal) => write!(f, "AuditRecorder({})", journal.initial_chain()),
            AuditSink::Log => f.write_str("AuditRecorder(log)"),
        }
    }
}

/// Returns the audit entry made safe for an audit log and for the terminal of its reader.
///
/// In names, reasons and client data, secrets are redacted and characters that would affect a terminal are escaped. A
/// [`AuditRecorder`] does this itself.
#[doc(hidden)]
pub fn sanitize_entry(entry: AuditEntry) -> AuditEntry {
    // One search of all untrusted values is faster than one of each string, and nearly always finds nothing.
    let values = entry.values();
    if is_clean_json(values)
        && !may_hold_secret(values)
        && matches!(escape_bidi(values), Cow::Borrowed(_))
    {
        return entry;
    }
    entry.with_edited_strings(&sanitized_text)
}

/// Returns a text of an audit entry made safe; `None` if it is safe already.
pub(crate) fn sanitized_text(text: &str) -> Option<String> {
    let redacted = SecretRedactor::redact_for_display(text);
    match (escape_bidi(&redacted), &redacted) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => None,
        (escaped, _) => Some(escaped.into_owned()),
    }
}

fn log(entry: &AuditEntry) {
    let text = |name: &str| match entry.get(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    tracing::info!(
        target: "toolgate::audit",
        event = entry.event.as_str(),
        call = %text("call"),
        caller = %text("caller"),
        method = %text("method"),
        name = %text("name"),
        decision = %text("dec"),
        out = %text("out"),
        micros = entry.get("dur_us").and_then(|value| value.as_u64()),
    );
}

/// Returns the error for the caller if a record cannot be written.
fn audit_error(error: Failed) -> Error {
    let text = match error {
        Failed::Overloaded => {
            "refused: the audit log is overloaded, so no call can run now; try again later"
        }
        Failed::Closed => {
            "refused: the program is shutting down, so no call can run; try again after it has restarted"
        }
        _ => {
            "refused: the audit log cannot be written, so no call can run; the operator must repair it"
        }
    };
    Error::new(ErrorKind::Refused(RefusalReason::AuditUnavailable), text).with_source(error)
}

/// Returns an entry with the caller, the operation and the source of a call; without contents.
pub(crate) fn call_entry(event: toolgate_journal::AuditEvent, call: &Call) -> AuditEntry {
    let entry = AuditEntry::new(event)
        .with_text("call", id(&call.id))
        .with_text("caller", call.caller.name())
        .with_text("name", call.name())
        .with_trusted_text("method", call.op.method())
        .with_text("era", &call.request_info.revision)
        .with_trusted_text("transport", call.request_info.transport)
        .with_number("round", call.round.number.into());
    let entry = with_attributes(entry, call.caller.attributes());
    let entry = match call.caller.view() {
        Some(view) => entry.with("view", view),
        None => entry,
    };
    let said = [
        ("client", call.request_info.client.as_deref()),
        ("rid", call.request_info.request.as_deref()),
    ];
    let entry = said
        .into_iter()
        .fold(entry, |entry, (name, said)| match said {
            Some(said) => entry.with_text(name, said),
            None => entry,
        });
    match call.request_info.address {
        Some(address) => entry.with("addr", address.to_canonical().to_string()),
        None => entry,
    }
}

/// Adds the groups, roles and claims of the caller, by which rules may have decided.
fn with_attributes(entry: AuditEntry, attributes: &CallerAttributes) -> AuditEntry {
    let names = [("groups", &attributes.groups), ("roles", &attributes.roles)];
    let entry = names
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .fold(entry, |entry, (key, names)| {
            entry.with(key, names.as_slice())
        });
    match attributes.claims.is_empty() {
        true => entry,
        false => entry.with("claims", attributes.claims.clone()),
    }
}

/// Adds the server and the full name of the item, as rules see it.
pub(crate) fn with_item_name(entry: AuditEntry, item: &Item) -> AuditEntry {
    entry
        .with_text("srv", &item.origin.server)
        .with_text("tool", &item.shared_name())
}

/// Adds the full name of the item, its name at the server if that differs, and the names of fixed arguments.
pub(crate) fn with_item(entry: AuditEntry, item: &Item) -> AuditEntry {
    let entry = with_item_name(entry, item);
    let entry = match item.upstream_name() == item.local_name {
        true => entry,
        false => entry.with_text("own", &item.upstream_key()),
    };
    match item.fixed_arguments() {
        None => entry,
        Some(fixed) => {
            let names: Vec<Value> = fixed.members().map(|(name, _)| name.into()).collect();
            entry.with("fixed", Value::Array(names))
        }
    }
}

/// Truncates a call id. The journal accepts ids of 1 to 256 bytes; those of edges are shorter.
fn id(id: &str) -> &str {
    const MAX_CHARS: usize = 64;
    if id.is_empty() {
        return "unnamed";
    }
    let end = match id.len() <= MAX_CHARS {
        true => None,
        false => id.char_indices().nth(MAX_CHARS),
    };
    end.map_or(id, |(end, _)| &id[..end])
}

#[cfg(test)]
#[cfg(all(feature = "audit", unix))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn an_entry_that_waits_for_room_has_no_secret() {
        let folder = std::env::temp_dir().join(format!("toolgate-waiting-{}", std::process::id()));
        let mut options = toolgate_journal::JournalOptions::new(folder.clone());
        options.max_queue_bytes = 1;
        let recorder = AuditRecorder::new(Arc::new(AuditJournal::open(options).unwrap()));
        // In two parts, so that a search for keys in this file finds none.
        let secret = ["AKI", "AQ4T5Z2LM7NPR3SVX"].concat();
        let end = AuditEntry::new(AuditEvent::ELICIT).with("why", format!("the key {secret}"));
        assert!(recorder.append_or_buffer(end).is_err(), "there is no room");
        let why = recorder.buffered().entries[0]
            .get("why")
            .unwrap()
            .to_string();
        assert!(
            why.contains("[redacted:") && !why.contains(&secret),
            "{why}"
        );
        let _ = std::fs::remove_dir_all(folder);
    }

    proptest! {
        /// The search of each string finds nothing that the search of the whole entry misses.
        #[test]
        fn the_search_of_a_whole_entry_misses_nothing(
            texts in prop::collection::vec(prop::collection::vec(part(), 0..4), 1..4)
        ) {
            let texts: Vec<String> = texts.iter().map(|parts| parts.concat()).collect();
            let entry = AuditEntry::new(AuditEvent::ELICIT).with("why", texts.clone());
            let sanitized = sanitize_entry(entry).get("why").unwrap();
            let each = texts.iter().map(|text| {
                let redacted = SecretRedactor::redact_for_display(text);
                escape_bidi(&redacted).into_owned()
            });
            prop_assert_eq!(sanitized, Value::from_iter(each));
        }
    }

    /// Returns a part of a text: plain, or one that is redacted, removed or escaped.
    fn part() -> impl Strategy<Value = String> {
        let secret = ["AKI", "AQ4T5Z2LM7NPR3SVX"].concat();
        prop_oneof![
            "[a-z \"\\\\/]{0,8}",
            Just(secret),
            "[\u{0}-\u{1f}\u{7f}\u{ad}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}\u{feff}\u{e0041}é]{1,2}",
        ]
    }

    #[test]
    fn entries_that_are_dropped_for_want_of_room_are_counted() {
        let folder = std::env::temp_dir().join(format!("toolgate-recorder-{}", std::process::id()));
        let recorder = AuditRecorder::in_folder(&folder).unwrap();
        let elicit = || AuditEntry::new(AuditEvent::ELICIT).with("srv", "s");
        (0..AuditRecorder::MAX_BUFFERED_RECORDS + 3).for_each(|_| recorder.buffer(elicit()));
        let journal = recorder.journal().unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while recorder.flush(journal).is_err() {
            assert!(Instant::now() < end, "the queue never has room");
            std::thread::yield_now();
        }
        journal.close();
        let lines =
            toolgate_journal::read::tail(&folder, 2 * AuditRecorder::MAX_BUFFERED_RECORDS).unwrap();
        let records = lines.iter().map(|line| serde_json::from_str(&line.raw));
        let records: Vec<Value> = records.collect::<Result<_, _>>().unwrap();
        let of = |event: &str| -> Vec<&Value> {
            records
                .iter()
                .filter(|record| record["ev"] == event)
                .collect()
        };
        assert_eq!(of("elicit").len(), AuditRecorder::MAX_BUFFERED_RECORDS);
        let overload = of("overload");
        assert_eq!((overload.len(), &overload[0]["dropped"]), (1, &3.into()));
        let _ = std::fs::remove_dir_all(folder);
    }
}
