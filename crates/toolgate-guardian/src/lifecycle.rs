//! Exit and shutdown of a child.

use std::time::Duration;

/// Timeouts of the shutdown steps of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownSteps {
    /// Time from closing its standard input to SIGTERM. Default: 2 s.
    pub stdin_grace: Duration,
    /// Time from SIGTERM to SIGKILL. Default: 2 s.
    pub term_grace: Duration,
}

impl Default for ShutdownSteps {
    fn default() -> Self {
        Self {
            stdin_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
        }
    }
}

/// Exit of a child: status or signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// Exit status.
    Code(i32),
    /// Number of the signal that terminated it.
    Signal(i32),
    /// Unknown: the guardian died, or the child could not be killed.
    Unknown,
}

/// Lifecycle state of a child.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChildProgress {
    pub(crate) exit: Option<ChildExit>,
    pub(crate) ended: bool,
}
