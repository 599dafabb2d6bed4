//! Tasks: `tasks/*` of 2025-11-25, and of the extension `io.modelcontextprotocol/tasks` (2026-07-28).

use super::{definition::Definition, elicitation::RawInputRequest};
use crate::{
    json::{Json, JsonKind, ObjectWriter},
    message::RpcError,
};

/// Method name `tasks/get`, which polls the state of a task.
pub const GET: &str = "tasks/get";
/// Method name `tasks/update`, which sends the answers to a task's input requests (tasks extension).
pub const UPDATE: &str = "tasks/update";
/// Method name `tasks/cancel`, which cancels a task.
pub const CANCEL: &str = "tasks/cancel";
/// Method name `tasks/result`, which waits for the result of a task (2025-11-25).
pub const RESULT: &str = "tasks/result";
/// Method name `tasks/list`, which lists the tasks of a client (2025-11-25).
pub const LIST: &str = "tasks/list";
/// Method name of the notification of a task's status (2025-11-25).
pub const STATUS: &str = "notifications/tasks/status";
/// Method name of the notification of a task's status (tasks extension of 2026-07-28).
pub const CHANGED: &str = "notifications/tasks";
/// Identifier of the MCP extension for tasks (2026-07-28).
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Key of `_meta` for the task that a message belongs to (2025-11-25).
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Form of tasks in an MCP revision: none, core or extension.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskForm {
    /// The revision has no tasks.
    None,
    /// Tasks of MCP 2025-11-25: the client requests that a call become a task.
    Core,
    /// Tasks of the MCP extension: the server decides which calls become tasks.
    Extension,
}

/// Task support of a tool: `execution.taskSupport`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TaskSupport {
    /// The tool is never called as a task.
    #[default]
    Forbidden,
    /// The tool may be called as a task, on request or if the call takes long.
    Optional,
    /// The tool is always called as a task.
    Required,
}

impl TaskSupport {
    /// Reads the task support from the definition of a tool; an unknown value counts as absent.
    pub fn of(tool: &Definition) -> TaskSupport {
        let execution = tool.json().get("execution");
        let word = execution.and_then(|e| e.get("taskSupport")?.string());
        match word.as_deref() {
            Some("optional") => TaskSupport::Optional,
            Some("required") => TaskSupport::Required,
            _ => TaskSupport::Forbidden,
        }
    }

    /// Returns true if the definition of a tool explicitly forbids tasks.
    pub fn is_forbidden_by(tool: &Definition) -> bool {
        let execution = tool.json().get("execution");
        let word = execution.and_then(|e| e.get("taskSupport")?.string());
        word.as_deref() == Some(TaskSupport::Forbidden.as_str())
    }

    /// Returns the protocol value of `execution.taskSupport`, for example `optional`.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskSupport::Forbidden => "forbidden",
            TaskSupport::Optional => "optional",
            TaskSupport::Required => "required",
        }
    }
}

/// Status of a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskStatus {
    /// The task runs.
    Working,
    /// The task waits for answers of the client.
    InputRequired,
    /// The task has a result, which may be a tool error.
    Completed,
    /// The task has a protocol error.
    Failed,
    /// The task was cancelled before it had a result.
    Cancelled,
}

impl TaskStatus {
    /// All task statuses.
    pub const ALL: [TaskStatus; 5] = [
        TaskStatus::Working,
        TaskStatus::InputRequired,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    /// Returns the protocol value of the task status, for example `working`.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Reads a task status from its protocol value, for example `input_required`.
    pub fn read(word: &str) -> Option<TaskStatus> {
        TaskStatus::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Returns true if the task has ended: completed, failed or cancelled.
    pub fn is_final(self) -> bool {
        !matches!(self, TaskStatus::Working | TaskStatus::InputRequired)
    }
}

/// State of a task, as one message reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Task id. Knowing it may suffice to access the task, so it must be unguessable.
    pub id: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Description of the task's status, for people.
    pub message: Option<String>,
    /// Creation time of the task, ISO 8601.
    pub created: String,
    /// Time of the task's last change of status, ISO 8601.
    pub updated: String,
    /// Lifetime of the task in milliseconds since creation; `None` is unlimited.
    pub ttl_ms: Option<u64>,
    /// Recommended interval between two polls of the task, in milliseconds.
    pub poll_ms: Option<u64>,
    /// Details of the task's status (tasks extension).
    pub detail: TaskDetail,
}

/// Details of a task's status: input requests, a result or an error (tasks extension).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TaskDetail {
    /// No details.
    #[default]
    None,
    /// All open input requests of the task.
    InputRequests(Vec<RawInputRequest>),
    /// Result of the call that became the task.
    Result(Json),
    /// JSON-RPC error of the call that became the task.
    Error(RpcError),
}

impl Task {
    /// Reads the task state from a creation result, a `tasks/get` result or a task notification.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(form: TaskForm, result: &Json) -> Result<Task, &'static str> {
        let inner = result.get("task").filter(|_| form == TaskForm::Core);
        let json = inner.as_ref().unwrap_or(result);
        let text = |key: &str| json.get(key).and_then(|v| v.string());
        let (ttl, poll) = match form {
            TaskForm::Extension => ("ttlMs", "pollIntervalMs"),
            _ => ("ttl", "pollInterval"),
        };
        let number = |key: &str| json.get(key).and_then(|v| u64::try_from(v.i64()?).ok());
        let status = text("status").and_then(|word| TaskStatus::read(&word));
        let status = status.ok_or("the \"status\" of the task is missing or unknown")?;
        let detail = match form {
            TaskForm::Extension => read_detail(status, json)?,
            _ => TaskDetail::None,
        };
        Ok(Task {
            id: text("taskId").ok_or("the \"taskId\" of the task is missing or not a string")?,
            status,
            message: text("statusMessage"),
            created: text("createdAt").unwrap_or_default(),
            updated: text("lastUpdatedAt").unwrap_or_default(),
            ttl_ms: number(ttl),
            poll_ms: number(poll),
            detail,
        })
    }

    /// Writes the members of the task state into a result. The creation result has no details.
    pub fn write(&self, o: &mut ObjectWriter, form: TaskForm, whole: bool) {
        o.str("taskId", &self.id);
        o.str("status", self.status.as_str());
        if let Some(message) = &self.message {
            o.str("statusMessage", message);
        }
        o.str("createdAt", &self.created);
        o.str("lastUpdatedAt", &self.updated);
        let (ttl, poll) = match form {
            TaskForm::Extension => ("ttlMs", "pollIntervalMs"),
            _ => ("ttl", "pollInterval"),
        };
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        match self.ttl_ms {
            Some(ms) => o.int(ttl, number(ms)),
            None => o.null(ttl),
        }
        if let Some(ms) = self.poll_ms {
            o.int(poll, number(ms));
        }
        if whole && form == TaskForm::Extension {
            self.detail.write(o);
        }
    }
}

fn read_detail(status: TaskStatus, json: &Json) -> Result<TaskDetail, &'static str> {
    Ok(match status {
        TaskStatus::InputRequired => {
            let asks = json.get("inputRequests");
            match asks.filter(|a| a.kind() == JsonKind::Object) {
                Some(asks) => TaskDetail::InputRequests(RawInputRequest::read_all(&asks)?),
                None => TaskDetail::None,
            }
        }
        TaskStatus::Completed => json
            .get("result")
            .map_or(TaskDetail::None, TaskDetail::Result),
        TaskStatus::Failed => {
            let error = json.get("error");
            let error = error.map(|e| {
                RpcError::read(&e).ok_or(
                    "the \"error\" of the task lacks an integer \"code\" or a string \"message\"",
                )
            });
            error
                .transpose()?
                .map_or(TaskDetail::None, TaskDetail::Error)
        }
        TaskStatus::Working | TaskStatus::Cancelled => TaskDetail::None,
    })
}

impl TaskDetail {
    fn write(&self, o: &mut ObjectWriter) {
        match self {
            TaskDetail::None => {}
            TaskDetail::InputRequests(asks) => RawInputRequest::write_all(asks, o),
            TaskDetail::Result(result) => o.raw("result", result),
            TaskDetail::Error(error) => o.raw("error", &error.json()),
        }
    }
}

/// Returns the `taskId` in the parameters of a request; `None` if it has none.
pub fn task_id(params: Option<&Json>) -> Option<String> {
    params?.get("taskId")?.string()
}

/// Requested properties of a task: the parameter `task` (2025-11-25).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TaskMetadata {
    /// Requested lifetime of the task in milliseconds.
    pub ttl_ms: Option<u64>,
}

impl TaskMetadata {
    /// Reads the parameter `task` of a call; `None` if the call does not request a task.
    ///
    /// # Errors
    /// Returns an error if it is not an object, or its `ttl` is not a whole number.
    pub fn read(params: Option<&Json>) -> Result<Option<TaskMetadata>, &'static str> {
        let Some(task) = params.and_then(|p| p.get("task")) else {
            return Ok(None);
        };
        if task.kind() != JsonKind::Object {
            return Err("\"params.task\" must be an object");
        }
        let ttl = task
            .get("ttl")
            .map(|ttl| ttl.i64().and_then(|n| u64::try_from(n).ok()));
        match ttl {
            Some(None) => Err("\"params.task.ttl\" must be a whole number of milliseconds"),
            ttl => Ok(Some(TaskMetadata {
                ttl_ms: ttl.flatten(),
            })),
        }
    }
}

/// Formats milliseconds since the Unix epoch as ISO 8601 in UTC.
pub fn format_iso8601(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Days are counted from 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let part = (5 * in_year + 2) / 153;
    let date = in_year - (153 * part + 2) / 5 + 1;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, ms) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{date:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_milliseconds_as_iso8601() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_764_032_461_007, "2025-11-25T01:01:01.007Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_iso8601(millis), expected);
        }
    }
}
