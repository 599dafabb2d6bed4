//! Attribution of a server's log messages, which do not name their call.
//!
//! Since 2026-07-28 a server may send log messages only for calls that requested them. If exactly one call in flight
//! did, the message belongs to it. A server may still log for a while about a cancelled call: only that call's caller
//! may receive such messages. All other messages are dropped, because a wrong guess would leak data between callers. An
//! application that has a server to itself receives all of them; see `answerer`.

use super::{
    connection::{RequestPurpose, ServerConnection},
    status::MAX_MESSAGE_BYTES,
};
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};
use toolgate_core::{CallReporter, Caller, LogMessage};
use toolgate_protocol::{json::Json, method::notifications::LEVELS};

/// Callers that cancelled a call with log messages. Two are enough to stop all attribution, so no more are stored.
#[derive(Default)]
pub(super) struct CancelledLogCallers(Mutex<HashSet<Caller>>);

impl CancelledLogCallers {
    /// Records a call that was cancelled before its reply.
    pub(super) fn record(&self, purpose: &RequestPurpose) {
        let RequestPurpose::Call(reporter, caller, ..) = purpose else {
            return;
        };
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reporter.min_log_level().is_some() && callers.len() < 2 {
            callers.insert(caller.clone());
        }
    }

    /// Returns whether no other caller cancelled such a call.
    fn contains_only(&self, caller: &Caller) -> bool {
        let callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        callers.iter().all(|other| other == caller)
    }
}

impl ServerConnection {
    /// Passes a log message to its call. Returns false if the call is not known.
    pub(super) fn attribute_log(&self, params: Option<&Json>) -> bool {
        let Some(log) = params.and_then(read) else {
            return false;
        };
        match self.only_logging_call() {
            Some((reporter, caller)) if self.cancelled_log_callers.contains_only(&caller) => {
                reporter.send(toolgate_core::ReporterEvent::Log(log));
                true
            }
            _ => false,
        }
    }

    /// Returns the only call in flight that requested log messages.
    fn only_logging_call(&self) -> Option<(CallReporter, Caller)> {
        let asked = |purpose: &RequestPurpose| match purpose {
            RequestPurpose::Call(reporter, caller, ..) if reporter.min_log_level().is_some() => {
                Some((reporter.clone(), caller.clone()))
            }
            _ => None,
        };
        self.find_single(asked)
    }
}

/// Returns the log message in the parameters, if they are valid.
pub(super) fn read(params: &Json) -> Option<LogMessage> {
    let level = params.get("level")?.string()?;
    LEVELS.contains(&level.as_str()).then_some(())?;
    let mut message = LogMessage::new(level, params.get("data")?);
    message.logger = params
        .get("logger")
        .and_then(|l| l.string_up_to(MAX_MESSAGE_BYTES));
    Some(message)
}
