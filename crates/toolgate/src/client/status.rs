//! Status of a server for operators. Holds no payload of any call.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use toolgate_core::DefinitionNote;
use toolgate_policy::{SecretRedactor, sanitize_text};
use toolgate_protocol::method::initialize::Implementation;

/// Status of an open server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// Negotiated revision.
    pub revision: &'static str,
    /// Name and version that the server claims; not verified.
    pub server: Option<Implementation>,
    /// Number of tools, if the list was read already.
    pub tool_count: Option<usize>,
    /// Notes on repaired, withheld and dropped items, and on failed lists.
    pub definition_notes: Vec<DefinitionNote>,
    /// Counters of protocol errors.
    pub counters: ProtocolErrorCounters,
    /// Most recent problem, as text.
    pub last_problem: Option<String>,
    /// Number of alerts, and the text of the last one: an unusable answer, or output that is not JSON.
    pub last_alert: Option<(u64, String)>,
    /// Number of parked calls: their server waits for input.
    pub parked_calls: usize,
    /// Reason why the connection was lost.
    pub lost_reason: Option<String>,
}

/// Counters of protocol errors on a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProtocolErrorCounters {
    /// Lines that were not strict JSON.
    pub bad_lines: u64,
    /// Messages that exceeded a limit or the memory budget.
    pub long_lines: u64,
    /// JSON that was not a JSON-RPC message.
    pub malformed: u64,
    /// Replies with an unknown id, or that came too late.
    pub stray_replies: u64,
    /// Requests that the server may not send in this revision, or for a capability that was not declared.
    pub stray_requests: u64,
    /// Notifications that belong to no call or subscription.
    pub stray_notifications: u64,
    /// Messages of ours that were dropped because the queue to the server was full.
    pub unsent: u64,
    /// Pings without an answer.
    pub unanswered: u64,
}

/// Kind of protocol error: selects a counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProtocolErrorKind {
    BadLine,
    LongLine,
    Malformed,
    StrayReply,
    StrayRequest,
    StrayNotification,
    Unsent,
    Unanswered,
}

/// Counters and the most recent problem.
#[derive(Debug, Default)]
pub(super) struct ConnectionNotes {
    counts: [AtomicU64; 8],
    last: Mutex<Option<String>>,
    /// Number of alerts, and the text of the last one.
    alert: Mutex<Option<(u64, String)>>,
    /// Text on the first output that was not a message.
    noise: Mutex<Option<String>>,
}

impl ConnectionNotes {
    /// Counts a protocol error and stores its text, which must hold no payload.
    pub(super) fn count(&self, trouble: ProtocolErrorKind, words: impl Into<String>) {
        self.counts[trouble as usize].fetch_add(1, Relaxed);
        self.record(words);
    }

    /// Stores the text only.
    pub(super) fn record(&self, words: impl Into<String>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.into());
    }

    /// Stores a text that is also for the operator; it must hold no payload.
    pub(super) fn alert(&self, words: String) {
        self.record(words.clone());
        let mut alert = self.alert.lock().unwrap_or_else(PoisonError::into_inner);
        let count = alert.as_ref().map_or(0, |(count, _)| *count);
        *alert = Some((count + 1, words));
    }

    /// Stores the text on output that was not a message. Only the first is stored: it explains most.
    pub(super) fn record_noise(&self, words: String) {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.is_none() {
            *noise = Some(words.clone());
            drop(noise);
            self.alert(words);
        }
    }

    /// Returns the number of alerts, and the text of the last one.
    pub(super) fn last_alert(&self) -> Option<(u64, String)> {
        let alert = self.alert.lock().unwrap_or_else(PoisonError::into_inner);
        alert.clone()
    }

    /// Returns the text on the first output that was not a message.
    pub(super) fn first_noise(&self) -> Option<String> {
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.clone()
    }

    /// Returns the most recent text.
    pub(super) fn last(&self) -> Option<String> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns all counters.
    pub(super) fn counters(&self) -> ProtocolErrorCounters {
        let n = |trouble: ProtocolErrorKind| self.counts[trouble as usize].load(Relaxed);
        ProtocolErrorCounters {
            bad_lines: n(ProtocolErrorKind::BadLine),
            long_lines: n(ProtocolErrorKind::LongLine),
            malformed: n(ProtocolErrorKind::Malformed),
            stray_replies: n(ProtocolErrorKind::StrayReply),
            stray_requests: n(ProtocolErrorKind::StrayRequest),
            stray_notifications: n(ProtocolErrorKind::StrayNotification),
            unsent: n(ProtocolErrorKind::Unsent),
            unanswered: n(ProtocolErrorKind::Unanswered),
        }
    }
}

/// Maximum length of an error or progress message that is stored, in bytes. It exceeds the limit for callers, so that a
/// secret across the cut is still recognized.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Truncates a text to at most `max_bytes`, at a character boundary, and frees the rest.
pub(super) fn truncate(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.shrink_to_fit();
    }
}

/// Returns untrusted text on one line: control and invisible characters are removed, secrets redacted, and the rest cut
/// to `limit` characters. For text that no pipeline sanitizes: errors of opening and listing, and the standard error of
/// a process.
pub fn sanitize_line(words: &str, limit: usize) -> String {
    let clean = sanitize_text(words);
    // Before cutting: half a secret is not recognized.
    let safe = SecretRedactor::redact_text(&clean);
    let mut chars = safe.chars();
    let line = |c: char| if matches!(c, '\n' | '\t') { ' ' } else { c };
    let mut short: String = chars.by_ref().take(limit).map(line).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::sanitize_line;

    #[test]
    fn foreign_words_are_one_line_without_secrets() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let (start, end) = token.split_at(20);
        for (words, limit, expected) in [
            ("a\u{1b}[31mb\r\nc\td\u{202e}", 100, "ab c d"),
            (
                "👩\u{200d}💻 می\u{200c}خواهم",
                100,
                "👩\u{200d}💻 می\u{200c}خواهم",
            ),
            (&format!("see {token}"), 100, "see [redacted:github-token]"),
            (
                &format!("see {start}\u{200b}{end}"),
                100,
                "see [redacted:github-token]",
            ),
            (&format!("see {token}"), 14, "see [redacted:…"),
        ] {
            assert_eq!(sanitize_line(words, limit), expected);
        }
    }
}
