//! Tasks of a server: a call that the server answers with a task is followed to its end, so that the caller sees an
//! ordinary call.
//!
//! The task id stays in this process: in the future of the call, and in a slot of the call while its input requests are
//! answered. If the call itself is a task, the edge stores that slot, so that a later process finds the server's task
//! again.

use super::{
    call,
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    remote::RemoteServer,
    status::sanitize_line,
    transport::MirroredHeaders,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use toolgate_core::{Call, Error, ErrorKind, Outcome, Progress, ReporterEvent, Round, TaskControl};
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, JsonLimits, ObjectWriter},
    message::code,
    method::{
        definition::ItemKind,
        operation::Op,
        tasks::{self, EXTENSION, Task, TaskDetail, TaskForm, TaskStatus, TaskSupport},
    },
};

/// Slot that stores the task while its input requests are answered.
const TASK_SLOT: &str = "upstream_task";
/// Poll interval if the server suggests none.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum and maximum of the poll interval, whatever the server suggests.
const POLL_INTERVAL_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(60));

/// Time-out of one poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of consecutive failed polls after which the call fails.
const MAX_FAILED_POLLS: u32 = 8;

/// Returns whether a failed poll says nothing about the task and may succeed later.
fn is_transient(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Http { status, .. } => {
            status.is_none_or(|status| status >= 500 || status == 408 || status == 429)
        }
        RequestFailure::BudgetExceeded => true,
        RequestFailure::Rpc(error) => error.code == code::INTERNAL_ERROR,
        RequestFailure::Malformed(_)
        | RequestFailure::ConnectionLost { .. }
        | RequestFailure::Rejected(_)
        | RequestFailure::Unusable(_) => false,
    }
}

/// Returns the backoff before the next poll, after `missed` failed ones in a row.
fn poll_backoff(poll: Duration, missed: u32) -> Duration {
    poll.saturating_mul(1 << missed.min(8))
        .min(POLL_INTERVAL_BOUNDS.1)
}

/// Returns the protocol of tasks with which a server may answer tool calls.
pub(super) fn task_protocol(dialect: &Dialect, capabilities: &Json) -> TaskForm {
    let has = |path: &[&str]| {
        let mut at = Some(capabilities.clone());
        for key in path {
            at = at.and_then(|at| at.get(key));
        }
        at.is_some()
    };
    match dialect.tasks {
        TaskForm::Extension if has(&["extensions", EXTENSION]) => TaskForm::Extension,
        TaskForm::Core if has(&["tasks", "requests", "tools", "call"]) => TaskForm::Core,
        _ => TaskForm::None,
    }
}

/// Returns whether a round continues a task.
pub(super) fn continues_task(round: &Round) -> bool {
    round.slots.contains_key(TASK_SLOT)
}

/// Returns the id of the server's task that a round continues.
pub(super) fn task_id_in(round: &Round) -> Option<String> {
    let kept = round.slots.get(TASK_SLOT)?;
    let kept = Json::read(kept.clone().into_bytes(), &JsonLimits::default()).ok()?;
    kept.get("id")?.string()
}

/// Task of a server that is being followed.
struct FollowedTask {
    link: Arc<ServerConnection>,
    id: String,
    /// Keys of the input requests that were answered.
    answered_keys: Vec<String>,
    /// Interval until the next poll.
    poll_interval: Duration,
    /// Progress reported to the caller, which must increase.
    progress: f64,
    /// Configured id of the server.
    server: String,
    /// Parameters of the cancellation, sent when the value is dropped before the task ended.
    cancel_params: Option<Json>,
    background: TaskControl,
}

impl Drop for FollowedTask {
    fn drop(&mut self) {
        if let Some(params) = self.cancel_params.take()
            && !self.background.is_handed_over()
        {
            self.link.send_and_forget(tasks::CANCEL, &params);
        }
    }
}

impl FollowedTask {
    fn slot(&self) -> (String, String) {
        let poll = u64::try_from(self.poll_interval.as_millis()).unwrap_or(u64::MAX);
        let kept =
            json!({"id": self.id, "done": self.answered_keys, "poll": poll, "server": self.server});
        (TASK_SLOT.to_owned(), kept.to_string())
    }

    /// Stores the state that finds the task again.
    fn store_state(&self, call: &Call) {
        let mut slots = call.round.slots.clone();
        slots.extend([self.slot()]);
        let mut round = Round::default();
        round.number = call.round.number;
        round.slots = slots;
        self.background.set_resume_round(round);
    }

    /// Reports progress to the caller. The value grows each time: an equal one would be dropped on its way.
    fn progress(&mut self, call: &Call, message: Option<String>) {
        call.reporter.send(ReporterEvent::Progress(Progress {
            progress: self.progress,
            total: None,
            message,
        }));
        self.progress += 1e-6;
    }

    /// Takes what the server says of the wait between two looks.
    fn set_poll_interval(&mut self, poll_ms: Option<u64>) {
        let said = poll_ms.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        self.poll_interval = said.clamp(POLL_INTERVAL_BOUNDS.0, POLL_INTERVAL_BOUNDS.1);
    }
}

impl RemoteServer {
    /// Returns whether the tool requires task execution (2025-11-25).
    pub(super) fn requires_task(&self, call: &Call) -> bool {
        if call.op != Op::Tool || self.peer.task_protocol != TaskForm::Core {
            return false;
        }
        let item = self.lists.of(ItemKind::Tool).find(call.name());
        let item = item.or_else(|| call.item().cloned());
        item.is_some_and(|item| TaskSupport::of(&item.def) == TaskSupport::Required)
    }

    /// Returns the task in the answer to a call, if there is one.
    pub(super) fn task_in(&self, call: &Call, result: &Json) -> Result<Option<Task>, Error> {
        let words = self.peer.task_protocol;
        let is = match words {
            TaskForm::None => false,
            TaskForm::Core => self.requires_task(call) && result.get("task").is_some(),
            TaskForm::Extension => {
                let kind = result.get("resultType").and_then(|kind| kind.string());
                call::may_become_task(call, &self.peer, &self.options)
                    && kind.as_deref() == Some("task")
            }
        };
        if !is {
            return Ok(None);
        }
        let task = Task::read(words, result);
        task.map(Some)
            .map_err(|reason| self.upstream_error(format_args!("sent an invalid task: {reason}; the call may have taken effect, so check before you repeat it")))
    }

    /// Follows a new task until it ends or requires input.
    pub(super) async fn follow_task(&self, call: Call, task: Task) -> Result<Outcome, Error> {
        let mut followed = self.new_followed_task(&call, task.id.clone(), Vec::new());
        followed.set_poll_interval(task.poll_ms);
        // Before the caller gets its own task, so that a store of that task includes this state.
        followed.store_state(&call);
        // A caller that supports tasks gets one now; others wait.
        let _known = call.task_control.start_task();
        if self.peer.task_protocol == TaskForm::Core {
            return self.fetch_task_result(&call, followed).await;
        }
        // The answer to the call itself has neither a result nor input requests.
        let task = match task.status {
            TaskStatus::Working => task,
            _ => self.poll_extension_task(&call, &mut followed).await?,
        };
        self.follow_to_end(call, followed, task).await
    }

    /// Resumes a task after its input requests were answered; `None` if this call has no task.
    pub(super) async fn resume_task(&self, call: &Call) -> Option<Result<Outcome, Error>> {
        let kept = call.round.slots.get(TASK_SLOT)?;
        let kept = Json::read(kept.clone().into_bytes(), &JsonLimits::default()).ok()?;
        let id = kept.get("id")?.string()?;
        if kept.get("server")?.string()? != self.name() {
            return Some(Err(call.lost_call_error()));
        }
        let done = kept.get("done")?;
        let done = done.items().filter_map(|key| key.string()).collect();
        let mut followed = self.new_followed_task(call, id, done);
        followed.set_poll_interval(kept.get("poll").and_then(|poll| poll.u64()));
        followed.store_state(call);
        let _known = call.task_control.start_task();
        let answers = call::server_responses(call).next().is_some();
        Some(match call.resumed_after {
            Some(_) if !answers => self.recover_task(call.clone(), followed).await,
            _ => self.send_task_responses(call.clone(), followed).await,
        })
    }

    /// Requests the state of a task once.
    pub(super) async fn task_state(&self, call: &Call, id: &str) -> Result<Task, Error> {
        let result = self.request_of_task(call, tasks::GET, id).await?;
        Task::read(self.peer.task_protocol, &result)
            .map_err(|reason| self.upstream_error(format_args!("sent an invalid task: {reason}")))
    }

    /// Cancels a task, and waits for the answer.
    pub(super) async fn cancel_task(&self, call: &Call, id: &str) -> Result<(), Error> {
        self.request_of_task(call, tasks::CANCEL, id)
            .await
            .map(drop)
    }

    async fn request_of_task(&self, call: &Call, method: &str, id: &str) -> Result<Json, Error> {
        if self.peer.task_protocol == TaskForm::None {
            return Err(self.upstream_error("does not support tasks in this protocol revision"));
        }
        let params = self.task_params(call, id, |_| {});
        let asked = self.send_task_request(call, method, params);
        match tokio::time::timeout(POLL_TIMEOUT, asked).await {
            Ok(result) => result.map_err(|failure| self.request_error(failure)),
            Err(_) => Err(self.poll_timeout_error()),
        }
    }

    /// Resumes a task that another process started and polled last.
    async fn recover_task(&self, call: Call, mut followed: FollowedTask) -> Result<Outcome, Error> {
        // The other process may have polled just now.
        tokio::time::sleep(followed.poll_interval).await;
        let words = self.peer.task_protocol;
        if words == TaskForm::None {
            followed.cancel_params = None;
            return Err(call.lost_call_error());
        }
        let task = match self.poll_task(&call, &mut followed, words).await {
            Ok(task) => task,
            Err(error) if *error.kind() == ErrorKind::JsonRpc(code::INVALID_PARAMS) => {
                followed.cancel_params = None;
                return Err(self.unknown_task_error(&call, &error));
            }
            Err(error) => return Err(error),
        };
        if words == TaskForm::Extension {
            return self.follow_to_end(call, followed, task).await;
        }
        self.poll_until_result(call, followed, task).await
    }

    /// Polls a task of 2025-11-25 until its result can be fetched, or until it requires input.
    async fn poll_until_result(
        &self,
        call: Call,
        mut followed: FollowedTask,
        mut task: Task,
    ) -> Result<Outcome, Error> {
        while task.status == TaskStatus::Working {
            followed.set_poll_interval(task.poll_ms);
            tokio::time::sleep(followed.poll_interval).await;
            task = self.poll_task(&call, &mut followed, TaskForm::Core).await?;
        }
        if task.status == TaskStatus::Cancelled {
            followed.cancel_params = None;
            return Err(self.cancelled_task_error());
        }
        self.fetch_task_result(&call, followed).await
    }

    /// Returns the error for a task that its server no longer knows.
    fn unknown_task_error(&self, call: &Call, error: &Error) -> Error {
        let text = format!(
            "the process that called {} as a task of the server {} has ended, and the server no longer knows that \
             task ({}); the call may have taken effect, so check before you repeat it",
            call.name(),
            self.name(),
            error.public_message()
        );
        Error::new(ErrorKind::Upstream, text)
    }

    fn cancelled_task_error(&self) -> Error {
        let text = format!("the server {} cancelled the task", self.name());
        Error::new(ErrorKind::Cancelled, text)
    }

    fn new_followed_task(&self, call: &Call, id: String, done: Vec<String>) -> FollowedTask {
        let cancel = self.task_params(call, &id, |_| {});
        FollowedTask {
            link: self.link.clone(),
            id,
            answered_keys: done,
            poll_interval: DEFAULT_POLL_INTERVAL,
            progress: 0.0,
            server: self.name().to_owned(),
            cancel_params: Some(cancel),
            background: call.task_control.clone(),
        }
    }

    /// Returns the parameters of a request about a task.
    fn task_params(&self, call: &Call, id: &str, more: impl FnOnce(&mut ObjectWriter)) -> Json {
        let mut o = ObjectWriter::new();
        self.write_request_meta_with(&mut o, || {
            call::granted_capabilities(call, &self.peer, &self.options)
        });
        o.str("taskId", id);
        more(&mut o);
        o.finish()
    }

    async fn send_task_request(
        &self,
        call: &Call,
        method: &str,
        params: Json,
    ) -> Result<Json, RequestFailure> {
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose = RequestPurpose::Call(reporter, caller, None, call.decision_log.clone());
        let none = MirroredHeaders::default();
        self.link
            .request_with(method, purpose, &none, |_| params)
            .await
    }

    /// Sends the answers to its input requests, then continues to poll.
    async fn send_task_responses(
        &self,
        call: Call,
        mut followed: FollowedTask,
    ) -> Result<Outcome, Error> {
        let answers = call::server_responses(&call);
        let params = self.task_params(&call, &followed.id, |o| {
            o.object("inputResponses", |map| {
                for (key, answer) in call::server_responses(&call) {
                    map.raw(key, answer);
                }
            });
        });
        followed
            .answered_keys
            .extend(answers.map(|(key, _)| key.clone()));
        let told = self.send_task_request(&call, tasks::UPDATE, params).await;
        told.map_err(|failure| self.request_error(failure))?;
        followed.store_state(&call);
        let task = self.poll_extension_task(&call, &mut followed).await?;
        self.follow_to_end(call, followed, task).await
    }

    async fn poll_extension_task(
        &self,
        call: &Call,
        followed: &mut FollowedTask,
    ) -> Result<Task, Error> {
        self.poll_task(call, followed, TaskForm::Extension).await
    }

    async fn poll_task(
        &self,
        call: &Call,
        followed: &mut FollowedTask,
        words: TaskForm,
    ) -> Result<Task, Error> {
        let mut missed = 0;
        let result = loop {
            let params = self.task_params(call, &followed.id, |_| {});
            let asked = self.send_task_request(call, tasks::GET, params);
            let why = match tokio::time::timeout(POLL_TIMEOUT, asked).await {
                Ok(Ok(result)) => break result,
                Ok(Err(failure)) if !is_transient(&failure) => {
                    return Err(self.request_error(failure));
                }
                Ok(Err(failure)) => self.request_error(failure),
                Err(_) => self.poll_timeout_error(),
            };
            missed += 1;
            if missed == MAX_FAILED_POLLS {
                return Err(self.failed_polls_error(&why));
            }
            // A failed poll does not fail the task: the caller gets progress, so that its idle timeout restarts.
            let message = format!(
                "the server {} did not report the status of the task; the poll is retried",
                self.name()
            );
            followed.progress(call, Some(message));
            tokio::time::sleep(poll_backoff(followed.poll_interval, missed)).await;
        };
        let task = Task::read(words, &result);
        task.map_err(|reason| self.upstream_error(format_args!("sent an invalid task: {reason}; the call may have taken effect, so check before you repeat it")))
    }

    /// Returns the error of a poll that timed out.
    fn poll_timeout_error(&self) -> Error {
        self.upstream_error(format_args!(
            "did not answer within {} s",
            POLL_TIMEOUT.as_secs()
        ))
    }

    /// Returns the error after too many failed polls.
    fn failed_polls_error(&self, last: &Error) -> Error {
        let text = format!(
            "the server {} runs this call as a task and failed to report its status {MAX_FAILED_POLLS} times in a row ({}); the call may \
             have taken effect, so check before you repeat it",
            self.name(),
            last.public_message()
        );
        Error::new(ErrorKind::Upstream, text)
    }

    /// Polls until the task ends or requires new input.
    async fn follow_to_end(
        &self,
        call: Call,
        mut followed: FollowedTask,
        mut task: Task,
    ) -> Result<Outcome, Error> {
        loop {
            match (task.status, task.detail) {
                (TaskStatus::Completed, TaskDetail::Result(result)) => {
                    followed.cancel_params = None;
                    return self.read_task_output(&call, &result);
                }
                (TaskStatus::Failed, TaskDetail::Error(error)) => {
                    followed.cancel_params = None;
                    return Err(self.request_error(RequestFailure::Rpc(error)));
                }
                (TaskStatus::Completed | TaskStatus::Failed, _) => {
                    followed.cancel_params = None;
                    return Err(self.upstream_error("ended a task without a result or an error; report this to the author of the server"));
                }
                (TaskStatus::Cancelled, _) => {
                    followed.cancel_params = None;
                    return Err(self.cancelled_task_error());
                }
                (TaskStatus::InputRequired, TaskDetail::InputRequests(mut asks)) => {
                    asks.retain(|ask| !followed.answered_keys.contains(&ask.key));
                    if !asks.is_empty() {
                        let granted = call::granted_capabilities(&call, &self.peer, &self.options);
                        let questions = call::read_input_requests(asks, &granted);
                        let mut questions =
                            questions.map_err(|reason| self.invalid_result_error(&reason))?;
                        questions.slots.extend([followed.slot()]);
                        followed.cancel_params = None;
                        return Ok(Outcome::InputRequired(questions));
                    }
                }
                (TaskStatus::Working | TaskStatus::InputRequired, _) => {}
            }
            followed.set_poll_interval(task.poll_ms);
            // A sign of life, with what the server says of itself.
            followed.progress(&call, task.message.map(|text| sanitize_line(&text, 500)));
            tokio::time::sleep(followed.poll_interval).await;
            task = self.poll_extension_task(&call, &mut followed).await?;
        }
    }

    /// Waits for the result of a task of 2025-11-25. Input requests meanwhile come as with any call.
    async fn fetch_task_result(
        &self,
        call: &Call,
        mut followed: FollowedTask,
    ) -> Result<Outcome, Error> {
        let params = self.task_params(call, &followed.id, |_| {});
        let result = self.send_task_request(call, tasks::RESULT, params).await;
        followed.cancel_params = None;
        let result = result.map_err(|failure| self.request_error(failure));
        self.read_task_output(call, &result?)
    }

    fn read_task_output(&self, call: &Call, result: &Json) -> Result<Outcome, Error> {
        let output = call::read_output(call, result);
        output
            .map(Outcome::Done)
            .map_err(|reason| self.invalid_result_error(reason))
    }
}
