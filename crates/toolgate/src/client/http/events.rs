//! The events of one response.

use super::sse::{Event, Parser};
use bytes::{Buf, Bytes};
use http::HeaderValue;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use toolgate_wire::room::{Account, Claim};

/// A response that is a stream of events.
pub(super) struct Events {
    body: Incoming,
    left: Bytes,
    parser: Parser,
    account: Account,
    claim: Claim,
}

/// Why there are no more events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The server ended the stream.
    Closed,
    /// The connection broke.
    Broken,
    /// An event is over the cap.
    TooBig,
    /// There was no room for an event.
    NoRoom,
}

/// Where a stream that ended can be taken up.
#[derive(Clone, Default)]
pub(super) struct Place {
    /// The last event.
    pub(super) id: Option<HeaderValue>,
    /// How long to wait, where the server said so.
    pub(super) retry: Option<Duration>,
}

impl Events {
    /// Reads a response, events of at most `limit` bytes, on this account.
    pub(super) fn new(body: Incoming, limit: usize, account: Account) -> Events {
        Events {
            body,
            left: Bytes::new(),
            parser: Parser::new(limit),
            claim: account.claim(),
            account,
        }
    }

    /// The next event with data, and the room that it takes up.
    pub(super) async fn next(&mut self) -> Result<(Event, Claim), End> {
        loop {
            while !self.left.is_empty() {
                let (used, event) = self.parser.feed(&self.left).map_err(|_| End::TooBig)?;
                self.left.advance(used);
                if let Some(event) = event {
                    let claim = std::mem::replace(&mut self.claim, self.account.claim());
                    return Ok((event, claim));
                }
                let room = self.claim.message(self.parser.holds() as u64);
                room.map_err(|_| End::NoRoom)?;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.left = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => return Err(End::Broken),
                None => return Err(End::Closed),
            }
        }
    }

    /// Where this stream, which began at that place, can be taken up.
    pub(super) fn place(&self, began: &Place) -> Place {
        let id = self.parser.last_id.as_deref();
        Place {
            id: id
                .and_then(|id| HeaderValue::from_bytes(id).ok())
                .or_else(|| began.id.clone()),
            retry: self.parser.retry.or(began.retry),
        }
    }
}

impl Event {
    /// Whether it is a message of the protocol.
    pub(super) fn is_message(&self) -> bool {
        self.kind.is_empty() || self.kind == b"message"
    }
}
