//! GET stream on which a legacy server sends unsolicited messages.

use super::{
    super::{incoming::Carrier, link::Link},
    Http,
    answer::{Ended, Era, ended},
    events::{Events, Place},
    follow::{AGAIN, backoff, hear, is_final, is_stream, pause},
};
use std::{sync::atomic::Ordering::Relaxed, time::Duration};
use tokio::time::{Instant, sleep};

/// Reason why a stream is not open.
enum Over {
    /// The server has no stream, and a retry would not change that.
    Never,
    /// It is unavailable at the moment.
    Later,
    /// It was open and ended.
    Ended(Place),
    /// Its session ended.
    Gone,
}

impl Http {
    /// Keeps the stream open in one session after the other, as long as the server has one.
    pub(super) async fn listen(&self, link: &Link) {
        let (mut watch, mut failures, mut had) = (self.sessions.watch(), 0_u32, false);
        loop {
            link.deaf.store(true, Relaxed);
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
                _ = watch.wait_for(|session| session.number != number) => Over::Gone,
            };
            // Changes between two sessions are not reported.
            link.generation.fetch_add(1, Relaxed);
            if matches!(over, Over::Never) {
                link.deaf.store(true, Relaxed);
                return;
            }
            let lasted = began.elapsed() > AGAIN.1;
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
    async fn listen_in_session(&self, link: &Link, number: u64, had: &mut bool) -> Over {
        let (mut place, mut failures) = (Place::default(), 0_u32);
        loop {
            let began = Instant::now();
            match self.listen_once(link, &place).await {
                Over::Gone if *had => {
                    self.sessions.ended(number);
                    return Over::Gone;
                }
                // A server without this stream may also answer 404; its session goes on.
                Over::Gone | Over::Never => return Over::Never,
                Over::Later => {
                    sleep(backoff(failures)).await;
                    failures = failures.saturating_add(1);
                }
                Over::Ended(end) => {
                    *had = true;
                    // A server that sends `retry` closes its streams on purpose.
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

    async fn listen_once(&self, link: &Link, place: &Place) -> Over {
        let response = self.stream(link, place).await;
        self.heard.send_replace(true);
        let response = match response {
            Ok(response) => response,
            Err(_) => return Over::Later,
        };
        let in_session = self.sessions.now().id.is_some();
        if !is_stream(&response) {
            let status = response.status();
            if !is_final(status) {
                return Over::Later;
            }
            let refused = self.refused(response).await;
            return if in_session && ended(status, &refused) != Ended::No {
                Over::Gone
            } else {
                Over::Never
            };
        }
        // Changes while no stream was open are unknown, unless the server resends them.
        if place.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        link.deaf.store(false, Relaxed);
        let mut events = Events::new(
            response.into_body(),
            self.options.line,
            self.options.account.clone(),
        );
        hear(link, &mut events, Carrier::Unasked, Era::Legacy).await;
        link.deaf.store(true, Relaxed);
        let end = events.place(place);
        if end.id.is_none() {
            link.generation.fetch_add(1, Relaxed);
        }
        Over::Ended(end)
    }
}
