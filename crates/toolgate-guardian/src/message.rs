//! What the gateway and the guardian say to each other. Private: both are the same binary.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Raised with every change of the messages, so that a replaced binary is noticed at start.
pub(crate) const VERSION: u32 = 1;

/// From the gateway to the guardian. `id` is chosen by the gateway and never used twice.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Spawn { id: u64, command: Command },
    End { id: u64, steps: WireSteps },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<OsString>,
}

/// How long each step of an end lasts, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireSteps {
    stdin: u32,
    term: u32,
}

impl WireSteps {
    pub(crate) fn new(stdin: Duration, term: Duration) -> Self {
        let milliseconds = |d: Duration| u32::try_from(d.as_millis()).unwrap_or(u32::MAX);
        Self {
            stdin: milliseconds(stdin),
            term: milliseconds(term),
        }
    }

    pub(crate) fn stdin(self) -> Duration {
        Duration::from_millis(self.stdin.into())
    }

    pub(crate) fn term(self) -> Duration {
        Duration::from_millis(self.term.into())
    }
}

/// From the guardian to the gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The guardian runs; the first message.
    Ready { version: u32 },
    /// Comes with three descriptors: the gateway's ends of stdin, stdout and stderr.
    Spawned { id: u64, pid: i32 },
    /// The program could not be started.
    Refused { id: u64, why: String },
    /// The order to end the child has arrived, and its descendants were looked up while they
    /// could be told from others; its standard input may end now.
    Ending { id: u64 },
    /// The child itself exited; others of its group may still run.
    Exited {
        id: u64,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// Nothing of the child is left. Nothing more is said about this id.
    Ended { id: u64 },
}
