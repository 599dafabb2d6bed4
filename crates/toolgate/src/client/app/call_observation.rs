//! Observation of calls by the application.

use super::EventCallback;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_core::{Call, Error, Json, Op, Output};

/// Event at the begin or end of a call, for the application's own display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallEvent {
    /// Call id, as in the audit log; the same in both events.
    pub id: Arc<str>,
    /// Operation.
    pub op: Op,
    /// Name or URI of the item.
    pub name: String,
    /// Exact arguments. They may contain secrets.
    pub arguments: Json,
    /// Begin or end of the call.
    pub state: CallState,
}

/// State of a call: its begin, or how it ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallState {
    /// The call begins.
    Began,
    /// The call has a result.
    Done {
        /// True if the tool reported an error.
        is_error: bool,
        /// Duration, including the time that people took.
        took: Duration,
    },
    /// The call failed or was denied.
    Failed {
        /// Reason.
        why: String,
        /// Duration.
        took: Duration,
    },
    /// The application dropped the call.
    Dropped,
}

/// Call that has begun and not ended. Dropping it before its end reports [`CallState::Dropped`].
pub(super) struct CallObservation {
    to: EventCallback<CallEvent>,
    event: CallEvent,
    since: Instant,
}

impl CallObservation {
    pub(super) fn begin(to: EventCallback<CallEvent>, call: &Call) -> CallObservation {
        let event = CallEvent {
            id: call.id.clone(),
            op: call.op,
            name: call.name().to_owned(),
            arguments: call.arguments().raw().clone(),
            state: CallState::Began,
        };
        to(event.clone());
        CallObservation {
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
                why: error.public_message().to_owned(),
                took,
            },
        };
    }
}

impl Drop for CallObservation {
    fn drop(&mut self) {
        if self.event.state == CallState::Began {
            self.event.state = CallState::Dropped;
        }
        (self.to)(self.event.clone());
    }
}

impl fmt::Debug for CallObservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallObservation({})", self.event.id)
    }
}
