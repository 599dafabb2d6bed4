//! Status of a server for operators. Holds no payload of any call.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use toolgate_core::DefinitionNote;
use toolgate_policy::{SecretRedactor, sanitize_text};
use toolgate_protocol::method::initialize::Implementation;

/// Status of a client's connection to an MCP server: revision, counters of protocol errors, and last problems.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// MCP protocol revision negotiated with the server.
    pub revision: &'static str,
    /// Name and version that the server claims (`serverInfo`); not verified.
    pub server: Option<Implementation>,
    /// Number of tools that the server listed; `None` before the first list.
    pub tool_count: Option<usize>,
    /// Notes on the server's tools, resources and prompts that were repaired, withheld or dropped, and on failed lists.
    pub definition_notes: Vec<DefinitionNote>,
    /// Counters of protocol errors of the server on this connection.
    pub counters: ProtocolErrorCounters,
    /// Message of the most recent problem with the server.
    pub last_problem: Option<String>,
    /// Number of alerts about the server, and the text of the last one: an unusable response, or output that is not
    /// JSON.
    pub last_alert: Option<(u64, String)>,
    /// Number of parked calls: suspended by the server until the caller responds to an input request.
    pub parked_calls: usize,
    /// Reason why the connection was lost; `None` while it is open.
    pub lost_reason: Option<String>,
}

/// Counters of protocol errors that a client has seen on its connection to a server.
///
/// ```
/// use toolgate::{Client, client::ProtocolErrorCounters};
///
/// /// Reports whether the server follows the protocol.
/// fn is_conforming(client: &Client) -> bool {
///     let mut errors = client.status().counters;
///     errors.bad_lines = 0; // many servers print log lines
///     errors == ProtocolErrorCounters::default()
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProtocolErrorCounters {
    /// Lines from the server that were not strict JSON.
    pub bad_lines: u64,
    /// Messages from the server that exceeded a size limit or the memory budget.
    pub long_lines: u64,
    /// JSON messages from the server that were not JSON-RPC messages.
    pub malformed: u64,
    /// Responses from the server with an unknown request id, or that came too late.
    pub stray_replies: u64,
    /// Requests from the server that it may not send in this revision, or for a capability that was not declared.
    pub stray_requests: u64,
    /// Notifications from the server that belong to no call or subscription.
    pub stray_notifications: u64,
    /// Messages to the server that were dropped because the outgoing queue was full.
    pub unsent: u64,
    /// Pings to the server without a response.
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

/// Returns untrusted text on one safe line of at most `limit` characters. Control and invisible characters are removed,
/// and secrets redacted. For text that no pipeline sanitizes: errors of opening and listing, and the standard error of
/// a process.
pub fn sanitize_line(text: &str, limit: usize) -> String {
    let clean = sanitize_text(text);
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
