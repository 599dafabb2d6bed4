//! Calls that go on after their answer.
//!
//! A task is a call whose future the edge keeps: it runs through the same pipeline to its end, with the same rules, the
//! same cleaning and the same place among the calls that run. Only its caller does not wait; it looks instead. So there
//! is nothing of tasks below the edge.

mod again;
mod entry;
mod kept;
mod looks;
mod methods;
mod run;
mod session;
mod table;
mod told;

pub(crate) use again::take_up;
pub(crate) use methods::{answer, is_method};
pub(crate) use run::{run, wish};
pub(crate) use session::OfSession;
pub(crate) use table::Tasks;
pub(crate) use told::Subscribed;

use std::time::Duration;

/// The limits of tasks.
#[derive(Clone, Debug)]
pub struct TaskLimits {
    /// Tasks of one caller; 64.
    pub per_caller: usize,
    /// Tasks of all; 1,024.
    pub all: usize,
    /// Bytes of all results that are kept; 64 MiB. The oldest give way.
    pub bytes: usize,
    /// How long a task lives, from its begin; one hour.
    pub life: Duration,
    /// After which time a call that may become a task becomes one; 500 ms.
    pub after: Duration,
    /// How long a client is asked to wait between two looks; one second.
    pub poll: Duration,
    /// How often one task may be looked at in a minute; 600.
    pub looks: u32,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits {
            per_caller: 64,
            all: 1024,
            bytes: 64 << 20,
            life: Duration::from_secs(3600),
            after: Duration::from_millis(500),
            poll: Duration::from_secs(1),
            looks: 600,
        }
    }
}

/// Which calls may go on as tasks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TaskOffer {
    /// None.
    #[default]
    None,
    /// Those of tools that say so.
    Marked,
    /// Those of all tools, once they took long.
    Every,
}

/// A task, for an operator.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// The call that it is, as in the record.
    pub call: std::sync::Arc<str>,
    /// Who began it.
    pub caller: toolgate_core::Caller,
    /// The tool, as the caller names it.
    pub tool: String,
    /// Its state, in the word of the protocol.
    pub status: &'static str,
    /// The state in words.
    pub message: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created: u64,
    /// How long it is kept, from its begin.
    pub life: Duration,
}
