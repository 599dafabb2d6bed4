//! Why an answer cannot be used, and whom it belonged to.

use super::{
    incoming::Carrier,
    link::{Failure, Link, Purpose},
    status::{Trouble, harmless},
};
use std::fmt;
use toolgate_wire::{
    json::{Limits, ReadError, ReadErrorKind},
    message::Id,
    unread::Unread,
};

/// Characters of a text that is no message that are quoted.
const MAX_QUOTED_CHARS: usize = 120;

/// Why an answer cannot be used. Quotes nothing of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unusable {
    /// There is no room for it.
    NoRoom,
    /// It exceeds a limit: the name of the setting, and the limit.
    Over(&'static str, usize),
    /// It cannot be read; the words of the reader.
    Unreadable(ReadError),
}

impl Unusable {
    /// It exceeds the limit of that name.
    pub(super) fn over(setting: &'static str, limit: usize) -> Unusable {
        Unusable::Over(setting, limit)
    }

    /// What the reader says.
    pub(super) fn read(error: ReadError, limits: &Limits) -> Unusable {
        match (error.kind(), error.exceeded(limits)) {
            (ReadErrorKind::NoRoom, _) => Unusable::NoRoom,
            (_, Some((setting, limit))) => Unusable::Over(setting, limit),
            (_, None) => Unusable::Unreadable(error),
        }
    }

    /// Why the request that it answers has no result.
    pub(super) fn failure(&self) -> Failure {
        match self {
            Unusable::NoRoom => Failure::NoRoom,
            other => Failure::Unusable(other.to_string()),
        }
    }
}

impl fmt::Display for Unusable {
    /// With the answer as its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::NoRoom => f.write_str("finds no room: too many bytes are in flight"),
            Unusable::Over(setting, limit) => write!(f, "exceeds the limit `{setting}` ({limit})"),
            Unusable::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl Link {
    /// A message that cannot be used: what it answers ends at once with the reason, instead of leaving it to its deadline.
    pub(super) fn unread(&self, why: Unusable, unread: Unread, carrier: Carrier<'_>) {
        let trouble = match why {
            Unusable::NoRoom | Unusable::Over(..) => Trouble::LongLine,
            _ => Trouble::BadLine,
        };
        self.notes
            .count(trouble, format!("a message of it {why}; it was dropped"));
        let mut known = unread.replies;
        known.retain(|id| self.purpose(id).is_some());
        if known.is_empty() && unread.unnamed {
            known.extend(self.meant_on(carrier));
        }
        if let Some(first) = known.first() {
            let what = self
                .purpose(first)
                .map_or("a request", |purpose| purpose.words());
            self.notes.alert(format!("its answer to {what} {why}"));
        }
        for id in &known {
            self.settle(Some(id), Err(why.failure()));
        }
    }

    /// The request that an answer without an id belongs to, where only one can be meant.
    pub(super) fn meant_on(&self, carrier: Carrier<'_>) -> Option<Id> {
        match carrier {
            Carrier::Stream => self.only_waiting(),
            Carrier::Response(id) => self.purpose(id).map(|_| id.clone()),
            Carrier::Unasked => None,
        }
    }

    /// A text that is no message and no piece of one, such as a line of a log: it is quoted, and nothing ends for it.
    pub(super) fn noise(&self, text: &[u8], carrier: Carrier<'_>) {
        let cut = text.get(..4 * MAX_QUOTED_CHARS).unwrap_or(text);
        let quoted = harmless(String::from_utf8_lossy(cut).trim(), MAX_QUOTED_CHARS);
        let expected = match carrier {
            Carrier::Stream if !self.is_http() => "one JSON message a line",
            _ => "one JSON message an event",
        };
        let words = format!("expected {expected}, got {quoted:?}");
        self.notes.count(Trouble::BadLine, words.clone());
        self.notes.noise(words);
    }
}

impl Purpose {
    /// What the request asks for.
    fn words(&self) -> &'static str {
        match self {
            Purpose::Open => "the handshake",
            Purpose::List => "a list",
            Purpose::Call(..) => "a call",
            Purpose::Listen(_) => "a subscription",
        }
    }
}
