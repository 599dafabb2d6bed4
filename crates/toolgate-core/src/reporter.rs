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
pub struct Reporter(Option<Arc<dyn Report>>);

impl Reporter {
    /// Hands all events to `to`.
    pub fn new(to: Arc<dyn Report>) -> Reporter {
        Reporter(Some(to))
    }

    /// Tells something.
    pub fn tell(&self, event: Event) {
        if let Some(to) = &self.0 {
            to.report(event);
        }
    }

    /// Whether anybody listens. Where nobody does, making an event is wasted work.
    pub fn listens(&self) -> bool {
        self.0.is_some()
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
