//! Exit and shutdown of a child.

use std::time::Duration;

/// Time-outs of the steps that shut a child process down: close of its input, SIGTERM, SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownSteps {
    /// Time from closing the child's standard input to SIGTERM. Default: 2 s.
    pub stdin_grace: Duration,
    /// Time from SIGTERM to SIGKILL of the child. Default: 2 s.
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

/// Exit of a child process: its exit status, or the signal that terminated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// Exit status of the child process.
    Code(i32),
    /// Number of the signal that terminated the child process.
    Signal(i32),
    /// Unknown exit: the guardian died, or the child process could not be killed.
    Unknown,
}

/// Lifecycle state of a child.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChildProgress {
    pub(crate) exit: Option<ChildExit>,
    pub(crate) ended: bool,
}
