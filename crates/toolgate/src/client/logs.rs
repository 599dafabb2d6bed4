//! Log messages of a server, which carry no mark of the call they belong to.
//!
//! Since 2026-07-28 a server may send none for a call that did not ask for them. So where just one call in flight
//! asked, a message is that one's. A call that was given up may be talked of for a while yet: only its own caller may
//! hear such words. Everything else is dropped, because a guess would tell one caller what another does. One application
//! that uses a server alone hears all of it; see `answerer`.

use super::{
    link::{Link, Purpose},
    status::MAX_MESSAGE_BYTES,
};
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};
use toolgate_core::{Caller, LogMessage, Reporter};
use toolgate_wire::{json::Json, method::notifications::LEVELS};

/// The callers that gave up a call which had asked for log messages. Two are enough to trust nobody any more.
#[derive(Default)]
pub(super) struct GaveUp(Mutex<HashSet<Caller>>);

impl GaveUp {
    /// A call was given up before its reply.
    pub(super) fn note(&self, purpose: &Purpose) {
        let Purpose::Call(reporter, caller, ..) = purpose else {
            return;
        };
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reporter.logs().is_some() && callers.len() < 2 {
            callers.insert(caller.clone());
        }
    }

    /// Whether nobody but this caller gave up such a call.
    fn none_but(&self, caller: &Caller) -> bool {
        let callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        callers.iter().all(|other| other == caller)
    }
}

impl Link {
    /// Hands a log message to the call it belongs to; false where that is not known.
    pub(super) fn log(&self, params: Option<&Json>) -> bool {
        let Some(log) = params.and_then(read) else {
            return false;
        };
        match self.logged() {
            Some((reporter, caller)) if self.gave_up.none_but(&caller) => {
                reporter.tell(toolgate_core::Event::Log(log));
                true
            }
            _ => false,
        }
    }

    /// The one call in flight that asked for log messages.
    fn logged(&self) -> Option<(Reporter, Caller)> {
        let asked = |purpose: &Purpose| match purpose {
            Purpose::Call(reporter, caller, ..) if reporter.logs().is_some() => {
                Some((reporter.clone(), caller.clone()))
            }
            _ => None,
        };
        self.only(asked)
    }
}

/// A log message, where it is one.
pub(super) fn read(params: &Json) -> Option<LogMessage> {
    let level = params.get("level")?.string()?;
    LEVELS.contains(&level.as_str()).then_some(())?;
    Some(LogMessage {
        level,
        logger: params
            .get("logger")
            .and_then(|l| l.string_up_to(MAX_MESSAGE_BYTES)),
        data: params.get("data")?,
    })
}
