//! SSE responses, and their resumption if the server closes the stream before the reply.

use super::{
    super::{
        incoming::Carrier,
        link::{Failure, Link},
        status::Trouble,
        unusable::Unusable,
    },
    Http,
    answer::{Era, is_type},
    connection::Leaves,
    events::{End, Events, Place},
    headers::{self, LAST_EVENT},
    work::Job,
};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use std::time::Duration;
use toolgate_wire::message::Id;

/// Minimum wait before a stream is resumed, whatever the server suggests.
const SHORTEST: Duration = Duration::from_millis(50);
/// Maximum wait that the server can suggest.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Initial and maximum backoff if the server suggests no wait.
pub(super) const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Number of consecutive failed attempts to resume a stream before it is given up.
const TRIES: u32 = 5;

/// Reason why reading stopped.
pub(super) enum Stop {
    /// The expected reply arrived.
    Settled,
    /// The stream ended.
    End(End),
}

/// Returns the backoff after the n-th failure in a row.
pub(super) fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    AGAIN.0.saturating_mul(factor).min(AGAIN.1)
}

/// Returns the wait before a stream that ended is resumed.
pub(super) fn pause(place: &Place) -> Duration {
    place.retry.unwrap_or(AGAIN.0).clamp(SHORTEST, LONGEST)
}

impl Http {
    /// Handles events until the reply to the request arrives.
    pub(super) async fn follow(
        &self,
        link: &Link,
        id: &Id,
        body: Incoming,
        era: Era,
    ) -> Result<(), Failure> {
        let mut events = Events::new(body, self.options.line, self.options.account.clone());
        let mut place = Place::default();
        loop {
            let end = match hear(link, &mut events, Carrier::Response(id), era).await {
                Stop::Settled => {
                    // The rest of the body is read, so that the connection can be reused.
                    let _ = self.jobs.try_send(Job::Drain(events));
                    return Err(Failure::Lost { sent: true });
                }
                Stop::End(End::TooBig) => {
                    let why = Unusable::over("line_bytes", self.options.line);
                    link.notes
                        .count(Trouble::LongLine, "an event exceeded the size limit");
                    link.notes.alert(format!("one of its events {why}"));
                    return Err(why.failure());
                }
                Stop::End(End::NoRoom) => return Err(Failure::NoRoom),
                Stop::End(end) => end,
            };
            place = events.place(&place);
            if era == Era::Modern || place.id.is_none() {
                let words = "it closed the event stream before the answer";
                return Err(match end {
                    End::Closed if era == Era::Legacy => Failure::Malformed(words),
                    _ => Failure::Lost { sent: true },
                });
            }
            events = self.resume(link, &place).await?;
        }
    }

    /// Resumes a stream after the last event.
    async fn resume(&self, link: &Link, place: &Place) -> Result<Events, Failure> {
        tokio::time::sleep(pause(place)).await;
        for failures in 0..TRIES {
            match self.stream(link, place).await {
                Ok(response) if is_stream(&response) => {
                    return Ok(Events::new(
                        response.into_body(),
                        self.options.line,
                        self.options.account.clone(),
                    ));
                }
                Ok(response) if is_final(response.status()) => break,
                _ => tokio::time::sleep(backoff(failures)).await,
            }
        }
        Err(Failure::Lost { sent: true })
    }

    /// Requests a stream: a new one, or the continuation after the last event.
    pub(super) async fn stream(
        &self,
        link: &Link,
        place: &Place,
    ) -> Result<Response<Incoming>, Failure> {
        let session = self.sessions.now();
        let mut headers = self.in_session(link, self.http.headers().clone(), &session);
        headers::of_stream(&mut headers);
        if let Some(id) = &place.id {
            headers.insert(LAST_EVENT, id.clone());
        }
        let leaves = Leaves {
            method: Method::GET,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: None,
        };
        self.connections.send(leaves).await
    }
}

/// Returns whether a response is an event stream.
pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::OK && is_type(response.headers(), "text/event-stream")
}

/// Returns whether a retry would get the same answer.
pub(super) fn is_final(status: StatusCode) -> bool {
    let may_pass = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
    !may_pass
}

/// Handles events until the stream ends, or until the reply to a request arrives.
pub(super) async fn hear(link: &Link, events: &mut Events, carrier: Carrier<'_>, era: Era) -> Stop {
    loop {
        match events.next().await {
            Ok((event, claim)) if event.is_message() => {
                link.take_in(event.data, claim, era == Era::Modern, carrier)
            }
            Ok(_) => {}
            Err(end) => return Stop::End(end),
        }
        if let Carrier::Response(id) = carrier
            && link.purpose(id).is_none()
        {
            return Stop::Settled;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_cap_and_never_overflow() {
        assert_eq!(backoff(0), AGAIN.0);
        assert_eq!(backoff(3), AGAIN.0 * 8);
        for failures in [6, 31, 32, 63, u32::MAX] {
            assert_eq!(backoff(failures), AGAIN.1);
        }
        let wait = |retry| pause(&Place { id: None, retry });
        assert_eq!(wait(Some(Duration::from_millis(500))).as_millis(), 500);
        assert_eq!(wait(Some(Duration::MAX)), LONGEST);
        assert_eq!(wait(Some(Duration::ZERO)), SHORTEST);
    }
}
