//! Calls that go on after their answer: `tasks/*` of 2025-11-25, and of the extension `io.modelcontextprotocol/tasks`
//! (2026-07-28).

use super::{definition::Definition, elicitation::Request};
use crate::{
    json::{Json, Kind, ObjectWriter},
    message::RpcError,
};

/// Asks how far a task is.
pub const GET: &str = "tasks/get";
/// Answers the questions of a task (the extension).
pub const UPDATE: &str = "tasks/update";
/// Ends a task.
pub const CANCEL: &str = "tasks/cancel";
/// Waits for the result of a task (2025-11-25).
pub const RESULT: &str = "tasks/result";
/// Lists the tasks of a client (2025-11-25).
pub const LIST: &str = "tasks/list";
/// A task is in another state (2025-11-25).
pub const STATUS: &str = "notifications/tasks/status";
/// A task is in another state (the extension).
pub const CHANGED: &str = "notifications/tasks";
/// The identifier of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The key of `_meta` that names the task of a message (2025-11-25).
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Which words a revision has for tasks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Words {
    /// None.
    None,
    /// Those of 2025-11-25: the client says which call is to be a task.
    Core,
    /// Those of the extension: the server says it.
    Extension,
}

/// Whether a tool can be called as a task: `execution.taskSupport`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Support {
    /// Never.
    #[default]
    Forbidden,
    /// Where the client wants it, or where it takes long.
    Optional,
    /// Always.
    Required,
}

impl Support {
    /// What a tool says of itself; what is no word of the protocol is read as absent.
    pub fn of(tool: &Definition) -> Support {
        let execution = tool.json().get("execution");
        let word = execution.and_then(|e| e.get("taskSupport")?.string());
        match word.as_deref() {
            Some("optional") => Support::Optional,
            Some("required") => Support::Required,
            _ => Support::Forbidden,
        }
    }

    /// Whether a tool says that it forbids tasks, rather than saying nothing.
    pub fn is_forbidden_by(tool: &Definition) -> bool {
        let execution = tool.json().get("execution");
        let word = execution.and_then(|e| e.get("taskSupport")?.string());
        word.as_deref() == Some(Support::Forbidden.word())
    }

    /// The word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            Support::Forbidden => "forbidden",
            Support::Optional => "optional",
            Support::Required => "required",
        }
    }
}

/// The states of a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// It runs.
    Working,
    /// It waits for the answers of the client.
    InputRequired,
    /// There is a result; that of a tool that failed, too.
    Completed,
    /// There is an error of the protocol.
    Failed,
    /// It was ended before there was a result.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] = [
        Status::Working,
        Status::InputRequired,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ];

    /// The word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    pub fn read(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|s| s.word() == word)
    }

    /// Whether nothing comes after it.
    pub fn is_over(self) -> bool {
        !matches!(self, Status::Working | Status::InputRequired)
    }
}

/// A task, as one message shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Names it; whoever knows it may ask for it, so nobody can guess it.
    pub id: String,
    /// Its state.
    pub status: Status,
    /// The state in words, for people.
    pub message: Option<String>,
    /// When it began, as ISO 8601.
    pub created: String,
    /// When its state changed last, as ISO 8601.
    pub updated: String,
    /// How long it is kept, in milliseconds from its begin; `None` for ever.
    pub ttl_ms: Option<u64>,
    /// How long a client should wait between two looks, in milliseconds.
    pub poll_ms: Option<u64>,
    /// What goes with the state (the extension).
    pub detail: Detail,
}

/// What goes with the state of a task (the extension).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// All questions that are open.
    Asks(Vec<Request>),
    /// The result of the call.
    Result(Json),
    /// The error of the call.
    Error(RpcError),
}

impl Task {
    /// Reads what a result says of a task: that of its creation, of `tasks/get` or of a notification.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(words: Words, result: &Json) -> Result<Task, &'static str> {
        let inner = result.get("task").filter(|_| words == Words::Core);
        let json = inner.as_ref().unwrap_or(result);
        let text = |key: &str| json.get(key).and_then(|v| v.string());
        let (ttl, poll) = match words {
            Words::Extension => ("ttlMs", "pollIntervalMs"),
            _ => ("ttl", "pollInterval"),
        };
        let number = |key: &str| json.get(key).and_then(|v| u64::try_from(v.i64()?).ok());
        let status = text("status").and_then(|word| Status::read(&word));
        let status = status.ok_or("the task has no \"status\" that is known")?;
        let detail = match words {
            Words::Extension => detail(status, json)?,
            _ => Detail::None,
        };
        Ok(Task {
            id: text("taskId").ok_or("the task has no \"taskId\"")?,
            status,
            message: text("statusMessage"),
            created: text("createdAt").unwrap_or_default(),
            updated: text("lastUpdatedAt").unwrap_or_default(),
            ttl_ms: number(ttl),
            poll_ms: number(poll),
            detail,
        })
    }

    /// Writes its members into a result. The creation of a task has no detail.
    pub fn write(&self, o: &mut ObjectWriter, words: Words, whole: bool) {
        o.str("taskId", &self.id);
        o.str("status", self.status.word());
        if let Some(message) = &self.message {
            o.str("statusMessage", message);
        }
        o.str("createdAt", &self.created);
        o.str("lastUpdatedAt", &self.updated);
        let (ttl, poll) = match words {
            Words::Extension => ("ttlMs", "pollIntervalMs"),
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
        if whole && words == Words::Extension {
            self.detail.write(o);
        }
    }
}

fn detail(status: Status, json: &Json) -> Result<Detail, &'static str> {
    Ok(match status {
        Status::InputRequired => {
            let asks = json.get("inputRequests");
            match asks.filter(|a| a.kind() == Kind::Object) {
                Some(asks) => Detail::Asks(Request::read_all(&asks)?),
                None => Detail::None,
            }
        }
        Status::Completed => json.get("result").map_or(Detail::None, Detail::Result),
        Status::Failed => {
            let error = json.get("error");
            let error =
                error.map(|e| RpcError::read(&e).ok_or("the \"error\" of the task is none"));
            error.transpose()?.map_or(Detail::None, Detail::Error)
        }
        Status::Working | Status::Cancelled => Detail::None,
    })
}

impl Detail {
    fn write(&self, o: &mut ObjectWriter) {
        match self {
            Detail::None => {}
            Detail::Asks(asks) => Request::write_all(asks, o),
            Detail::Result(result) => o.raw("result", result),
            Detail::Error(error) => o.raw("error", &error.json()),
        }
    }
}

/// Which task a request names; `None` where it names none.
pub fn named(params: Option<&Json>) -> Option<String> {
    params?.get("taskId")?.string()
}

/// What a client wants of a task that it asks for: the parameter `task` (2025-11-25).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    /// How long it should be kept, in milliseconds.
    pub ttl_ms: Option<u64>,
}

impl Wanted {
    /// Reads it; `None` where the call is to be no task.
    ///
    /// # Errors
    /// It is no object, or its `ttl` no whole number.
    pub fn read(params: Option<&Json>) -> Result<Option<Wanted>, &'static str> {
        let Some(task) = params.and_then(|p| p.get("task")) else {
            return Ok(None);
        };
        if task.kind() != Kind::Object {
            return Err("\"params.task\" must be an object");
        }
        let ttl = task
            .get("ttl")
            .map(|ttl| ttl.i64().and_then(|n| u64::try_from(n).ok()));
        match ttl {
            Some(None) => Err("\"params.task.ttl\" must be a number of milliseconds"),
            ttl => Ok(Some(Wanted {
                ttl_ms: ttl.flatten(),
            })),
        }
    }
}

/// A point in time as ISO 8601 in UTC, from milliseconds since 1970.
pub fn iso(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Days since 1 March of year 0, in eras of 400 years.
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
    fn a_time_is_written_as_people_read_it() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_764_032_461_007, "2025-11-25T01:01:01.007Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(millis), expected);
        }
    }
}
