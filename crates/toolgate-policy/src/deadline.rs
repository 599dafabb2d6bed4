//! Every call ends in time; progress buys more, up to a hard cap.

use crate::{PerServer, words};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use toolgate_core::{BoxFuture, Call, Error, Event, Kind, Layer, Next, Outcome, Report, Reporter};

/// How long calls may take.
///
/// Stands below `confirm`: waiting for a person is never inside a deadline, and each round has its own.
#[derive(Clone, Debug)]
pub struct Deadline {
    /// Without progress.
    pub silence: PerServer<Duration>,
    /// At most, whatever progress is made.
    pub hard: Duration,
}

impl Default for Deadline {
    /// 60 s, at most 15 minutes.
    fn default() -> Deadline {
        Deadline {
            silence: PerServer::all(Duration::from_secs(60)),
            hard: Duration::from_secs(15 * 60),
        }
    }
}

/// Notes when the last progress came.
struct Beat {
    last: Mutex<Instant>,
    to: Reporter,
}

impl Beat {
    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report for Beat {
    fn report(&self, event: Event) {
        if matches!(event, Event::Progress(_)) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        self.to.tell(event);
    }
}

impl Deadline {
    fn late(&self, silence: Duration, end: Instant) -> Error {
        let text = if Instant::now() >= end {
            format!(
                "timed out after {}, the most that any call may take",
                words::span(self.hard)
            )
        } else {
            format!(
                "timed out after {} without an answer or progress",
                words::span(silence)
            )
        };
        Error::new(Kind::Late, text)
    }

    async fn limited<'a>(&'a self, mut call: Call, next: Next<'a>) -> Result<Outcome, Error> {
        let server = call.item().map(|item| item.origin.server.clone());
        let silence = self
            .silence
            .of(server.as_deref().unwrap_or_default())
            .min(self.hard);
        let start = Instant::now();
        let end = start + self.hard;
        let beat = Arc::new(Beat {
            last: Mutex::new(start),
            to: call.reporter.clone(),
        });
        call.reporter = call.reporter.through(beat.clone());
        let mut work = next.call(call);
        loop {
            let due = (beat.last() + silence).min(end);
            if due <= Instant::now() {
                // Leaving drops `work`, which cancels it all the way down.
                return Err(self.late(silence, end));
            }
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = sleep_until(due) => {}
            }
        }
    }
}

impl Layer for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.limited(call, next))
    }
}
