//! What an application sees of its calls.

use super::Told;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_core::{Call, Error, Json, Op, Output};

/// A call as it begins or ends, for the application's own display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallEvent {
    /// Names the call in the record; the same at its end.
    pub id: Arc<str>,
    /// What is done.
    pub op: Op,
    /// What is used: its name or URI.
    pub name: String,
    /// The exact arguments. They may hold secrets.
    pub arguments: Json,
    /// Whether it begins or ends.
    pub state: CallState,
}

/// Whether a call begins, or how it ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallState {
    /// It begins.
    Begins,
    /// It is done.
    Done {
        /// Whether the tool itself failed.
        is_error: bool,
        /// How long it took, with the time that people took.
        took: Duration,
    },
    /// It failed, or was refused.
    Failed {
        /// Why.
        why: String,
        /// How long it took.
        took: Duration,
    },
    /// The application dropped it.
    Dropped,
}

/// A call that began and did not end yet. Dropped before its end, it says so.
pub(super) struct Watching {
    to: Told<CallEvent>,
    event: CallEvent,
    since: Instant,
}

impl Watching {
    pub(super) fn begin(to: Told<CallEvent>, call: &Call) -> Watching {
        let event = CallEvent {
            id: call.id.clone(),
            op: call.op,
            name: call.name().to_owned(),
            arguments: call.arguments().raw().clone(),
            state: CallState::Begins,
        };
        to(event.clone());
        Watching {
            to,
            event,
            since: Instant::now(),
        }
    }

    pub(super) fn end(mut self, outcome: &Result<Output, Error>) {
        let took = self.since.elapsed();
        self.event.state = match outcome {
            Ok(output) => CallState::Done {
                is_error: output.is_error(),
                took,
            },
            Err(error) => CallState::Failed {
                why: error.public().to_owned(),
                took,
            },
        };
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if self.event.state == CallState::Begins {
            self.event.state = CallState::Dropped;
        }
        (self.to)(self.event.clone());
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watching({})", self.event.id)
    }
}
