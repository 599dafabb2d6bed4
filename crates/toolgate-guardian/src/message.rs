//! Messages between gateway and guardian. Private, since both are the same binary.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Version of the messages, raised with every change, so that a replaced binary is detected at the start.
pub(crate) const MESSAGE_VERSION: u32 = 1;

/// Request of the gateway to the guardian. The gateway chooses a unique `id`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardianRequest {
    Spawn { id: u64, command: WireCommand },
    End { id: u64, steps: WireSteps },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireCommand {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<OsString>,
}

/// Timeouts of the shutdown steps in milliseconds.
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

/// Event of the guardian to the gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardianEvent {
    /// The guardian is ready; the first message.
    Ready { version: u32 },
    /// The child was started. Carries three file descriptors: the gateway's ends of stdin, stdout and stderr.
    Spawned { id: u64, pid: i32 },
    /// The child could not be started.
    Refused { id: u64, why: String },
    /// The request to end the child arrived, and its descendants were recorded. The gateway may close its standard
    /// input now.
    Ending { id: u64 },
    /// The child itself exited; other processes of its group may still run.
    Exited {
        id: u64,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// No process of the child is left. The last event of this id.
    Ended { id: u64 },
}
