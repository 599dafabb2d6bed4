//! Events of one response.

use super::{
    pool::PooledBody,
    sse::{SseEvent, SseParser},
};
use bytes::{Buf, Bytes};
use http::HeaderValue;
use http_body_util::BodyExt;
use std::time::Duration;
use toolgate_protocol::memory_budget::{BudgetScope, MemoryPermit};

/// Event stream of one response.
pub(super) struct SseEventStream {
    body: PooledBody,
    left: Bytes,
    parser: SseParser,
    account: BudgetScope,
    claim: MemoryPermit,
}

/// Reason why there are no more events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SseStreamEnd {
    /// The server ended the stream.
    Closed,
    /// The connection broke.
    Broken,
    /// An event exceeds the limit.
    TooBig,
    /// The memory budget has no room for an event.
    BudgetExceeded,
}

/// Position from which a stream can be resumed.
#[derive(Clone, Default)]
pub(super) struct SseStreamPosition {
    /// Id of the last event.
    pub(super) id: Option<HeaderValue>,
    /// Wait that the server suggested.
    pub(super) retry: Option<Duration>,
}

impl SseEventStream {
    /// Returns the events of a response, at most `limit` bytes each, charged to this account.
    pub(super) fn new(body: PooledBody, limit: usize, account: BudgetScope) -> SseEventStream {
        SseEventStream {
            body,
            left: Bytes::new(),
            parser: SseParser::new(limit),
            claim: account.permit(),
            account,
        }
    }

    /// Returns the next event with data, and the memory permit for it.
    pub(super) async fn next(&mut self) -> Result<(SseEvent, MemoryPermit), SseStreamEnd> {
        loop {
            while !self.left.is_empty() {
                let (used, event) = self
                    .parser
                    .feed(&self.left)
                    .map_err(|_| SseStreamEnd::TooBig)?;
                self.left.advance(used);
                if let Some(event) = event {
                    let claim = std::mem::replace(&mut self.claim, self.account.permit());
                    return Ok((event, claim));
                }
                let room = self.claim.cover_message(self.parser.pending_bytes() as u64);
                room.map_err(|_| SseStreamEnd::BudgetExceeded)?;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.left = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => return Err(SseStreamEnd::Broken),
                None => return Err(SseStreamEnd::Closed),
            }
        }
    }

    /// Returns the position from which this stream can be resumed, given the position at which it began.
    pub(super) fn position(&self, began: &SseStreamPosition) -> SseStreamPosition {
        let id = self.parser.last_id.as_deref();
        SseStreamPosition {
            id: id
                .and_then(|id| HeaderValue::from_bytes(id).ok())
                .or_else(|| began.id.clone()),
            retry: self.parser.retry.or(began.retry),
        }
    }
}

impl SseEvent {
    /// Returns whether the event is a protocol message.
    pub(super) fn is_message(&self) -> bool {
        self.kind.is_empty() || self.kind == b"message"
    }
}
