//! Calls that may become tasks.

use super::{
    TaskOffer,
    recovery::RecoveryState,
    table::TaskAddError,
    task::{CancelTaskOnDrop, NewTask, ServerTask, TaskReporter, TaskResponse},
};
use crate::edge::{
    ProtocolServer,
    call::{self, RequestContext},
    responder::CallReport,
    response,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
    time::Instant,
};
use toolgate_core::{Call, CallReporter, Error, ItemKind, ListRequest, Op, TaskControl, TaskMode};
use toolgate_protocol::{
    json::Json,
    message::{RpcError, code},
    method::tasks::{EXTENSION, TaskForm, TaskMetadata, TaskSupport},
};

/// The way in which a call may become a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskTrigger {
    /// After some time, or when the call declares itself a task.
    WhenSlow,
    /// At once: the client requested a task, with this lifetime.
    Immediately(Option<Duration>),
}

impl TaskTrigger {
    /// Returns the lifetime of the task: the one that the client requested, at most `limit`.
    fn lifetime(self, limit: Duration) -> Duration {
        match self {
            TaskTrigger::Immediately(Some(wanted)) => wanted.min(limit),
            _ => limit,
        }
    }
}

/// Returns whether and how a call may become a task.
///
/// # Errors
/// The client requests a task of a tool that does not support tasks, or its `task` parameter is invalid.
pub(crate) async fn task_trigger(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &Call,
    params: Option<&Json>,
) -> Result<Option<TaskTrigger>, RpcError> {
    if server.offered.tasks == TaskOffer::None || call.op != Op::Tool {
        return Ok(None);
    }
    match context.dialect.tasks {
        TaskForm::None => Ok(None),
        TaskForm::Extension => {
            let declared = call.capabilities.extension(EXTENSION).is_some();
            Ok(declared.then_some(TaskTrigger::WhenSlow))
        }
        TaskForm::Core => {
            let Some(wanted) = TaskMetadata::read(params).map_err(response::invalid_params)? else {
                return Ok(None);
            };
            let ask = ListRequest::one(context.caller.clone(), ItemKind::Tool, call.name());
            let listed = server.service.list(ask).await;
            let listed = listed.map_err(|e| response::list_error(&e))?;
            let found = listed.find(call.name());
            match found.filter(|item| item.withheld.is_none()) {
                // The call itself returns the error for an unknown tool.
                None => Ok(None),
                Some(item) if server.task_support(&item.def) == TaskSupport::Forbidden => {
                    let text = "this tool cannot be called as a task; call it without \"task\"";
                    Err(RpcError::new(code::METHOD_NOT_FOUND, text))
                }
                Some(_) => Ok(Some(TaskTrigger::Immediately(
                    wanted.ttl_ms.map(Duration::from_millis),
                ))),
            }
        }
    }
}

/// Runs a call, and responds when it completes or becomes a task.
pub(crate) async fn run_call(
    server: &Arc<ProtocolServer>,
    context: &RequestContext,
    mut call: Call,
    report: Arc<CallReport>,
    wish: TaskTrigger,
) -> TaskResponse {
    let limits = &server.limits.tasks;
    let (background, pace) = TaskControl::new();
    if server.offered.tasks == TaskOffer::Every {
        background.allow_task();
    }
    let life = wish.lifetime(limits.lifetime);
    let task = Arc::new(new_task(server, context, &call, life, &background));
    call.task_control = background.clone();
    report_to_task(&mut call, &task);
    // In 2025-11-25 progress continues until the task ends.
    let lasting = context.dialect.tasks == TaskForm::Core;
    let closer = report.close_on_drop();
    let (_closer, closer) = match lasting {
        true => (None, Some(closer)),
        false => (Some(closer), None),
    };
    let (go, ready) = oneshot::channel::<()>();
    let (done, answered) = oneshot::channel();
    let again = RecoveryState::of_call(server, context, &call).map(Arc::new);
    let work = TaskWork {
        server: server.clone(),
        context: context.clone(),
        task: task.clone(),
        time_left: life,
    };
    let keeps = again.clone();
    let waited = AbortWorkOnDrop(Some(spawn_work(async move {
        let _working = CancelTaskOnDrop(work.task.clone());
        let _closer = closer;
        if ready.await.is_ok() {
            work.respond(call, keeps.as_deref(), done).await;
        }
    })));
    let running = RunningCall {
        server,
        context,
        task,
        recovery_state: again,
        work: waited,
        mode: pace,
        answered,
    };
    match wish {
        // The call starts only after its caller can poll it.
        TaskTrigger::Immediately(_) => running.start_as_task(&background, go).await,
        TaskTrigger::WhenSlow => {
            let _ = go.send(());
            running.wait_or_become_task(limits.become_task_after).await
        }
    }
}

/// Returns the task that a call may become.
fn new_task(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &Call,
    lifetime: Duration,
    task_control: &TaskControl,
) -> ServerTask {
    let limits = &server.limits.tasks;
    ServerTask::new(NewTask {
        id: server.tasks.new_id(),
        owner: context.caller.clone(),
        connection: context.connection,
        form: context.dialect.tasks,
        call: call.id.clone(),
        tool: call.name().to_owned(),
        task_control: task_control.clone(),
        decision_log: call.decision_log.clone(),
        lifetime,
        poll_interval: limits.poll_interval,
        polls_per_minute: limits.polls_per_minute,
        store: server.tasks.store(),
    })
}

/// Reports the events of a call to its task as well.
fn report_to_task(call: &mut Call, task: &Arc<ServerTask>) {
    let min_log_level = call.reporter.min_log_level();
    let reporter = TaskReporter {
        task: task.clone(),
        to: call.reporter.clone(),
    };
    call.reporter = CallReporter::new(Arc::new(reporter)).with_min_log_level(min_log_level);
}

/// Spawns the work of a task.
pub(super) fn spawn_work(work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    #[allow(
        clippy::disallowed_methods,
        reason = "the server owns the futures of its client's calls and aborts them"
    )]
    tokio::spawn(work).abort_handle()
}

/// The work of a call that is a task, or may become one.
pub(super) struct TaskWork {
    pub(super) server: Arc<ProtocolServer>,
    pub(super) context: RequestContext,
    pub(super) task: Arc<ServerTask>,
    /// The time until the task expires.
    pub(super) time_left: Duration,
}

impl TaskWork {
    /// Runs the call and sends its response: to the caller if it still waits, else to the task.
    async fn respond(
        self,
        call: Call,
        again: Option<&RecoveryState>,
        done: oneshot::Sender<TaskResponse>,
    ) {
        let name = call.name().to_owned();
        let Some(answer) = self.run_rounds(call, again).await else {
            return;
        };
        if self.task.answer_caller() {
            let _ = done.send(self.response(answer, &name));
        } else {
            self.finish(answer, &name).await;
        }
    }

    /// Returns the response to the call with this result.
    fn response(&self, answer: Result<Json, Error>, name: &str) -> TaskResponse {
        let (dialect, about) = (self.context.dialect, &self.server.info);
        answer.or_else(|error| {
            response::failed_call_response(&error, (Op::Tool, name), dialect, about)
        })
    }

    /// Runs the call and returns its result, or `None` if the lifetime of the task is over first.
    pub(super) async fn run_rounds(
        &self,
        call: Call,
        again: Option<&RecoveryState>,
    ) -> Option<Result<Json, Error>> {
        let (server, context) = (&self.server, &self.context);
        // Keeps the responder open: the call must not end because its caller no longer waits.
        let (responder, _frames) = server.responder(&context.caller);
        let rounds =
            call::run_to_result(server, context, call, &responder, Some(self.task.as_ref()));
        let keeping = async {
            match again {
                Some(again) => again.store_rounds(&self.task).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = keeping => None,
            answer = tokio::time::timeout(self.time_left, rounds) => answer.ok(),
        }
    }

    /// Ends the task with the response to its call.
    pub(super) async fn finish(&self, answer: Result<Json, Error>, name: &str) {
        self.task.finish(self.response(answer, name)).await;
    }
}

/// Aborts the work when its caller no longer waits, unless it became a task.
struct AbortWorkOnDrop(Option<AbortHandle>);

impl Drop for AbortWorkOnDrop {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work.abort();
        }
    }
}

/// A running call, and the request that waits for it.
struct RunningCall<'a> {
    server: &'a Arc<ProtocolServer>,
    context: &'a RequestContext,
    task: Arc<ServerTask>,
    recovery_state: Option<Arc<RecoveryState>>,
    work: AbortWorkOnDrop,
    mode: watch::Receiver<TaskMode>,
    answered: oneshot::Receiver<TaskResponse>,
}

impl RunningCall<'_> {
    async fn start_as_task(
        mut self,
        background: &TaskControl,
        go: oneshot::Sender<()>,
    ) -> TaskResponse {
        let full = |full: TaskAddError| RpcError::new(code::INTERNAL_ERROR, full.message());
        let created = self.become_task().await.map_err(full)?;
        let _ = background.start_task();
        let _ = go.send(());
        created.ok_or_else(no_response_error)
    }

    /// Waits for the response. After `become_task_after`, or if the call declares itself a task, it becomes one.
    async fn wait_or_become_task(mut self, after: Duration) -> TaskResponse {
        let began = Instant::now();
        loop {
            // The call's own task mode takes precedence over its response.
            let pace = *self.mode.borrow_and_update();
            let slow = async {
                match pace {
                    TaskMode::Inline => std::future::pending().await,
                    TaskMode::Eligible => tokio::time::sleep_until(began + after).await,
                    TaskMode::Task => {}
                }
            };
            tokio::select! {
                biased;
                Ok(()) = self.mode.changed() => {}
                () = slow => break,
                answer = &mut self.answered => return answer.unwrap_or_else(|_| Err(no_response_error())),
            }
        }
        match self.become_task().await {
            Ok(Some(created)) => return Ok(created),
            Err(full) if *self.mode.borrow() == TaskMode::Task => {
                return Err(RpcError::new(code::INTERNAL_ERROR, full.message()));
            }
            // The call already has a response.
            Ok(None) => {}
            Err(_) => self.task.forbid_task(),
        }
        self.answered
            .await
            .unwrap_or_else(|_| Err(no_response_error()))
    }

    /// Makes the call a task and returns the response with the task, or `None` if the call already has a response. From
    /// here on its owner finds the task, also after a restart.
    async fn become_task(&mut self) -> Result<Option<Json>, TaskAddError> {
        let (server, task) = (self.server, self.task.clone());
        let Some(work) = self.work.0.clone() else {
            return Ok(None);
        };
        server.tasks.add(&task, &server.limits.tasks)?;
        let mut added = RemoveTaskOnDrop(Some((server, &task)));
        if let Some(again) = &self.recovery_state {
            again.store_round(&task);
        }
        let kept = task.store_start().await;
        kept.map_err(|error| TaskAddError::NotStored(error.public_message().to_owned()))?;
        if !task.become_task(work) {
            return Ok(None);
        }
        added.0 = None;
        self.work.0 = None;
        if let Some(session) = &self.context.session_tasks {
            session.add(&task);
        }
        let dialect = self.context.dialect;
        Ok(Some(
            dialect.task_created(&task.to_protocol(), &server.info),
        ))
    }
}

/// Removes a task that its caller did not receive.
struct RemoveTaskOnDrop<'a>(Option<(&'a ProtocolServer, &'a ServerTask)>);

impl Drop for RemoveTaskOnDrop<'_> {
    fn drop(&mut self) {
        if let Some((server, task)) = self.0 {
            server.tasks.remove(&task.id);
        }
    }
}

fn no_response_error() -> RpcError {
    RpcError::new(
        code::INTERNAL_ERROR,
        "internal error: the call ended without a result; it may have taken effect, so check before you repeat it",
    )
}
