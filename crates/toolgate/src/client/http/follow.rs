//! SSE responses, and their resumption if the server closes the stream before the reply.

use super::{
    super::{
        connection::{RequestFailure, ServerConnection},
        incoming::MessageSource,
        status::ProtocolErrorKind,
        unusable_answer::UnusableAnswer,
    },
    HttpTransport,
    connection::OutgoingHttpRequest,
    events::{SseEventStream, SseStreamEnd, SseStreamPosition},
    headers::{self, LAST_EVENT},
    jobs::HttpJob,
    pool::PooledBody,
    response::has_content_type,
};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use std::time::Duration;
use toolgate_protocol::{dialect::Dialect, message::Id};

/// Minimum wait before a stream is resumed, whatever the server suggests.
const MIN_RESUME_WAIT: Duration = Duration::from_millis(50);
/// Maximum wait that the server can suggest.
pub(super) const MAX_RESUME_WAIT: Duration = Duration::from_secs(60 * 60);
/// Initial and maximum backoff if the server suggests no wait.
pub(super) const RESUME_BACKOFF: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60));
/// Number of consecutive failed attempts to resume a stream before it is given up.
const MAX_RESUME_ATTEMPTS: u32 = 5;

/// Reason why reading stopped.
pub(super) enum StreamReadEnd {
    /// The expected reply arrived.
    ReplyReceived,
    /// The stream ended.
    End(SseStreamEnd),
}

/// Returns the backoff after the n-th failure in a row.
pub(super) fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    RESUME_BACKOFF
        .0
        .saturating_mul(factor)
        .min(RESUME_BACKOFF.1)
}

/// Returns the wait before a stream that ended is resumed.
pub(super) fn resume_wait(place: &SseStreamPosition) -> Duration {
    place
        .retry
        .unwrap_or(RESUME_BACKOFF.0)
        .clamp(MIN_RESUME_WAIT, MAX_RESUME_WAIT)
}

impl HttpTransport {
    /// Handles events until the reply to the request arrives.
    pub(super) async fn follow(
        &self,
        link: &ServerConnection,
        id: &Id,
        body: PooledBody,
        dialect: &Dialect,
    ) -> Result<(), RequestFailure> {
        let mut events = SseEventStream::new(
            body,
            self.options.max_line_bytes,
            self.options.budget_scope.clone(),
        );
        let mut place = SseStreamPosition::default();
        loop {
            let source = MessageSource::Response(id);
            let end = match read_events(link, &mut events, source, dialect).await {
                StreamReadEnd::ReplyReceived => {
                    // The rest of the body is read, so that the connection can be reused.
                    let _ = self.jobs.try_send(HttpJob::Drain(events));
                    return Err(RequestFailure::ConnectionLost { sent: true });
                }
                StreamReadEnd::End(SseStreamEnd::TooBig) => {
                    let why =
                        UnusableAnswer::limit_exceeded("line_bytes", self.options.max_line_bytes);
                    link.notes.count(
                        ProtocolErrorKind::LongLine,
                        "one of its events exceeded the size limit",
                    );
                    link.notes.alert(format!("one of its events {why}"));
                    return Err(why.failure());
                }
                StreamReadEnd::End(SseStreamEnd::BudgetExceeded) => {
                    return Err(RequestFailure::BudgetExceeded);
                }
                StreamReadEnd::End(end) => end,
            };
            place = events.position(&place);
            if !dialect.resumable_streams || place.id.is_none() {
                let words = "the event stream ended before the answer";
                return Err(match end {
                    // In other revisions a closed stream is a lost connection.
                    SseStreamEnd::Closed if dialect.resumable_streams => {
                        RequestFailure::Malformed(words)
                    }
                    _ => RequestFailure::ConnectionLost { sent: true },
                });
            }
            events = self.resume(link, &place).await?;
        }
    }

    /// Performs the resumption of a stream after the last event (`Last-Event-ID`).
    async fn resume(
        &self,
        link: &ServerConnection,
        place: &SseStreamPosition,
    ) -> Result<SseEventStream, RequestFailure> {
        tokio::time::sleep(resume_wait(place)).await;
        for failures in 0..MAX_RESUME_ATTEMPTS {
            match self.request_stream(link, place).await {
                Ok(response) if is_stream(&response) => {
                    return Ok(SseEventStream::new(
                        response.into_body(),
                        self.options.max_line_bytes,
                        self.options.budget_scope.clone(),
                    ));
                }
                Ok(response) if is_final(response.status()) => break,
                _ => tokio::time::sleep(backoff(failures)).await,
            }
        }
        Err(RequestFailure::ConnectionLost { sent: true })
    }

    /// Requests a stream: a new one, or the continuation after the last event.
    pub(super) async fn request_stream(
        &self,
        link: &ServerConnection,
        place: &SseStreamPosition,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        let session = self.sessions.current();
        let mut headers = self.http.headers().clone();
        self.add_session_headers(link, &mut headers, &session);
        headers::add_stream_headers(&mut headers);
        if let Some(id) = &place.id {
            headers.insert(LAST_EVENT, id.clone());
        }
        let leaves = OutgoingHttpRequest {
            method: Method::GET,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: None,
        };
        self.connections.send(&leaves).await
    }
}

/// Returns whether a response is an event stream.
pub(super) fn is_stream(response: &Response<PooledBody>) -> bool {
    response.status() == StatusCode::OK && has_content_type(response.headers(), "text/event-stream")
}

/// Returns whether a retry would get the same answer.
pub(super) fn is_final(status: StatusCode) -> bool {
    let may_pass = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
    !may_pass
}

/// Handles events until the stream ends, or until the reply to a request arrives.
pub(super) async fn read_events(
    link: &ServerConnection,
    events: &mut SseEventStream,
    carrier: MessageSource<'_>,
    dialect: &Dialect,
) -> StreamReadEnd {
    loop {
        match events.next().await {
            Ok((event, claim)) if event.is_message() => {
                link.receive(event.data, claim, dialect, carrier)
            }
            Ok(_) => {}
            Err(end) => return StreamReadEnd::End(end),
        }
        if let MessageSource::Response(id) = carrier
            && link.purpose(id).is_none()
        {
            return StreamReadEnd::ReplyReceived;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_cap_and_never_overflow() {
        assert_eq!(backoff(0), RESUME_BACKOFF.0);
        assert_eq!(backoff(3), RESUME_BACKOFF.0 * 8);
        for failures in [6, 31, 32, 63, u32::MAX] {
            assert_eq!(backoff(failures), RESUME_BACKOFF.1);
        }
        let wait = |retry| resume_wait(&SseStreamPosition { id: None, retry });
        assert_eq!(wait(Some(Duration::from_millis(500))).as_millis(), 500);
        assert_eq!(wait(Some(Duration::MAX)), MAX_RESUME_WAIT);
        assert_eq!(wait(Some(Duration::ZERO)), MIN_RESUME_WAIT);
    }
}
