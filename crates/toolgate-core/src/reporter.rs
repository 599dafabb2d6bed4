//! What a call tells before it ends.

use std::{fmt, sync::Arc};
use toolgate_wire::{json::Json, method::notifications::Progress};

/// Something that happened during a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// How far it is.
    Progress(Progress),
    /// A log message.
    Log(LogMessage),
}

/// A log message of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    /// How grave it is, in the words of the protocol.
    pub level: String,
    /// Who says it.
    pub logger: Option<String>,
    /// What it says.
    pub data: Json,
}

/// Takes the events of one call. Must not block; may drop progress when nobody listens.
pub trait Report: Send + Sync + 'static {
    /// Something happened.
    fn report(&self, event: Event);
}

/// The way back to the caller before the outcome. Without a listener it does nothing.
#[derive(Clone, Default)]
pub struct Reporter {
    to: Option<Arc<dyn Report>>,
    /// Whether somebody reads what events say.
    read: bool,
    logs: Option<&'static str>,
}

impl Reporter {
    /// Hands all events to `to`.
    pub fn new(to: Arc<dyn Report>) -> Reporter {
        Reporter {
            to: Some(to),
            read: true,
            logs: None,
        }
    }

    /// The same, where log messages of that level and graver ones are wanted, in the words of the protocol. A server
    /// somewhere else is asked for none that nobody wants.
    pub fn with_logs(mut self, least: Option<&'static str>) -> Reporter {
        self.logs = least;
        self
    }

    /// Hands all events to `to` instead: for a layer that looks at them on their way, and reads none of their words. What
    /// is wanted stays the same.
    pub fn through(&self, to: Arc<dyn Report>) -> Reporter {
        Reporter {
            to: Some(to),
            ..*self
        }
    }

    /// Tells something.
    pub fn tell(&self, event: Event) {
        if let Some(to) = &self.to {
            to.report(event);
        }
    }

    /// Whether anybody listens. Where nobody does, making an event is wasted work.
    pub fn listens(&self) -> bool {
        self.to.is_some()
    }

    /// Whether somebody reads what events say. A layer that only counts them listens, and reads nothing: what nobody reads
    /// needs no cleaning.
    pub fn is_read(&self) -> bool {
        self.read
    }

    /// The least grave level of log messages that are wanted; `None` where none are.
    pub fn logs(&self) -> Option<&'static str> {
        self.logs
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Reporter({})",
            if self.listens() { "listening" } else { "off" }
        )
    }
}
