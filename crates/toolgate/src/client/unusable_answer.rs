//! Answers that cannot be used, and the requests they belong to.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    incoming::MessageSource,
    status::{ProtocolErrorKind, sanitize_line},
};
use std::fmt;
use toolgate_protocol::{
    json::{JsonLimits, ReadError, ReadErrorKind},
    message::Id,
    unreadable::UnreadableText,
};

/// Maximum length of a quotation of non-JSON output, in characters.
const MAX_QUOTED_CHARS: usize = 120;

/// Reason why an answer cannot be used. It quotes nothing of the answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnusableAnswer {
    /// The memory budget is exhausted.
    BudgetExceeded,
    /// It exceeds a limit: the name of the setting, and its value.
    LimitExceeded(&'static str, usize),
    /// It cannot be parsed; the parser's error.
    Unreadable(ReadError),
}

impl UnusableAnswer {
    /// Returns the reason for an exceeded limit.
    pub(super) fn limit_exceeded(setting: &'static str, limit: usize) -> UnusableAnswer {
        UnusableAnswer::LimitExceeded(setting, limit)
    }

    /// Returns the reason for a parser error.
    pub(super) fn read(error: ReadError, limits: &JsonLimits) -> UnusableAnswer {
        match (error.kind(), error.exceeded(limits)) {
            (ReadErrorKind::BudgetExceeded, _) => UnusableAnswer::BudgetExceeded,
            (_, Some((setting, limit))) => UnusableAnswer::LimitExceeded(setting, limit),
            (_, None) => UnusableAnswer::Unreadable(error),
        }
    }

    /// Returns the failure of the request that it answers.
    pub(super) fn failure(&self) -> RequestFailure {
        match self {
            UnusableAnswer::BudgetExceeded => RequestFailure::BudgetExceeded,
            other => RequestFailure::Unusable(other.to_string()),
        }
    }
}

impl fmt::Display for UnusableAnswer {
    /// Writes a predicate whose subject is the answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableAnswer::BudgetExceeded => {
                f.write_str("exceeds the memory budget for messages in flight")
            }
            UnusableAnswer::LimitExceeded(setting, limit) => {
                write!(
                    f,
                    "exceeds the limit `{setting}` ({limit}); raise that limit if the server needs more"
                )
            }
            UnusableAnswer::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl ServerConnection {
    /// Handles an unusable message: fails the requests that it answers at once, instead of leaving them to their
    /// time-outs.
    pub(super) fn fail_unusable(
        &self,
        why: UnusableAnswer,
        unread: UnreadableText,
        carrier: MessageSource<'_>,
    ) {
        let trouble = match why {
            UnusableAnswer::BudgetExceeded | UnusableAnswer::LimitExceeded(..) => {
                ProtocolErrorKind::LongLine
            }
            _ => ProtocolErrorKind::BadLine,
        };
        self.notes.count(
            trouble,
            format!("one of its messages was dropped, because it {why}"),
        );
        let mut known = unread.replies;
        known.retain(|id| self.purpose(id).is_some());
        if known.is_empty() && unread.has_unidentified_reply {
            known.extend(self.request_meant(carrier));
        }
        if let Some(first) = known.first() {
            let what = self
                .purpose(first)
                .map_or("a request", |purpose| purpose.noun());
            self.notes.alert(format!("its answer to {what} {why}"));
        }
        for id in &known {
            self.complete_request(Some(id), Err(why.failure()));
        }
    }

    /// Returns the request that an answer without an id belongs to, if only one is possible.
    pub(super) fn request_meant(&self, carrier: MessageSource<'_>) -> Option<Id> {
        match carrier {
            MessageSource::Stream => self.only_pending_id(),
            MessageSource::Response(id) => self.purpose(id).map(|_| id.clone()),
            MessageSource::Unsolicited => None,
        }
    }

    /// Records output that is neither a message nor a part of one, for example a log line. It is quoted, and no request
    /// fails.
    pub(super) fn record_noise(&self, text: &[u8], carrier: MessageSource<'_>) {
        let cut = text.get(..4 * MAX_QUOTED_CHARS).unwrap_or(text);
        let quoted = sanitize_line(String::from_utf8_lossy(cut).trim(), MAX_QUOTED_CHARS);
        let expected = match carrier {
            MessageSource::Stream if !self.is_http() => "one JSON message per line",
            _ => "one JSON message per event",
        };
        let words = format!("expected {expected}, got {quoted:?}");
        self.notes.count(ProtocolErrorKind::BadLine, words.clone());
        self.notes.record_noise(words);
    }
}

impl RequestPurpose {
    /// Returns a noun for the purpose of the request.
    fn noun(&self) -> &'static str {
        match self {
            RequestPurpose::Open => "the handshake",
            RequestPurpose::List => "a request for a list",
            RequestPurpose::Call(..) => "a call",
            RequestPurpose::Listen(_) => "a subscription",
        }
    }
}
