//! Observation of calls by the application.

use super::EventCallback;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_core::{Call, Error, Json, Op, Output};

/// Event that an MCP client reports when one of its calls begins or ends, for the application's own display.
///
/// ```no_run
/// use toolgate::{Client, client::{CallEvent, CallState}};
///
/// /// Shows a call in the application's status line.
/// fn show(event: CallEvent) {
///     match event.state {
///         CallState::Began => println!("{} …", event.name),
///         CallState::Done { took, .. } => println!("{} took {took:?}", event.name),
///         CallState::Failed { why, .. } => println!("{} failed: {why}", event.name),
///         _ => println!("{} was cancelled", event.name),
///     }
/// }
///
/// # async fn f() -> Result<(), toolgate::Error> {
/// let client = Client::builder().observe(show).spawn(["weather-server"]).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallEvent {
    /// Id of the call, as in the audit log; the same in the begin and the end event.
    pub id: Arc<str>,
    /// Kind of the call: tool call, resource read, prompt or completion.
    pub op: Op,
    /// Name of the called tool or prompt, or URI of the resource.
    pub name: String,
    /// Exact arguments of the call. They may contain secrets.
    pub arguments: Json,
    /// Progress of the call: begun, or ended with a result, an error or a cancellation.
    pub state: CallState,
}

/// Progress of a client's call as its event reports it: begun, or ended with a result, an error or a cancellation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallState {
    /// The client's call begins.
    Began,
    /// The call ended with a result.
    Done {
        /// True if the tool reported an error (`isError` of the result).
        is_error: bool,
        /// Duration of the call, including the time that the user took to confirm it or to answer input requests.
        took: Duration,
    },
    /// The call ended with an error, or was denied.
    Failed {
        /// Error message of the failed or denied call.
        why: String,
        /// Duration from the begin of the call to its failure.
        took: Duration,
    },
    /// The application dropped the call's future, which cancelled the call.
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
