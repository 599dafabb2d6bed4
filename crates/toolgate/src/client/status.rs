//! What an operator wants to know of a server. Holds no payload of any call.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use toolgate_core::DefinitionNote;
use toolgate_policy::{Secrets, clean};
use toolgate_wire::method::initialize::Implementation;

/// What is known of an open server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The revision that is spoken with it.
    pub revision: &'static str,
    /// Who it says it is; not verified.
    pub server: Option<Implementation>,
    /// How many tools it has, where it was asked already.
    pub tools: Option<usize>,
    /// What was repaired, withheld or dropped of its lists, and which list failed.
    pub definition_notes: Vec<DefinitionNote>,
    /// What went wrong on the stream so far.
    pub counters: Counters,
    /// The last thing that went wrong, in words.
    pub note: Option<String>,
    /// The last message that could not be used, in words, and how many there were.
    pub unusable: Option<(u64, String)>,
    /// Calls that wait for an answer to a question of the server.
    pub parked: usize,
    /// Why it is gone, where it is.
    pub lost: Option<String>,
}

/// How often something went wrong on the stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Lines that were no strict JSON.
    pub bad_lines: u64,
    /// Lines over the cap.
    pub long_lines: u64,
    /// JSON that was no message.
    pub malformed: u64,
    /// Replies to nothing that waits: unknown ids, late ones.
    pub stray_replies: u64,
    /// Requests that the server may not make in this revision.
    pub stray_requests: u64,
    /// Notifications that belong to nothing we know.
    pub stray_notifications: u64,
    /// Messages of ours that found the way to the server full.
    pub unsent: u64,
    /// Pings that came to nothing.
    pub unanswered: u64,
}

/// Which counter to raise.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    BadLine,
    LongLine,
    Malformed,
    StrayReply,
    StrayRequest,
    StrayNotification,
    Unsent,
    Unanswered,
}

/// The counters, and the last thing that went wrong.
#[derive(Debug, Default)]
pub(super) struct Notes {
    counts: [AtomicU64; 8],
    last: Mutex<Option<String>>,
    /// The last thing that an operator should see, and how many there were.
    alert: Mutex<Option<(u64, String)>>,
    /// The first text that was no message.
    noise: Mutex<Option<String>>,
}

impl Notes {
    /// Counts a trouble and keeps its words; they must hold no payload.
    pub(super) fn count(&self, trouble: Trouble, words: impl Into<String>) {
        self.counts[trouble as usize].fetch_add(1, Relaxed);
        self.say(words);
    }

    /// Keeps the words only.
    pub(super) fn say(&self, words: impl Into<String>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.into());
    }

    /// Keeps words that are also for the standard error of the program; they must hold no payload.
    pub(super) fn alert(&self, words: String) {
        self.say(words.clone());
        let mut alert = self.alert.lock().unwrap_or_else(PoisonError::into_inner);
        let count = alert.as_ref().map_or(0, |(count, _)| *count);
        *alert = Some((count + 1, words));
    }

    /// Keeps the words on a text that was no message. The first such text is the one that tells most.
    pub(super) fn noise(&self, words: String) {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.is_none() {
            *noise = Some(words.clone());
            drop(noise);
            self.alert(words);
        }
    }

    /// The last thing that an operator should see, and how many there were.
    pub(super) fn alerted(&self) -> Option<(u64, String)> {
        let alert = self.alert.lock().unwrap_or_else(PoisonError::into_inner);
        alert.clone()
    }

    /// The words on the first text that was no message.
    pub(super) fn first_noise(&self) -> Option<String> {
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.clone()
    }

    /// The last words.
    pub(super) fn last(&self) -> Option<String> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// All counters.
    pub(super) fn counters(&self) -> Counters {
        let n = |trouble: Trouble| self.counts[trouble as usize].load(Relaxed);
        Counters {
            bad_lines: n(Trouble::BadLine),
            long_lines: n(Trouble::LongLine),
            malformed: n(Trouble::Malformed),
            stray_replies: n(Trouble::StrayReply),
            stray_requests: n(Trouble::StrayRequest),
            stray_notifications: n(Trouble::StrayNotification),
            unsent: n(Trouble::Unsent),
            unanswered: n(Trouble::Unanswered),
        }
    }
}

/// Longest message of an error or of progress that is kept, in bytes: more than callers are given, so that a secret that the
/// end would cut is found whole.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Cuts a text to so many bytes, in whole characters, and frees the rest.
pub(super) fn cut(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.shrink_to_fit();
    }
}

/// Foreign words on one line: control and invisible characters taken out, then what looks like a secret, at most `limit`
/// characters. For what no pipeline cleans: the words of a failed opening or list, the standard error of a child.
pub fn harmless(words: &str, limit: usize) -> String {
    let clean = clean(words);
    // Before it is cut: half a secret looks like none.
    let safe = Secrets::redact_text(&clean);
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
    use super::harmless;

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
            assert_eq!(harmless(words, limit), expected);
        }
    }
}
