//! What an operator wants to know of a server. Holds no payload of any call.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};
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
    /// The tools that were left out of the list, and why.
    pub left_out: Vec<LeftOut>,
    /// What went wrong on the stream so far.
    pub counters: Counters,
    /// The last thing that went wrong, in words.
    pub note: Option<String>,
    /// Why it is gone, where it is.
    pub lost: Option<String>,
}

/// A tool that was left out of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Its name, or its place in the list where it has none.
    pub tool: String,
    /// Why.
    pub reason: String,
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
}

/// The counters, and the last thing that went wrong.
#[derive(Debug, Default)]
pub(super) struct Notes {
    counts: [AtomicU64; 7],
    last: Mutex<Option<String>>,
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
        }
    }
}

/// Foreign words on one line: control and invisible characters replaced, at most `limit` characters.
pub fn harmless(words: &str, limit: usize) -> String {
    let safe = |c: char| {
        if c.is_control() || is_format(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    let mut short: String = words.chars().take(limit).map(safe).collect();
    if words.chars().nth(limit).is_some() {
        short.push('…');
    }
    short
}

/// Characters that change how others are shown, or are not shown at all.
fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
