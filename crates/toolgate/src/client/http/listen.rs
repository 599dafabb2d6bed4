//! GET stream on which a legacy server sends unsolicited messages.

use super::{
    super::{connection::ServerConnection, incoming::MessageSource},
    HttpTransport,
    events::{SseEventStream, SseStreamPosition},
    follow::{RESUME_BACKOFF, backoff, is_final, is_stream, read_events, resume_wait},
    response::{SessionEnd, session_end},
};
use std::{sync::atomic::Ordering::Relaxed, time::Duration};
use tokio::time::{Instant, sleep};

/// Reason why a stream is not open.
enum ListenStreamEnd {
    /// The server has no stream, and a retry would not change that.
    Unsupported,
    /// It is unavailable at the moment.
    Unavailable,
    /// It was open and ended.
    Closed(SseStreamPosition),
    /// Its session ended.
    SessionEnded,
}

impl HttpTransport {
    /// Keeps the stream open in one session after the other, as long as the server has one.
    pub(super) async fn listen(&self, link: &ServerConnection) {
        let (mut watch, mut failures, mut had) = (self.sessions.watch(), 0_u32, false);
        loop {
            link.has_no_change_stream.store(true, Relaxed);
            // A session that ended while idle is renewed here; otherwise its changes would be missed.
            let Ok(session) = self.sessions.usable(link, &self.options).await else {
                sleep(backoff(failures)).await;
                failures = failures.saturating_add(1);
                continue;
            };
            let began = Instant::now();
            let number = session.number;
            let over = tokio::select! {
                over = self.listen_in_session(link, number, &mut had) => over,
                _ = watch.wait_for(|session| session.number != number) => ListenStreamEnd::SessionEnded,
            };
            // Changes between two sessions are not reported.
            link.generation.fetch_add(1, Relaxed);
            if matches!(over, ListenStreamEnd::Unsupported) {
                link.has_no_change_stream.store(true, Relaxed);
                return;
            }
            let lasted = began.elapsed() > RESUME_BACKOFF.1;
            failures = if lasted {
                0
            } else {
                failures.saturating_add(1)
            };
            sleep(backoff(failures)).await;
        }
    }

    /// Keeps the stream open until the session ends, or until the server turns out to have none. `had` is set once a
    /// stream was open.
    async fn listen_in_session(
        &self,
        link: &ServerConnection,
        number: u64,
        had: &mut bool,
    ) -> ListenStreamEnd {
        let (mut place, mut failures) = (SseStreamPosition::default(), 0_u32);
        loop {
            let began = Instant::now();
            match self.listen_once(link, &place).await {
                ListenStreamEnd::SessionEnded if *had => {
                    self.sessions.mark_ended(number);
                    return ListenStreamEnd::SessionEnded;
                }
                // A server without this stream may also answer 404; its session goes on.
                ListenStreamEnd::SessionEnded | ListenStreamEnd::Unsupported => {
                    return ListenStreamEnd::Unsupported;
                }
                ListenStreamEnd::Unavailable => {
                    sleep(backoff(failures)).await;
                    failures = failures.saturating_add(1);
                }
                ListenStreamEnd::Closed(end) => {
                    *had = true;
                    // A server that sends `retry` closes its streams on purpose.
                    let lasted = began.elapsed() > RESUME_BACKOFF.1 || end.retry.is_some();
                    let grown = if lasted {
                        Duration::ZERO
                    } else {
                        backoff(failures)
                    };
                    failures = if lasted {
                        0
                    } else {
                        failures.saturating_add(1)
                    };
                    sleep(resume_wait(&end).max(grown)).await;
                    place = end;
                }
            }
        }
    }

    async fn listen_once(
        &self,
        link: &ServerConnection,
        place: &SseStreamPosition,
    ) -> ListenStreamEnd {
        let response = self.request_stream(link, place).await;
        self.listen_answered.send_replace(true);
        let response = match response {
            Ok(response) => response,
            Err(_) => return ListenStreamEnd::Unavailable,
        };
        let in_session = self.sessions.current().id.is_some();
        if !is_stream(&response) {
            let status = response.status();
            if !is_final(status) {
                return ListenStreamEnd::Unavailable;
            }
            let refused = self.read_error(response).await;
            return if in_session && session_end(status, &refused) != SessionEnd::No {
                ListenStreamEnd::SessionEnded
            } else {
                ListenStreamEnd::Unsupported
            };
        }
        // Changes while no stream was open are unknown, unless the server resends them.
        if place.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        link.has_no_change_stream.store(false, Relaxed);
        let mut events = SseEventStream::new(
            response.into_body(),
            self.options.max_line_bytes,
            self.options.budget_scope.clone(),
        );
        read_events(
            link,
            &mut events,
            MessageSource::Unsolicited,
            link.current_dialect(),
        )
        .await;
        link.has_no_change_stream.store(true, Relaxed);
        let end = events.position(place);
        if end.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        ListenStreamEnd::Closed(end)
    }
}
