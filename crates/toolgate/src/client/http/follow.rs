//! A response that is a stream of events, and its resumption where the server closes it before the reply.

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

/// Shortest wait before a stream is asked for again, whatever the server says.
const SHORTEST: Duration = Duration::from_millis(50);
/// Longest wait.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The wait where the server says nothing, and the longest that it grows to.
pub(super) const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often in a row a stream is asked for in vain.
const TRIES: u32 = 5;

/// Why reading stopped.
pub(super) enum Stop {
    /// The reply that was waited for is there.
    Settled,
    /// There are no more events.
    End(End),
}

/// The wait after the n-th failure in a row.
pub(super) fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    AGAIN.0.saturating_mul(factor).min(AGAIN.1)
}

/// The wait before a stream that ended is asked for again.
pub(super) fn pause(place: &Place) -> Duration {
    place.retry.unwrap_or(AGAIN.0).clamp(SHORTEST, LONGEST)
}

impl Http {
    /// Hands over events until the reply to the request is there.
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
                    // Its last bytes are read, so that the connection can be used again.
                    let _ = self.jobs.try_send(Job::Drain(events));
                    return Err(Failure::Lost { sent: true });
                }
                Stop::End(End::TooBig) => {
                    let why = Unusable::over("line_bytes", self.options.line);
                    link.notes
                        .count(Trouble::LongLine, "an event was over the limit");
                    link.notes.alert(format!("an event of it {why}"));
                    return Err(why.failure());
                }
                Stop::End(End::NoRoom) => return Err(Failure::NoRoom),
                Stop::End(end) => end,
            };
            place = events.place(&place);
            if era == Era::Modern || place.id.is_none() {
                let words = "it ended the stream of events before the answer";
                return Err(match end {
                    End::Closed if era == Era::Legacy => Failure::Malformed(words),
                    _ => Failure::Lost { sent: true },
                });
            }
            events = self.resume(link, &place).await?;
        }
    }

    /// Takes a stream up where it ended.
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

    /// Asks for a stream: a new one, or one that ended at that place.
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

/// Whether there is a stream.
pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::OK && is_type(response.headers(), "text/event-stream")
}

/// Whether asking again would bring the same answer.
pub(super) fn is_final(status: StatusCode) -> bool {
    let may_pass = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
    !may_pass
}

/// Hands over events as long as they come, or until the reply to a request is there.
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
