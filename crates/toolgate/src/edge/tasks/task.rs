//! One task: its state, its input requests, and its end.

mod end;
mod input_requests;

use super::{
    TaskLimits, TaskView,
    poll_limit::PollLimiter,
    store::{StoredTask, TaskHandover, TaskStore},
};
use end::{TaskEnd, TaskResponsePlace, response_bytes};
use input_requests::OpenTaskRequest;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};
use toolgate_core::{
    BoxFuture, CallReporter, Caller, DecisionLog, Error, EventSink, ReporterEvent, TaskControl,
};
use toolgate_protocol::{
    json::Json,
    message::RpcError,
    method::tasks::{Task, TaskDetail, TaskForm, TaskStatus, format_iso8601},
};

/// The response to a call.
pub(super) type TaskResponse = Result<Json, RpcError>;

/// One call that is a task, or may become one.
pub(crate) struct ServerTask {
    /// Task id, 160 random bits. A caller needs the id and must be the owner.
    pub(super) id: String,
    pub(super) owner: Caller,
    /// The connection whose end cancels the task, if there is one.
    pub(super) connection: Option<u64>,
    pub(super) form: TaskForm,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) created: u64,
    /// Orders tasks that were created in the same millisecond.
    started: Instant,
    pub(super) lifetime: Duration,
    pub(super) poll_interval: Duration,
    pub(super) poll_limiter: PollLimiter,
    /// True if input requests may be returned as the result of the call while it is not a task.
    returns_requests: bool,
    task_control: TaskControl,
    /// The decision log of its call.
    decision_log: DecisionLog,
    /// The store of the task, if it outlives the process.
    store: Option<Arc<TaskStore>>,
    state: Mutex<ServerTaskState>,
    changed: watch::Sender<u64>,
}

struct ServerTaskState {
    phase: TaskPhase,
    updated: u64,
    message: Option<String>,
    input_requests: Vec<OpenTaskRequest>,
    /// All keys of input requests so far; no key is reused.
    used_keys: HashSet<String>,
    end: Option<TaskEnd>,
    work: Option<AbortHandle>,
    /// True once the task is in the store.
    is_stored: bool,
    /// Sealed state with which the next process recovers a call that continues at an upstream server.
    recovery_state: Option<String>,
    /// The stored task of an ended process, until it is recovered.
    handover: Option<TaskHandover>,
    /// Time since which the call continues at an upstream server, in milliseconds since 1970.
    upstream_since: Option<u64>,
    /// Prefix of the keys of its input requests, so that no key is reused after a recovery.
    key_prefix: String,
}

impl ServerTaskState {
    fn new(updated: u64) -> ServerTaskState {
        ServerTaskState {
            phase: TaskPhase::Waiting,
            updated,
            message: None,
            input_requests: Vec::new(),
            used_keys: HashSet::new(),
            end: None,
            work: None,
            is_stored: false,
            recovery_state: None,
            handover: None,
            upstream_since: None,
            key_prefix: String::new(),
        }
    }
}

/// A task whose recovery has begun.
pub(super) struct TaskClaim {
    /// Resolves to whether this process won the task.
    pub(super) claim: BoxFuture<'static, Result<bool, Error>>,
    pub(super) sealed: String,
}

#[derive(Clone, Copy, PartialEq)]
enum TaskPhase {
    /// The caller waits for the response.
    Waiting,
    /// The caller waits for the response, since the task limit is reached.
    NeverTask,
    /// The call became a task, and the caller has not yet received the task.
    Becoming,
    /// The caller has the task and polls it.
    Task,
    /// The caller has the response.
    Answered,
}

/// Returns the current time in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Properties of a new task.
pub(super) struct NewTask {
    pub(super) id: String,
    pub(super) owner: Caller,
    pub(super) connection: Option<u64>,
    pub(super) form: TaskForm,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) task_control: TaskControl,
    pub(super) decision_log: DecisionLog,
    pub(super) lifetime: Duration,
    pub(super) poll_interval: Duration,
    pub(super) polls_per_minute: u32,
    pub(super) store: Option<Arc<TaskStore>>,
}

impl ServerTask {
    pub(super) fn new(begin: NewTask) -> ServerTask {
        let created = now();
        // The end of its connection cancels the task, so it need not be stored.
        let kept = begin.store.filter(|_| begin.connection.is_none());
        ServerTask {
            id: begin.id,
            owner: begin.owner,
            connection: begin.connection,
            form: begin.form,
            call: begin.call,
            tool: begin.tool,
            created,
            started: Instant::now(),
            lifetime: begin.lifetime,
            poll_interval: begin.poll_interval,
            poll_limiter: PollLimiter::new(begin.polls_per_minute),
            returns_requests: begin.form == TaskForm::Extension,
            task_control: begin.task_control,
            decision_log: begin.decision_log,
            store: kept,
            state: Mutex::new(ServerTaskState::new(created)),
            changed: watch::Sender::default(),
        }
    }

    /// Returns the key by which tasks are ordered by age.
    pub(super) fn age_key(&self) -> (u64, Instant) {
        (self.created, self.started)
    }

    /// Returns a stored task of an ended process.
    pub(super) fn from_store(
        id: String,
        row: StoredTask,
        limits: &TaskLimits,
        kept: Arc<TaskStore>,
    ) -> ServerTask {
        let mut task = ServerTask::new(NewTask {
            id,
            owner: row.owner(),
            connection: None,
            form: row.form,
            call: row.call.into(),
            tool: row.tool,
            task_control: TaskControl::new().0,
            decision_log: DecisionLog::default(),
            lifetime: Duration::from_millis(row.lifetime_ms),
            poll_interval: limits.poll_interval,
            polls_per_minute: limits.polls_per_minute,
            store: Some(kept),
        });
        task.created = row.created;
        let end = match row.status {
            TaskStatus::Working | TaskStatus::InputRequired => None,
            TaskStatus::Cancelled => Some(TaskResponsePlace::None),
            TaskStatus::Completed | TaskStatus::Failed => {
                Some(TaskResponsePlace::Stored(row.response_bytes))
            }
        };
        *task.state() = ServerTaskState {
            phase: TaskPhase::Task,
            message: row.message,
            end: end.map(|answer| TaskEnd {
                status: row.status,
                answer,
            }),
            is_stored: true,
            ..ServerTaskState::new(row.updated)
        };
        task
    }

    /// Marks a stored task as one that continues at an upstream server.
    pub(super) fn with_handover(self, left: TaskHandover) -> ServerTask {
        {
            let mut state = self.state();
            state.recovery_state = Some(left.sealed.clone());
            state.handover = Some(left);
        }
        self
    }

    /// Returns whether the task still has to be recovered.
    pub(super) fn needs_recovery(&self) -> bool {
        self.state().handover.is_some()
    }

    /// Begins the recovery of the task; returns `None` the second time.
    pub(super) fn begin_recovery(&self) -> Option<TaskClaim> {
        let left = self.state().handover.take()?;
        let claim = self
            .store
            .as_ref()?
            .claim(&self.id, &left.row, left.version);
        Some(TaskClaim {
            claim: Box::pin(claim),
            sealed: left.sealed,
        })
    }

    /// Records that the task was recovered in this round of its call.
    pub(super) fn mark_recovered(&self, since: u64, round: u32) {
        let mut state = self.state();
        state.upstream_since = Some(since);
        state.key_prefix = format!("r{round}");
    }

    /// Sets the handle that aborts the work. Aborts it at once if the task has ended.
    pub(super) fn set_abort_handle(&self, work: AbortHandle) {
        let mut state = self.state();
        match state.end {
            // The task ended before its work began.
            Some(_) => work.abort(),
            None => state.work = Some(work),
        }
    }

    /// Returns the time since which the call continues at an upstream server, in milliseconds since 1970.
    pub(super) fn upstream_since(&self) -> u64 {
        *self.state().upstream_since.get_or_insert_with(now)
    }

    /// Returns the identity to which sealed state of the task is bound.
    pub(super) fn seal_identity(&self) -> [&str; 4] {
        ["task", &self.id, self.owner.name(), &self.tool]
    }

    /// Returns the handle with which the call controls its task mode.
    pub(super) fn task_control(&self) -> &TaskControl {
        &self.task_control
    }

    /// Stores the sealed state with which the next process recovers the call.
    pub(super) fn store_recovery_state(&self, sealed: String) {
        let mut state = self.state();
        if state.end.is_some() || state.recovery_state.as_ref() == Some(&sealed) {
            return;
        }
        if let Some(kept) = self.store.as_ref().filter(|_| state.is_stored) {
            // Queued under the lock, or it could be stored after the end.
            drop(kept.write_recovery_state(&self.id, &sealed));
        }
        state.recovery_state = Some(sealed);
    }

    fn state(&self) -> MutexGuard<'_, ServerTaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut ServerTaskState) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        // A task that ended keeps its time.
        if state.end.is_none() {
            state.updated = now().max(state.updated);
        }
        drop(state);
        self.changed.send_modify(|n| *n += 1);
        changed
    }

    /// Makes the call a task, unless it already has a response.
    pub(super) fn become_task(&self, work: AbortHandle) -> bool {
        let mut state = self.state();
        let waited = matches!(state.phase, TaskPhase::Waiting | TaskPhase::Becoming);
        if waited {
            state.phase = TaskPhase::Task;
            state.work = Some(work);
        }
        waited
    }

    /// Keeps the call from becoming a task: the task limit is reached.
    pub(super) fn forbid_task(&self) {
        let mut state = self.state();
        if state.phase == TaskPhase::Waiting {
            state.phase = TaskPhase::NeverTask;
        }
    }

    /// Returns whether the caller waits for the response. A call that declared itself a task is one from here on.
    fn has_waiting_caller(&self, state: &mut ServerTaskState) -> bool {
        if state.phase == TaskPhase::Waiting && self.task_control.is_task() {
            state.phase = TaskPhase::Becoming;
        }
        !matches!(state.phase, TaskPhase::Becoming | TaskPhase::Task)
    }

    /// Returns whether the caller waits for the response, which then goes to it; otherwise the response belongs to the
    /// task.
    pub(super) fn answer_caller(&self) -> bool {
        let mut state = self.state();
        let waited = self.has_waiting_caller(&mut state);
        if waited {
            state.phase = TaskPhase::Answered;
        }
        waited
    }

    /// Returns whether the task has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// Returns whether the lifetime of the task is over.
    pub(super) fn is_expired(&self) -> bool {
        now() >= self.created.saturating_add(millis(self.lifetime))
    }

    /// Returns the size of its result in bytes.
    pub(super) fn result_bytes(&self) -> usize {
        match self.state().end.as_ref().map(|over| &over.answer) {
            Some(TaskResponsePlace::InMemory(answer)) => response_bytes(answer),
            Some(TaskResponsePlace::Stored(size)) => *size,
            Some(TaskResponsePlace::None) | None => 0,
        }
    }

    /// Returns a receiver that is notified of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the task as sent to clients.
    pub(super) fn to_protocol(&self) -> Task {
        let (mut task, held) = self.snapshot();
        // In 2025-11-25 the result is requested separately.
        if self.form == TaskForm::Extension {
            task.detail = match self.load_response(held) {
                Some(Ok(result)) => TaskDetail::Result(result),
                Some(Err(error)) => TaskDetail::Error(error),
                None => task.detail,
            };
        }
        task
    }

    /// Returns the task without its response, and the place of the response.
    fn snapshot(&self) -> (Task, TaskResponsePlace) {
        let state = self.state();
        let (status, held, detail) = match &state.end {
            Some(over) => (over.status, over.answer.clone(), TaskDetail::None),
            None if state.input_requests.is_empty() => (
                TaskStatus::Working,
                TaskResponsePlace::None,
                TaskDetail::None,
            ),
            None => {
                let asks = state.input_requests.iter().map(|open| open.request.clone());
                let asks = TaskDetail::InputRequests(asks.collect());
                (TaskStatus::InputRequired, TaskResponsePlace::None, asks)
            }
        };
        let task = Task {
            id: self.id.clone(),
            status,
            message: state.message.clone(),
            created: format_iso8601(self.created),
            updated: format_iso8601(state.updated),
            ttl_ms: Some(millis(self.lifetime)),
            poll_ms: Some(millis(self.poll_interval)),
            detail,
        };
        (task, held)
    }

    /// Returns its status.
    pub(super) fn status(&self) -> TaskStatus {
        let state = self.state();
        match &state.end {
            Some(over) => over.status,
            None if state.input_requests.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Returns the task as shown to operators.
    pub(super) fn view(&self) -> TaskView {
        let (task, _) = self.snapshot();
        TaskView {
            call: self.call.clone(),
            caller: self.owner.clone(),
            tool: self.tool.clone(),
            status: task.status.as_str(),
            message: task.message,
            created: self.created,
            lifetime: self.lifetime,
        }
    }

    /// Sets the status message.
    fn set_message(&self, message: String) {
        self.update(|state| {
            if state.end.is_none() {
                state.message = Some(message);
            }
        });
    }
}

/// Guard of the work of a task: when it is dropped, a running task is cancelled.
pub(super) struct CancelTaskOnDrop(pub(super) Arc<ServerTask>);

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        if !self.0.has_ended() && !self.0.task_control.is_handed_over() {
            self.0.cancel(None);
        }
    }
}

/// Event sink that makes the last progress message the status message of the task.
pub(super) struct TaskReporter {
    pub(super) task: Arc<ServerTask>,
    pub(super) to: CallReporter,
}

impl EventSink for TaskReporter {
    fn report(&self, event: ReporterEvent) {
        if let ReporterEvent::Progress(progress) = &event
            && let Some(message) = &progress.message
        {
            self.task.set_message(message.clone());
        }
        self.to.send(event);
    }
}
