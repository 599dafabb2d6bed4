//! Answers that cannot be used, and the requests they belong to.

use super::{
    incoming::MessageSource,
    link::{RequestFailure, RequestPurpose, ServerConnection},
    status::{ProtocolErrorKind, harmless},
};
use std::fmt;
use toolgate_wire::{
    json::{JsonLimits, ReadError, ReadErrorKind},
    message::Id,
    unread::UnreadableText,
};

/// Maximum length of a quotation of non-JSON output, in characters.
const MAX_QUOTED_CHARS: usize = 120;

/// Reason why an answer cannot be used. It quotes nothing of the answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnusableAnswer {
    /// The memory budget is exhausted.
    NoRoom,
    /// It exceeds a limit: the name of the setting, and its value.
    Over(&'static str, usize),
    /// It cannot be parsed; the parser's error.
    Unreadable(ReadError),
}

impl UnusableAnswer {
    /// Returns the reason for an exceeded limit.
    pub(super) fn over(setting: &'static str, limit: usize) -> UnusableAnswer {
        UnusableAnswer::Over(setting, limit)
    }

    /// Returns the reason for a parser error.
    pub(super) fn read(error: ReadError, limits: &JsonLimits) -> UnusableAnswer {
        match (error.kind(), error.exceeded(limits)) {
            (ReadErrorKind::NoRoom, _) => UnusableAnswer::NoRoom,
            (_, Some((setting, limit))) => UnusableAnswer::Over(setting, limit),
            (_, None) => UnusableAnswer::Unreadable(error),
        }
    }

    /// Returns the failure of the request that it answers.
    pub(super) fn failure(&self) -> RequestFailure {
        match self {
            UnusableAnswer::NoRoom => RequestFailure::NoRoom,
            other => RequestFailure::Unusable(other.to_string()),
        }
    }
}

impl fmt::Display for UnusableAnswer {
    /// Writes a predicate whose subject is the answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableAnswer::NoRoom => {
                f.write_str("exceeds the memory budget for messages in flight")
            }
            UnusableAnswer::Over(setting, limit) => {
                write!(f, "exceeds the limit `{setting}` ({limit})")
            }
            UnusableAnswer::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl ServerConnection {
    /// Handles an unusable message: fails the requests that it answers at once, instead of leaving them to their
    /// time-outs.
    pub(super) fn unread(
        &self,
        why: UnusableAnswer,
        unread: UnreadableText,
        carrier: MessageSource<'_>,
    ) {
        let trouble = match why {
            UnusableAnswer::NoRoom | UnusableAnswer::Over(..) => ProtocolErrorKind::LongLine,
            _ => ProtocolErrorKind::BadLine,
        };
        self.notes.count(
            trouble,
            format!("one of its messages {why}; it was dropped"),
        );
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

    /// Returns the request that an answer without an id belongs to, if only one is possible.
    pub(super) fn meant_on(&self, carrier: MessageSource<'_>) -> Option<Id> {
        match carrier {
            MessageSource::Stream => self.only_waiting(),
            MessageSource::Response(id) => self.purpose(id).map(|_| id.clone()),
            MessageSource::Unasked => None,
        }
    }

    /// Records output that is neither a message nor a part of one, for example a log line. It is quoted, and no request
    /// fails.
    pub(super) fn noise(&self, text: &[u8], carrier: MessageSource<'_>) {
        let cut = text.get(..4 * MAX_QUOTED_CHARS).unwrap_or(text);
        let quoted = harmless(String::from_utf8_lossy(cut).trim(), MAX_QUOTED_CHARS);
        let expected = match carrier {
            MessageSource::Stream if !self.is_http() => "one JSON message per line",
            _ => "one JSON message per event",
        };
        let words = format!("expected {expected}, got {quoted:?}");
        self.notes.count(ProtocolErrorKind::BadLine, words.clone());
        self.notes.noise(words);
    }
}

impl RequestPurpose {
    /// Returns a noun for the purpose of the request.
    fn words(&self) -> &'static str {
        match self {
            RequestPurpose::Open => "the handshake",
            RequestPurpose::List => "a list",
            RequestPurpose::Call(..) => "a call",
            RequestPurpose::Listen(_) => "a subscription",
        }
    }
}
