//! Settings and views of MCP tasks, in builds with and without tasks.

use std::time::Duration;

/// Limits of the MCP tasks of a server: number, lifetime, size of results and polling.
///
/// Specification: [tasks](https://modelcontextprotocol.io/extensions/tasks/overview),
/// [tasks of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskLimits {
    /// Maximum number of tasks of one caller; 64.
    pub per_caller: usize,
    /// Maximum number of tasks of all callers; 1,024.
    pub total: usize,
    /// Maximum total size of stored task results, in bytes; 64 MiB. The oldest are evicted.
    pub max_result_bytes: usize,
    /// Lifetime of a task and its result, from its creation; one hour.
    pub lifetime: Duration,
    /// Time after which a running call that may become a task becomes one; 500 ms.
    pub become_task_after: Duration,
    /// Poll interval of a task that clients are asked to keep (`pollInterval`); one second.
    pub poll_interval: Duration,
    /// Maximum number of polls of one task in a minute; 600.
    pub polls_per_minute: u32,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits {
            per_caller: 64,
            total: 1024,
            max_result_bytes: 64 << 20,
            lifetime: Duration::from_secs(3600),
            become_task_after: Duration::from_millis(500),
            poll_interval: Duration::from_secs(1),
            polls_per_minute: 600,
        }
    }
}

/// Tool calls that an MCP server turns into tasks: none, those of marked tools, or all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TaskOffer {
    /// No call becomes a task.
    #[default]
    None,
    /// Calls of tools that declare task support may become tasks.
    #[cfg(feature = "tasks")]
    Marked,
    /// Calls of all tools may become tasks, after [`TaskLimits::become_task_after`].
    #[cfg(feature = "tasks")]
    Every,
}

impl TaskOffer {
    /// Returns the offer of a server: `Marked` if any of its tools supports tasks.
    #[cfg_attr(
        not(feature = "tasks"),
        expect(unused_variables, reason = "no tool can support tasks")
    )]
    pub(crate) fn marked(any: bool) -> TaskOffer {
        #[cfg(feature = "tasks")]
        if any {
            return TaskOffer::Marked;
        }
        TaskOffer::None
    }

    /// Returns the offer of two joined servers.
    pub(crate) fn or(self, other: TaskOffer) -> TaskOffer {
        TaskOffer::marked(self != TaskOffer::None || other != TaskOffer::None)
    }
}

/// View of an MCP task for operators: its call, caller, tool and status.
#[cfg(feature = "tasks")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskView {
    /// Id of the call that became the task, as in the audit log.
    pub call: std::sync::Arc<str>,
    /// Caller that owns the task.
    pub caller: toolgate_core::Caller,
    /// Name of the tool whose call became the task, as the caller uses it.
    pub tool: String,
    /// Task status as in the protocol, for example `working` or `completed`.
    pub status: &'static str,
    /// Status message of the task (`statusMessage`), if it has one.
    pub message: Option<String>,
    /// Creation time of the task, in milliseconds since 1970.
    pub created: u64,
    /// Lifetime of the task, from its creation.
    pub lifetime: Duration,
}
