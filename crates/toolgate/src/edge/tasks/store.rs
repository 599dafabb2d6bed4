//! Task store: tasks that outlive the process.
//!
//! Three tables:
//! - `tasks`: the properties of each task, which are short.
//! - `answers`: the responses, which may be long and are read on request.
//! - `again`: the sealed state for the recovery of calls that continue at an upstream server.
//!
//! A row of `tasks` names the process that runs the task. If that process is gone, so is the work.

use super::{
    TaskLimits,
    task::{ServerTask, TaskResponse, now},
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{Caller, Error};
use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};
use toolgate_protocol::{
    json::{Json, JsonLimits},
    message::RpcError,
    method::tasks::{TaskForm, TaskStatus},
};

const TASKS_TABLE: &str = "tasks";
const RESPONSES_TABLE: &str = "answers";
const RECOVERY_TABLE: &str = "again";

/// Store of the tasks that outlive their process.
pub(crate) struct TaskStore {
    store: Arc<dyn StateStore>,
    /// Identifies this process among those that share the store.
    process: String,
}

/// A stored task without its response.
#[derive(Clone)]
pub(super) struct StoredTask {
    pub(super) caller: String,
    /// Caller generation: distinguishes successive owners of one caller name.
    pub(super) generation: Option<u64>,
    /// View at whose endpoint the caller is.
    pub(super) view: Option<String>,
    pub(super) form: TaskForm,
    pub(super) call: String,
    pub(super) tool: String,
    /// In milliseconds since 1970.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Lifetime from `created`, in milliseconds.
    pub(super) lifetime_ms: u64,
    pub(super) status: TaskStatus,
    pub(super) message: Option<String>,
    /// Size of the response in bytes.
    pub(super) response_bytes: usize,
}

/// A stored task of an ended process that continues at an upstream server.
pub(super) struct TaskHandover {
    pub(super) row: StoredTask,
    /// Version of the row.
    pub(super) version: u64,
    pub(super) sealed: String,
}

impl TaskStore {
    pub(super) fn new(store: Arc<dyn StateStore>, process: &str) -> TaskStore {
        let process = process.to_owned();
        TaskStore { store, process }
    }

    /// Writes a task, after its response. Resolves once both are durable; the write happens even if the future is
    /// dropped.
    pub(super) fn write(
        &self,
        id: &str,
        row: StoredTask,
        answer: Option<&TaskResponse>,
        expect: WritePrecondition,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let put = |table, value, expect| self.store.write(table, id, Some(value), expect);
        let answer = answer.map(|answer| {
            put(
                RESPONSES_TABLE,
                write_response(answer),
                WritePrecondition::Any,
            )
        });
        let task = put(TASKS_TABLE, row.json(&self.process), expect);
        if row.status.is_final() {
            drop(
                self.store
                    .write(RECOVERY_TABLE, id, None, WritePrecondition::Any),
            );
        }
        async move {
            if let Some(answer) = answer {
                answer.await?;
            }
            task.await.map(drop)
        }
    }

    /// Writes the sealed state for the recovery of a task.
    pub(super) fn write_recovery_state(
        &self,
        id: &str,
        sealed: &str,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let sealed = Some(json!({ "sealed": sealed }));
        let written = self
            .store
            .write(RECOVERY_TABLE, id, sealed, WritePrecondition::Any);
        async move { written.await.map(drop) }
    }

    /// Claims a task of an ended process for this one. Resolves to false if another process was faster.
    pub(super) fn claim(
        &self,
        id: &str,
        row: &StoredTask,
        version: u64,
    ) -> impl Future<Output = Result<bool, Error>> + use<> {
        let ours = Some(row.json(&self.process));
        let written = self
            .store
            .write(TASKS_TABLE, id, ours, WritePrecondition::Version(version));
        async move { Ok(matches!(written.await?, WriteOutcome::Done(_))) }
    }

    /// Returns a stored task of any process.
    pub(super) fn load(self: &Arc<TaskStore>, id: &str, limits: &TaskLimits) -> Option<ServerTask> {
        let kept = self.store.row(TASKS_TABLE, id)?;
        let row = StoredTask::read_response(&kept.value)?;
        Some(ServerTask::from_store(kept.key, row, limits, self.clone()))
    }

    /// Returns the response of a task.
    pub(super) fn response(&self, id: &str) -> Option<TaskResponse> {
        let row = self.store.row(RESPONSES_TABLE, id)?;
        read(&row.value)
    }

    /// Removes a task and its response.
    pub(super) fn remove(&self, id: &str) {
        for table in [TASKS_TABLE, RESPONSES_TABLE, RECOVERY_TABLE] {
            drop(self.store.write(table, id, None, WritePrecondition::Any));
        }
    }

    /// Takes over the tasks of ended processes, the newest first. Running ones end as interrupted, except those that
    /// continue at an upstream server, which are claimed later.
    pub(super) fn take_over(
        self: &Arc<TaskStore>,
        limits: &TaskLimits,
        is_gone: impl Fn(&str) -> bool,
    ) -> Vec<Arc<ServerTask>> {
        let mut left = Vec::new();
        for kept in self.store.entries(TASKS_TABLE) {
            let process = kept.value["process"].as_str().unwrap_or_default();
            if !is_gone(process) {
                continue;
            }
            let Some(row) = StoredTask::read_response(&kept.value) else {
                self.remove(&kept.key);
                continue;
            };
            let again = self.store.row(RECOVERY_TABLE, &kept.key);
            let again = again.and_then(|row| Some(row.value["sealed"].as_str()?.to_owned()));
            if let Some(sealed) = again.filter(|_| !row.status.is_final()) {
                let goes_on = TaskHandover {
                    row: row.clone(),
                    version: kept.version,
                    sealed,
                };
                let task = ServerTask::from_store(kept.key, row, limits, self.clone());
                left.push(Arc::new(task.with_handover(goes_on)));
                continue;
            }
            // From here on the row names this process.
            let ours = row.json(&self.process);
            drop(
                self.store
                    .write(TASKS_TABLE, &kept.key, Some(ours), WritePrecondition::Any),
            );
            let task = ServerTask::from_store(kept.key, row, limits, self.clone());
            task.interrupt();
            left.push(Arc::new(task));
        }
        // Rows that a killed process left between two writes.
        for table in [RESPONSES_TABLE, RECOVERY_TABLE] {
            for (id, _) in self.store.versions(table) {
                if self.store.row(TASKS_TABLE, &id).is_none() {
                    drop(self.store.write(table, &id, None, WritePrecondition::Any));
                }
            }
        }
        left.sort_by_key(|task| std::cmp::Reverse(task.created));
        left
    }
}

impl StoredTask {
    /// Returns the owner of the task.
    pub(super) fn owner(&self) -> Caller {
        let owner = Caller::new(self.caller.as_str());
        let owner = match &self.view {
            Some(view) => owner.in_view(view.as_str()),
            None => owner,
        };
        match self.generation {
            Some(holder) => owner.with_generation(holder),
            None => owner,
        }
    }

    fn json(&self, process: &str) -> Value {
        json!({
            "process": process, "caller": self.caller, "holder": self.generation, "view": self.view, "words": revision_name(self.form), "call": self.call, "tool": self.tool,
            "created": self.created, "updated": self.updated, "life": self.lifetime_ms, "status": self.status.as_str(),
            "message": self.message, "size": self.response_bytes,
        })
    }

    fn read_response(value: &Value) -> Option<StoredTask> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let number = |key: &str| value.get(key)?.as_u64();
        Some(StoredTask {
            caller: text("caller")?,
            // Absent in rows of older versions.
            generation: number("holder"),
            view: text("view"),
            form: [TaskForm::Core, TaskForm::Extension]
                .into_iter()
                .find(|words| text("words").as_deref() == Some(revision_name(*words)))?,
            call: text("call")?,
            tool: text("tool")?,
            // A clock that was set back must not extend its lifetime.
            created: number("created")?.min(now()),
            updated: number("updated")?,
            lifetime_ms: number("life")?,
            status: TaskStatus::read(&text("status")?)?,
            message: text("message"),
            response_bytes: usize::try_from(number("size")?).ok()?,
        })
    }
}

fn revision_name(words: TaskForm) -> &'static str {
    match words {
        TaskForm::None => "",
        TaskForm::Core => "2025-11-25",
        TaskForm::Extension => "2026-07-28",
    }
}

/// Stored as text: the response that passed the pipeline comes back byte for byte.
fn write_response(answer: &TaskResponse) -> Value {
    match answer {
        Ok(result) => json!({"result": result.as_str()}),
        Err(error) => json!({"error": error.json().as_str()}),
    }
}

fn read(value: &Value) -> Option<TaskResponse> {
    // It passed the JSON limits when it was written.
    let limits = JsonLimits {
        bytes: usize::MAX,
        depth: JsonLimits::MAX_DEPTH,
        keys: usize::MAX,
        elements: usize::MAX,
    };
    let json = |key: &str| {
        let text = value.get(key)?.as_str()?;
        Json::read(text.as_bytes().to_vec(), &limits).ok()
    };
    match json("result") {
        Some(result) => Some(Ok(result)),
        // Relayed: its code does not describe the connection that requests it now.
        None => Some(Err(RpcError::read(&json("error")?)?.into_relayed())),
    }
}
