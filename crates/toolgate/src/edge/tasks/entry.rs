//! One task: its state, its input requests, and its end.

mod ending;
mod questions;

use super::{
    TaskLimits, TaskView,
    kept::{StoredTask, TaskHandover, TaskStore},
    looks::PollLimiter,
};
use ending::{TaskEnd, TaskResponsePlace, size};
use questions::OpenTaskRequest;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};
use toolgate_core::{
    BoxFuture, CallReporter, Caller, DecisionLog, Error, EventSink, ReporterEvent, TaskControl,
};
use toolgate_wire::{
    json::Json,
    message::RpcError,
    method::tasks::{Task, TaskDetail, TaskForm, TaskStatus, iso},
};

/// The response to a call.
pub(super) type TaskResponse = Result<Json, RpcError>;

/// One call that is a task, or may become one.
pub(crate) struct ServerTask {
    /// Task id, 160 random bits. A caller needs the id and must be the owner.
    pub(super) id: String,
    pub(super) owner: Caller,
    /// The connection whose end cancels the task, if there is one.
    pub(super) link: Option<u64>,
    pub(super) words: TaskForm,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) created: u64,
    /// Orders tasks that were created in the same millisecond.
    began: Instant,
    pub(super) life: Duration,
    pub(super) poll: Duration,
    pub(super) looks: PollLimiter,
    /// True if input requests may be returned as the result of the call while it is not a task.
    rounds: bool,
    background: TaskControl,
    /// The decision log of its call.
    trail: DecisionLog,
    /// The store of the task, if it outlives the process.
    kept: Option<Arc<TaskStore>>,
    state: Mutex<ServerTaskState>,
    changed: watch::Sender<u64>,
}

struct ServerTaskState {
    phase: TaskPhase,
    updated: u64,
    message: Option<String>,
    asks: Vec<OpenTaskRequest>,
    /// All keys of input requests so far; no key is reused.
    keys: HashSet<String>,
    end: Option<TaskEnd>,
    work: Option<AbortHandle>,
    /// True once the task is in the store.
    keeps: bool,
    /// Sealed state with which the next process recovers a call that continues at an upstream server.
    again: Option<String>,
    /// The stored task of an ended process, until it is recovered.
    left: Option<TaskHandover>,
    /// Time since which the call continues at an upstream server, in milliseconds since 1970.
    since: Option<u64>,
    /// Prefix of the keys of its input requests, so that no key is reused after a recovery.
    head: String,
}

impl ServerTaskState {
    fn new(updated: u64) -> ServerTaskState {
        ServerTaskState {
            phase: TaskPhase::Waited,
            updated,
            message: None,
            asks: Vec::new(),
            keys: HashSet::new(),
            end: None,
            work: None,
            keeps: false,
            again: None,
            left: None,
            since: None,
            head: String::new(),
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
    Waited,
    /// The caller waits for the response, since the task limit is reached.
    Stays,
    /// The call became a task, and the caller has not yet received the task.
    Begins,
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
    pub(super) owner: Caller,
    pub(super) link: Option<u64>,
    pub(super) words: TaskForm,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) background: TaskControl,
    pub(super) trail: DecisionLog,
    pub(super) life: Duration,
    pub(super) poll: Duration,
    pub(super) looks: u32,
    pub(super) kept: Option<Arc<TaskStore>>,
}

impl ServerTask {
    pub(super) fn new(begin: NewTask) -> ServerTask {
        let created = now();
        // The end of its connection cancels the task, so it need not be stored.
        let kept = begin.kept.filter(|_| begin.link.is_none());
        ServerTask {
            id: crate::ids::secret(),
            owner: begin.owner,
            link: begin.link,
            words: begin.words,
            call: begin.call,
            tool: begin.tool,
            created,
            began: Instant::now(),
            life: begin.life,
            poll: begin.poll,
            looks: PollLimiter::new(begin.looks),
            rounds: begin.words == TaskForm::Extension,
            background: begin.background,
            trail: begin.trail,
            kept,
            state: Mutex::new(ServerTaskState::new(created)),
            changed: watch::Sender::default(),
        }
    }

    /// Returns the key by which tasks are ordered by age.
    pub(super) fn age(&self) -> (u64, Instant) {
        (self.created, self.began)
    }

    /// Returns a stored task of an ended process.
    pub(super) fn restored(
        id: String,
        row: StoredTask,
        limits: &TaskLimits,
        kept: Arc<TaskStore>,
    ) -> ServerTask {
        let mut task = ServerTask::new(NewTask {
            owner: row.owner(),
            link: None,
            words: row.words,
            call: row.call.into(),
            tool: row.tool,
            background: TaskControl::new().0,
            trail: DecisionLog::default(),
            life: Duration::from_millis(row.life),
            poll: limits.poll,
            looks: limits.looks,
            kept: Some(kept),
        });
        (task.id, task.created) = (id, row.created);
        let end = match row.status {
            TaskStatus::Working | TaskStatus::InputRequired => None,
            TaskStatus::Cancelled => Some(TaskResponsePlace::None),
            TaskStatus::Completed | TaskStatus::Failed => Some(TaskResponsePlace::Kept(row.size)),
        };
        *task.state() = ServerTaskState {
            phase: TaskPhase::Task,
            message: row.message,
            end: end.map(|answer| TaskEnd {
                status: row.status,
                answer,
            }),
            keeps: true,
            ..ServerTaskState::new(row.updated)
        };
        task
    }

    /// Marks a stored task as one that continues at an upstream server.
    pub(super) fn going_on(self, left: TaskHandover) -> ServerTask {
        {
            let mut state = self.state();
            state.again = Some(left.sealed.clone());
            state.left = Some(left);
        }
        self
    }

    /// Returns whether the task still has to be recovered.
    pub(super) fn is_left_on(&self) -> bool {
        self.state().left.is_some()
    }

    /// Begins the recovery of the task; returns `None` the second time.
    pub(super) fn left(&self) -> Option<TaskClaim> {
        let left = self.state().left.take()?;
        let claim = self.kept.as_ref()?.claim(&self.id, &left.row, left.version);
        Some(TaskClaim {
            claim: Box::pin(claim),
            sealed: left.sealed,
        })
    }

    /// Records that the task was recovered in this round of its call.
    pub(super) fn is_taken_up(&self, since: u64, round: u32) {
        let mut state = self.state();
        state.since = Some(since);
        state.head = format!("r{round}");
    }

    /// Sets the handle that aborts the work. Aborts it at once if the task has ended.
    pub(super) fn runs_as(&self, work: AbortHandle) {
        let mut state = self.state();
        match state.end {
            // The task ended before its work began.
            Some(_) => work.abort(),
            None => state.work = Some(work),
        }
    }

    /// Returns the time since which the call continues at an upstream server, in milliseconds since 1970.
    pub(super) fn since(&self) -> u64 {
        *self.state().since.get_or_insert_with(now)
    }

    /// Returns the identity to which sealed state of the task is bound.
    pub(super) fn named(&self) -> [&str; 4] {
        ["task", &self.id, self.owner.name(), &self.tool]
    }

    /// Returns the handle with which the call controls its task mode.
    pub(super) fn background(&self) -> &TaskControl {
        &self.background
    }

    /// Stores the sealed state with which the next process recovers the call.
    pub(super) fn goes_on(&self, sealed: String) {
        let mut state = self.state();
        if state.end.is_some() || state.again.as_ref() == Some(&sealed) {
            return;
        }
        if let Some(kept) = self.kept.as_ref().filter(|_| state.keeps) {
            // Queued under the lock, or it could be stored after the end.
            drop(kept.write_again(&self.id, &sealed));
        }
        state.again = Some(sealed);
    }

    fn state(&self) -> MutexGuard<'_, ServerTaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut ServerTaskState) -> T) -> T {
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
    pub(super) fn detach(&self, work: AbortHandle) -> bool {
        let mut state = self.state();
        let waited = matches!(state.phase, TaskPhase::Waited | TaskPhase::Begins);
        if waited {
            state.phase = TaskPhase::Task;
            state.work = Some(work);
        }
        waited
    }

    /// Keeps the call from becoming a task: the task limit is reached.
    pub(super) fn stay(&self) {
        let mut state = self.state();
        if state.phase == TaskPhase::Waited {
            state.phase = TaskPhase::Stays;
        }
    }

    /// Returns whether the caller waits for the response. A call that declared itself a task is one from here on.
    fn is_waited_for(&self, state: &mut ServerTaskState) -> bool {
        if state.phase == TaskPhase::Waited && self.background.is_task() {
            state.phase = TaskPhase::Begins;
        }
        !matches!(state.phase, TaskPhase::Begins | TaskPhase::Task)
    }

    /// Returns whether the caller waits for the response, which then goes to it; otherwise the response belongs to the
    /// task.
    pub(super) fn is_answered(&self) -> bool {
        let mut state = self.state();
        let waited = self.is_waited_for(&mut state);
        if waited {
            state.phase = TaskPhase::Answered;
        }
        waited
    }

    /// Returns whether the task has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().end.is_some()
    }

    /// Returns whether the lifetime of the task is over.
    pub(super) fn is_expired(&self) -> bool {
        now() >= self.created.saturating_add(millis(self.life))
    }

    /// Returns the size of its result in bytes.
    pub(super) fn size(&self) -> usize {
        match self.state().end.as_ref().map(|over| &over.answer) {
            Some(TaskResponsePlace::Here(answer)) => size(answer),
            Some(TaskResponsePlace::Kept(size)) => *size,
            Some(TaskResponsePlace::None) | None => 0,
        }
    }

    /// Returns a receiver that is notified of each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the task as sent to clients.
    pub(super) fn shown(&self) -> Task {
        let (mut task, held) = self.state_of();
        // In 2025-11-25 the result is requested separately.
        if self.words == TaskForm::Extension {
            task.detail = match self.read(held) {
                Some(Ok(result)) => TaskDetail::Result(result),
                Some(Err(error)) => TaskDetail::Error(error),
                None => task.detail,
            };
        }
        task
    }

    /// Returns the task without its response, and the place of the response.
    fn state_of(&self) -> (Task, TaskResponsePlace) {
        let state = self.state();
        let (status, held, detail) = match &state.end {
            Some(over) => (over.status, over.answer.clone(), TaskDetail::None),
            None if state.asks.is_empty() => (
                TaskStatus::Working,
                TaskResponsePlace::None,
                TaskDetail::None,
            ),
            None => {
                let asks = state.asks.iter().map(|open| open.ask.clone());
                let asks = TaskDetail::Asks(asks.collect());
                (TaskStatus::InputRequired, TaskResponsePlace::None, asks)
            }
        };
        let task = Task {
            id: self.id.clone(),
            status,
            message: state.message.clone(),
            created: iso(self.created),
            updated: iso(state.updated),
            ttl_ms: Some(millis(self.life)),
            poll_ms: Some(millis(self.poll)),
            detail,
        };
        (task, held)
    }

    /// Returns its status.
    pub(super) fn status(&self) -> TaskStatus {
        let state = self.state();
        match &state.end {
            Some(over) => over.status,
            None if state.asks.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Returns the task as shown to operators.
    pub(super) fn view(&self) -> TaskView {
        let (task, _) = self.state_of();
        TaskView {
            call: self.call.clone(),
            caller: self.owner.clone(),
            tool: self.tool.clone(),
            status: task.status.word(),
            message: task.message,
            created: self.created,
            life: self.life,
        }
    }

    /// Sets the status message.
    fn say(&self, message: String) {
        self.change(|state| {
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
        if !self.0.is_over() && !self.0.background.is_left() {
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
            self.task.say(message.clone());
        }
        self.to.tell(event);
    }
}
