//! The end of a task: completion, cancellation and loss, and the storage of its response.

use super::{ServerTask, TaskResponse, millis, now};
use crate::edge::tasks::store::StoredTask;
use toolgate_core::{CancelReason, DecisionLog, Error};
use toolgate_policy::WritePrecondition;
use toolgate_protocol::{
    json::Json,
    message::{RpcError, code},
    method::tasks::{TaskForm, TaskStatus},
};

/// Final status of a task, and its response.
#[derive(Clone)]
pub(super) struct TaskEnd {
    pub(super) status: TaskStatus,
    pub(super) answer: TaskResponsePlace,
}

/// Place of the response of a task.
#[derive(Clone)]
pub(super) enum TaskResponsePlace {
    /// None: the task was cancelled.
    None,
    InMemory(TaskResponse),
    /// In the store, with its size in bytes.
    Stored(usize),
}

impl ServerTask {
    /// Ends the task with this response, unless it has ended. The end is visible only after it is stored.
    pub(in crate::edge::tasks) async fn finish(&self, answer: TaskResponse) {
        let (status, message) = final_status(self.form, &answer);
        let (at, size) = (now(), response_bytes(&answer));
        let (keeping, message) = {
            let state = self.state();
            if state.end.is_some() {
                return;
            }
            let message = message.or_else(|| state.message.clone());
            // Queued under the lock, or it could overwrite another end.
            let keeping = self.store.as_ref().filter(|_| state.is_stored).map(|kept| {
                let row = self.to_stored(at, status, message.clone(), Some(&answer));
                kept.write(&self.id, row, Some(&answer), WritePrecondition::Any)
            });
            (keeping, message)
        };
        let kept = match keeping {
            Some(keeping) => keeping.await.is_ok(),
            None => false,
        };
        let held = match kept {
            true => TaskResponsePlace::Stored(size),
            // Not stored: the response is available until this process ends.
            false => TaskResponsePlace::InMemory(answer),
        };
        self.set_end(at, status, message, held);
    }

    /// Returns the decision log of its call.
    pub(in crate::edge::tasks) fn decision_log(&self) -> &DecisionLog {
        &self.decision_log
    }

    /// Cancels the task, with the reason if it is known. Returns false if it has ended.
    pub(in crate::edge::tasks) fn cancel(&self, why: Option<CancelReason>) -> bool {
        let (at, message) = (now(), self.state().message.clone());
        let ended = self.set_end(
            at,
            TaskStatus::Cancelled,
            message.clone(),
            TaskResponsePlace::None,
        );
        if ended {
            if let Some(why) = why {
                self.decision_log.set_cancel_reason(why);
            }
            self.abort_work();
            drop(self.store_end(at, TaskStatus::Cancelled, message, None));
        }
        ended
    }

    /// Ends the task because its process ends or has ended. A call that continues at an upstream server is handed over
    /// to the next process instead.
    pub(in crate::edge::tasks) fn interrupt(&self) {
        if !self.hand_over() {
            self.fail_interrupted();
        }
    }

    /// Hands the task over to the next process, if that one can recover it.
    fn hand_over(&self) -> bool {
        let goes_on = {
            let state = self.state();
            state.end.is_none() && state.is_stored && state.recovery_state.is_some()
        };
        if goes_on {
            self.task_control.hand_over();
            self.abort_work();
            self.changed.send_modify(|n| *n += 1);
        }
        goes_on
    }

    /// Returns whether the task was handed over to the next process.
    pub(in crate::edge::tasks) fn is_handed_over(&self) -> bool {
        self.task_control.is_handed_over()
    }

    /// Ends the task as failed because its call was interrupted.
    pub(in crate::edge::tasks) fn fail_interrupted(&self) {
        let error = RpcError::new(code::INTERNAL_ERROR, INTERRUPTED_TEXT);
        let (message, answer) = (Some(error.message.clone()), Err(error));
        let (at, held) = (now(), TaskResponsePlace::InMemory(answer.clone()));
        if self.set_end(at, TaskStatus::Failed, message.clone(), held) {
            self.abort_work();
            drop(self.store_end(at, TaskStatus::Failed, message, Some(&answer)));
        }
    }

    /// Ends the task at this time. Returns false if it has ended.
    fn set_end(
        &self,
        at: u64,
        status: TaskStatus,
        message: Option<String>,
        answer: TaskResponsePlace,
    ) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        state.end = Some(TaskEnd { status, answer });
        state.message = message;
        state.input_requests.clear();
        state.updated = at;
        drop(state);
        self.changed.send_modify(|n| *n += 1);
        true
    }

    fn abort_work(&self) {
        if let Some(work) = self.state().work.take() {
            work.abort();
        }
    }

    /// Stores the task from now on. Returns at once if tasks are not stored.
    pub(in crate::edge::tasks) async fn store_start(&self) -> Result<(), Error> {
        let Some(kept) = &self.store else {
            return Ok(());
        };
        let (status, message, answer, again, updated) = {
            let mut state = self.state();
            state.is_stored = true;
            let again = state
                .recovery_state
                .as_ref()
                .filter(|_| state.end.is_none());
            // Queued under the lock, or it could be stored after the end.
            let again = again.map(|sealed| kept.write_recovery_state(&self.id, sealed));
            let answer = match state.end.as_ref().map(|over| &over.answer) {
                Some(TaskResponsePlace::InMemory(answer)) => Some(answer.clone()),
                _ => None,
            };
            let status = state.end.as_ref().map_or(TaskStatus::Working, |o| o.status);
            (status, state.message.clone(), answer, again, state.updated)
        };
        let row = self.to_stored(updated, status, message, answer.as_ref());
        // An end that is stored in the meantime takes precedence.
        let keeping = kept.write(&self.id, row, answer.as_ref(), WritePrecondition::Absent);
        if let Some(again) = again {
            again.await?;
        }
        keeping.await
    }

    fn store_end(
        &self,
        at: u64,
        status: TaskStatus,
        message: Option<String>,
        answer: Option<&TaskResponse>,
    ) -> Option<impl Future<Output = Result<(), Error>> + use<>> {
        let kept = self.store.as_ref().filter(|_| self.state().is_stored)?;
        let row = self.to_stored(at, status, message, answer);
        Some(kept.write(&self.id, row, answer, WritePrecondition::Any))
    }

    fn to_stored(
        &self,
        at: u64,
        status: TaskStatus,
        message: Option<String>,
        answer: Option<&TaskResponse>,
    ) -> StoredTask {
        StoredTask {
            caller: self.owner.name().to_owned(),
            generation: self.owner.generation(),
            view: self.owner.view().map(str::to_owned),
            form: self.form,
            call: self.call.to_string(),
            tool: self.tool.clone(),
            created: self.created,
            updated: at,
            lifetime_ms: millis(self.lifetime),
            status,
            message,
            response_bytes: answer.map_or(0, response_bytes),
        }
    }

    /// Removes the task from the store.
    pub(in crate::edge::tasks) fn remove_from_store(&self) {
        if let Some(kept) = self.store.as_ref().filter(|_| self.state().is_stored) {
            kept.remove(&self.id);
        }
    }

    /// Returns the response once the task has ended: `Some(None)` if it was cancelled.
    pub(in crate::edge::tasks) fn response(&self) -> Option<Option<TaskResponse>> {
        let over = self.state().end.clone()?;
        Some(self.load_response(over.answer))
    }

    pub(super) fn load_response(&self, held: TaskResponsePlace) -> Option<TaskResponse> {
        match held {
            TaskResponsePlace::None => None,
            TaskResponsePlace::InMemory(answer) => Some(answer),
            TaskResponsePlace::Stored(_) => {
                let answer = self.store.as_ref().and_then(|kept| kept.response(&self.id));
                let lost = || RpcError::new(code::INTERNAL_ERROR, LOST_RESULT_TEXT);
                Some(answer.unwrap_or_else(|| Err(lost())))
            }
        }
    }
}

/// Error text for a task that its process did not complete.
const INTERRUPTED_TEXT: &str = "this server stopped before the call ended, and it is not known whether the call took \
                           effect; check before you call the tool again";
/// Error text for a stored result that cannot be read.
const LOST_RESULT_TEXT: &str = "the stored result can no longer be read; the call has ended, so check what it did before you repeat it";

/// Returns the final status for a response, and a status message if it failed.
fn final_status(words: TaskForm, answer: &TaskResponse) -> (TaskStatus, Option<String>) {
    match answer {
        Err(error) => (TaskStatus::Failed, Some(error.message.clone())),
        // Page basic/utilities/tasks (2025-11-25): a tool that fails is a task that failed.
        Ok(result) if words == TaskForm::Core && is_error(result) => {
            let text = "the tool returned an error; tasks/result returns it";
            (TaskStatus::Failed, Some(text.to_owned()))
        }
        Ok(_) => (TaskStatus::Completed, None),
    }
}

fn is_error(result: &Json) -> bool {
    result.get("isError").and_then(|is| is.bool()) == Some(true)
}

pub(super) fn response_bytes(answer: &TaskResponse) -> usize {
    match answer {
        Ok(result) => result.as_str().len(),
        Err(error) => error.message.len(),
    }
}
