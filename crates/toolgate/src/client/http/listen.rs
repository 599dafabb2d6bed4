//! The stream on which a server with a handshake speaks unasked.

use super::{
    super::link::Link,
    Http,
    answer::Era,
    events::{Events, Place},
    follow::{AGAIN, backoff, hear, is_final, is_stream, pause},
};
use http::StatusCode;
use std::{sync::atomic::Ordering::Relaxed, time::Duration};
use tokio::time::{Instant, sleep};

/// Why a stream is over.
enum Over {
    /// There is none, and asking again brings none.
    Never,
    /// It cannot be had now.
    Later,
    /// It ended after a time.
    Ended(Place),
}

impl Http {
    /// Listens for as long as the server has such a stream, in one session after the other.
    pub(super) async fn listen(&self, link: &Link) {
        let mut watch = self.sessions.watch();
        loop {
            link.deaf.store(true, Relaxed);
            let ready = watch.wait_for(|session| session.ready).await;
            let Ok(number) = ready.map(|session| session.number) else {
                return;
            };
            let mut next = watch.clone();
            let over = tokio::select! {
                over = self.listen_in_session(link, number) => over,
                _ = next.wait_for(|session| session.number != number) => true,
            };
            link.deaf.store(true, Relaxed);
            if !over {
                return;
            }
        }
    }

    /// False where the server has no such stream at all. After the end of the session it waits to be dropped.
    async fn listen_in_session(&self, link: &Link, number: u64) -> bool {
        let (mut place, mut failures) = (Place::default(), 0_u32);
        loop {
            let began = Instant::now();
            match self.listen_once(link, &place, number).await {
                Over::Never => return false,
                Over::Later => {
                    sleep(backoff(failures)).await;
                    failures = failures.saturating_add(1);
                }
                Over::Ended(end) => {
                    // A server that says when to come again closes its streams on purpose.
                    let lasted = began.elapsed() > AGAIN.1 || end.retry.is_some();
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
                    sleep(pause(&end).max(grown)).await;
                    place = end;
                }
            }
        }
    }

    async fn listen_once(&self, link: &Link, place: &Place, number: u64) -> Over {
        let response = match self.stream(link, place).await {
            Ok(response) => response,
            Err(_) => return Over::Later,
        };
        let in_session = self.sessions.now().id.is_some();
        if !is_stream(&response) {
            let status = response.status();
            if status == StatusCode::NOT_FOUND && in_session {
                // The next request finds out too, and opens a new session.
                self.sessions.ended(number);
                std::future::pending::<()>().await;
            }
            return if is_final(status) {
                Over::Never
            } else {
                Over::Later
            };
        }
        // What was told while nobody listened is not known, unless it is told again.
        if place.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        link.deaf.store(false, Relaxed);
        let mut events = Events::new(response.into_body(), self.options.line);
        hear(link, &mut events, None, Era::Legacy).await;
        link.deaf.store(true, Relaxed);
        let end = events.place(place);
        if end.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        Over::Ended(end)
    }
}
