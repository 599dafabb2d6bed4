//! Tasks of a server: calls that continue while the application does something else.

use super::{CallProgress, CallResult, Client, errors::unusable_setting, rounds::CallOptions};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolgate_core::{
    Call, Error, Json, Op, Output, PendingInputGuard, Round, TaskControl, TaskStatus,
};
use toolgate_protocol::method::tasks::Task;

/// Maximum number of tasks that a client remembers; the oldest is forgotten first.
const MAX_REMEMBERED_TASKS: usize = 256;

/// Description of a server's task that outlives the process: store it, and continue with [`Client::attach_task`].
///
/// Treat it as a secret: it contains the arguments of the call, and whoever has a task's id may be able to read its
/// result.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskTicket {
    id: String,
    server: String,
    tool: String,
    arguments: Json,
    round: u32,
    slots: BTreeMap<String, String>,
}

impl TaskTicket {
    /// Returns the id that the server gave the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the tool that runs as the task.
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// State of a task, as the server reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskState {
    /// Status of the task.
    pub status: TaskStatus,
    /// Description of the status for people: untrusted text, sanitized to one line.
    pub message: Option<String>,
    /// Time for which the server keeps the task after its creation; `None` is unlimited.
    pub ttl: Option<Duration>,
    /// Interval between two polls that the server recommends.
    pub poll_interval: Option<Duration>,
}

/// Handle of a call that a server runs as a task. Dropping it leaves the task running; see [`TaskHandle::cancel`].
///
/// ```no_run
/// # use serde_json::json;
/// # async fn f(client: toolgate::Client) -> Result<(), toolgate::core::Error> {
/// use toolgate::client::{CallProgress, TaskState, TaskTicket};
///
/// if let CallProgress::Task(task) = client.call_with("index", json!({"folder": "docs"})).start().await? {
///     let TaskState { status, message, .. } = task.poll().await?;
///     println!("task {} is {}: {}", task.id(), status.as_str(), message.unwrap_or_default());
///     let saved = serde_json::to_string(task.ticket()).expect("a ticket is JSON");
///     // Later, also in another process:
///     let ticket: TaskTicket = serde_json::from_str(&saved).expect("it was saved above");
///     let result = client.attach_task(ticket)?.result().await?;
///     println!("{}", result.text());
/// }
///
/// // Tasks whose end this client has not seen:
/// for task in client.open_tasks() {
///     task.cancel().await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// Specification: [tasks](https://modelcontextprotocol.io/extensions/tasks/overview),
/// [tasks of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    ticket: TaskTicket,
}

impl TaskHandle {
    /// Returns the id that the server gave the task.
    pub fn id(&self) -> &str {
        &self.ticket.id
    }

    /// Returns the name of the tool that runs as the task.
    pub fn tool(&self) -> &str {
        &self.ticket.tool
    }

    /// Returns the description of the task, to store.
    pub fn ticket(&self) -> &TaskTicket {
        &self.ticket
    }

    /// Asks the server for the state of the task (`tasks/get`).
    ///
    /// # Errors
    /// The server does not answer, or no longer knows the task.
    pub async fn poll(&self) -> Result<TaskState, Error> {
        let remote = &self.client.inner().remote;
        let task = remote.task_state(&self.call(), &self.ticket.id).await?;
        Ok(TaskState::of(&task))
    }

    /// Waits until the task has a result or needs input. The result passes all checks of the client. Answer input with
    /// [`PendingCall::answer`](super::PendingCall::answer), which continues the task.
    ///
    /// # Errors
    /// As [`Client::call`]. After [`ErrorKind::TimedOut`](crate::core::ErrorKind::TimedOut) the task may still run.
    pub async fn wait(&self) -> Result<CallProgress, Error> {
        let call = self.resumed_call();
        let progress = self
            .client
            .advance(call, PendingInputGuard::default())
            .await;
        if let Ok(CallProgress::Done(_)) = &progress {
            self.client.inner().tasks.forget(&self.ticket.id);
        }
        progress
    }

    /// Waits for the result of the task. Input requests are answered by the client's functions.
    ///
    /// # Errors
    /// As [`TaskHandle::wait`].
    pub async fn result(&self) -> Result<CallResult, Error> {
        let output = self.client.run_observed(self.resumed_call()).await?;
        self.client.inner().tasks.forget(&self.ticket.id);
        Ok(CallResult(output.into_tool().unwrap_or_default()))
    }

    /// Cancels the task at the server (`tasks/cancel`).
    ///
    /// # Errors
    /// The server does not answer, or rejects it, for example because the task has ended.
    pub async fn cancel(&self) -> Result<(), Error> {
        let remote = &self.client.inner().remote;
        remote.cancel_task(&self.call(), &self.ticket.id).await?;
        self.client.inner().tasks.forget(&self.ticket.id);
        Ok(())
    }

    fn call(&self) -> Call {
        let (tool, arguments) = (&self.ticket.tool, self.ticket.arguments.clone());
        self.client
            .new_call(Op::Tool, tool, arguments, CallOptions::default())
    }

    /// Returns the call that continues the task. Dropping it does not cancel the task.
    fn resumed_call(&self) -> Call {
        let mut call = self.call();
        call.round.number = self.ticket.round;
        call.round.slots = self.ticket.slots.clone();
        // Each wait has the time of a call.
        call.resumed_after = Some(Duration::ZERO);
        call.task_control = TaskControl::new().0;
        call.task_control.hand_over();
        call
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({} of {})", self.ticket.id, self.ticket.tool)
    }
}

impl TaskState {
    fn of(task: &Task) -> TaskState {
        let message = task.message.as_deref();
        TaskState {
            status: task.status,
            message: message.map(|text| crate::client::sanitize_line(text, 500)),
            ttl: task.ttl_ms.map(Duration::from_millis),
            poll_interval: task.poll_ms.map(Duration::from_millis),
        }
    }
}

/// Tasks that a client started and that have not ended.
#[derive(Default)]
pub(super) struct StartedTasks(Mutex<VecDeque<TaskTicket>>);

impl StartedTasks {
    fn lock(&self) -> MutexGuard<'_, VecDeque<TaskTicket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, ticket: TaskTicket) {
        let mut tasks = self.lock();
        tasks.retain(|known| known.id != ticket.id);
        tasks.truncate(MAX_REMEMBERED_TASKS - 1);
        tasks.push_front(ticket);
    }

    fn forget(&self, id: &str) {
        self.lock().retain(|known| known.id != id);
    }
}

impl Client {
    /// Finds a task that this client started, by its id; `None` if it has ended or was not started here.
    ///
    /// ```
    /// # async fn f(client: toolgate::Client, id: &str) -> Result<(), toolgate::Error> {
    /// match client.find_task(id) {
    ///     Some(task) => task.cancel().await?,
    ///     None => println!("the task {id} has ended"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn find_task(&self, id: &str) -> Option<TaskHandle> {
        let found = self
            .inner()
            .tasks
            .lock()
            .iter()
            .find(|t| t.id == id)
            .cloned();
        found.map(|ticket| self.handle(ticket))
    }

    /// Returns the tasks that this client started and whose end it has not seen, the newest first: at most 256.
    pub fn open_tasks(&self) -> Vec<TaskHandle> {
        let tasks: Vec<TaskTicket> = self.inner().tasks.lock().iter().cloned().collect();
        tasks
            .into_iter()
            .map(|ticket| self.handle(ticket))
            .collect()
    }

    /// Continues a task that an earlier client of the same server started.
    ///
    /// # Errors
    /// The task belongs to a client with another server id ([`ClientBuilder::id`](super::ClientBuilder::id)).
    pub fn attach_task(&self, ticket: TaskTicket) -> Result<TaskHandle, Error> {
        if *ticket.server != *self.inner().id {
            return Err(unusable_setting(format!(
                "the task belongs to the server {:?}, and this client is for {:?}",
                ticket.server,
                self.inner().id
            )));
        }
        self.inner().tasks.remember(ticket.clone());
        Ok(self.handle(ticket))
    }

    fn handle(&self, ticket: TaskTicket) -> TaskHandle {
        TaskHandle {
            client: self.clone(),
            ticket,
        }
    }

    /// Returns the handle of a call that became a task, from the round by which it is resumed.
    pub(super) fn started_task(&self, call: &Call, round: Round) -> Option<TaskHandle> {
        let id = crate::client::tasks::task_id_in(&round)?;
        let ticket = TaskTicket {
            id,
            server: self.inner().id.to_string(),
            tool: call.name().to_owned(),
            arguments: call.arguments().raw().clone(),
            round: round.number,
            slots: round.slots,
        };
        self.inner().tasks.remember(ticket.clone());
        Some(self.handle(ticket))
    }
}

/// Returns the progress of a finished call.
pub(super) fn done(output: Output) -> CallProgress {
    CallProgress::Done(CallResult(output.into_tool().unwrap_or_default()))
}
