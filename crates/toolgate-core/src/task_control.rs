//! Task control: lets a long call continue as a task, so that its caller need not wait.

use crate::Round;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// Task mode of a call: inline, eligible or task (MCP tasks). The order matters: the mode of a call only ever
/// increases.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum TaskMode {
    /// Not a task: the caller waits for the result.
    #[default]
    Inline,
    /// May become a task once the call has run for some time.
    Eligible,
    /// Runs as a task from now on.
    Task,
}

/// Handle by which a call requests to continue as an MCP task. Clones share one state.
///
/// Only an edge turns a call into a task. The default handle belongs to a caller without task support; requests on it
/// have no effect.
///
/// Specification: [tasks](https://modelcontextprotocol.io/extensions/tasks/overview),
/// [tasks of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
///
/// ```
/// use toolgate_core::{TaskControl, TaskMode};
///
/// let (control, mode) = TaskControl::new();
/// control.allow_task(); // once the call has run for some time
/// assert_eq!(*mode.borrow(), TaskMode::Eligible);
/// assert!(control.start_task()); // at once
/// assert!(control.is_task());
///
/// // The caller of this call does not support tasks: it waits.
/// assert!(!TaskControl::default().start_task());
/// ```
#[derive(Clone, Default)]
pub struct TaskControl(Option<Arc<TaskControlState>>);

/// Shared state of a [`TaskControl`].
#[derive(Default)]
struct TaskControlState {
    mode: watch::Sender<TaskMode>,
    /// Round by which the next process can resume the call.
    resume_round: watch::Sender<Option<Round>>,
    is_handed_over: AtomicBool,
}

impl TaskControl {
    /// Creates a task control for a call, and the receiver of its task mode for the edge.
    pub fn new() -> (TaskControl, watch::Receiver<TaskMode>) {
        let said = TaskControlState::default();
        let heard = said.mode.subscribe();
        (TaskControl(Some(Arc::new(said))), heard)
    }

    /// Allows the call to become a task once it has run for some time.
    pub fn allow_task(&self) {
        self.raise_mode(TaskMode::Eligible);
    }

    /// Requests that the call become a task at once. Returns false if its caller does not support tasks.
    #[must_use = "false means that the caller does not support tasks: it waits, or needs an error"]
    pub fn start_task(&self) -> bool {
        self.raise_mode(TaskMode::Task);
        self.0.is_some()
    }

    /// Returns true if the caller supports MCP tasks.
    pub fn is_supported(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if the call runs as an MCP task.
    pub fn is_task(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|said| *said.mode.borrow() == TaskMode::Task)
    }

    /// Records the round by which another process can resume the call. The server then continues the call even if this
    /// process ends. The last round replaces earlier ones.
    pub fn set_resume_round(&self, round: Round) {
        if let Some(said) = &self.0 {
            said.resume_round.send_replace(Some(round));
        }
    }

    /// Subscribes to the round by which the call can be resumed. Returns `None` if the caller does not support tasks.
    pub fn resume_round(&self) -> Option<watch::Receiver<Option<Round>>> {
        Some(self.0.as_ref()?.resume_round.subscribe())
    }

    /// Marks the call as handed over to another process: dropping it here must not cancel it at the server.
    pub fn hand_over(&self) {
        if let Some(said) = &self.0 {
            said.is_handed_over.store(true, Ordering::Release);
        }
    }

    /// Returns true if the call was handed over to another process, which resumes it.
    pub fn is_handed_over(&self) -> bool {
        let said = self.0.as_ref();
        said.is_some_and(|said| said.is_handed_over.load(Ordering::Acquire))
    }

    /// Raises the task mode; it never decreases.
    fn raise_mode(&self, pace: TaskMode) {
        if let Some(said) = &self.0 {
            said.mode.send_if_modified(|now| {
                let more = pace > *now;
                *now = pace.max(*now);
                more
            });
        }
    }
}

impl fmt::Debug for TaskControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(said) => write!(f, "TaskControl({:?})", *said.mode.borrow()),
            None => f.write_str("TaskControl(off)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_mode_never_decreases() {
        let (background, heard) = TaskControl::new();
        background.allow_task();
        assert_eq!(*heard.borrow(), TaskMode::Eligible);
        assert!(!background.is_task() && background.start_task() && background.is_task());
        background.allow_task();
        assert_eq!(*heard.borrow(), TaskMode::Task);
        let nobody = TaskControl::default();
        nobody.allow_task();
        assert!(!nobody.start_task() && !nobody.is_task());
    }
}
