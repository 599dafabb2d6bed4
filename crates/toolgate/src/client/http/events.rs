//! The events of one response.

use super::sse::{Event, Parser};
use bytes::{Buf, Bytes};
use http::HeaderValue;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;

/// A response that is a stream of events.
pub(super) struct Events {
    body: Incoming,
    left: Bytes,
    parser: Parser,
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
    /// Reads a response, events of at most `limit` bytes.
    pub(super) fn new(body: Incoming, limit: usize) -> Events {
        Events {
            body,
            left: Bytes::new(),
            parser: Parser::new(limit),
        }
    }

    /// The next event with data.
    pub(super) async fn next(&mut self) -> Result<Event, End> {
        loop {
            while !self.left.is_empty() {
                let (used, event) = self.parser.feed(&self.left).map_err(|_| End::TooBig)?;
                self.left.advance(used);
                if let Some(event) = event {
                    return Ok(event);
                }
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
