//! The end of a task: completion, cancellation and loss, and the storage of its response.

use super::{ServerTask, TaskResponse, millis, now};
use crate::edge::tasks::kept::StoredTask;
use toolgate_core::{CancelReason, DecisionLog, Error};
use toolgate_policy::WritePrecondition;
use toolgate_wire::{
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
    Here(TaskResponse),
    /// In the store, with its size in bytes.
    Kept(usize),
}

impl ServerTask {
    /// Ends the task with this response, unless it has ended. The end is visible only after it is stored.
    pub(in crate::edge::tasks) async fn finish(&self, answer: TaskResponse) {
        let (status, message) = told(self.words, &answer);
        let (at, size) = (now(), size(&answer));
        let (keeping, message) = {
            let state = self.state();
            if state.end.is_some() {
                return;
            }
            let message = message.or_else(|| state.message.clone());
            // Queued under the lock, or it could overwrite another end.
            let keeping = self.kept.as_ref().filter(|_| state.keeps).map(|kept| {
                let row = self.row(at, status, message.clone(), Some(&answer));
                kept.write(&self.id, row, Some(&answer), WritePrecondition::Any)
            });
            (keeping, message)
        };
        let kept = match keeping {
            Some(keeping) => keeping.await.is_ok(),
            None => false,
        };
        let held = match kept {
            true => TaskResponsePlace::Kept(size),
            // Not stored: the response is available until this process ends.
            false => TaskResponsePlace::Here(answer),
        };
        self.over(at, status, message, held);
    }

    /// Returns the decision log of its call.
    pub(in crate::edge::tasks) fn trail(&self) -> &DecisionLog {
        &self.trail
    }

    /// Cancels the task, with the reason if it is known. Returns false if it has ended.
    pub(in crate::edge::tasks) fn cancel(&self, why: Option<CancelReason>) -> bool {
        let (at, message) = (now(), self.state().message.clone());
        let ended = self.over(
            at,
            TaskStatus::Cancelled,
            message.clone(),
            TaskResponsePlace::None,
        );
        if ended {
            if let Some(why) = why {
                self.trail.give_up(why);
            }
            self.stop();
            drop(self.keep(at, TaskStatus::Cancelled, message, None));
        }
        ended
    }

    /// Ends the task because its process ends or has ended. A call that continues at an upstream server is handed over
    /// to the next process instead.
    pub(in crate::edge::tasks) fn interrupt(&self) {
        if !self.leave() {
            self.lose();
        }
    }

    /// Hands the task over to the next process, if that one can recover it.
    fn leave(&self) -> bool {
        let goes_on = {
            let state = self.state();
            state.end.is_none() && state.keeps && state.again.is_some()
        };
        if goes_on {
            self.background.leave();
            self.stop();
            self.changed.send_modify(|n| *n += 1);
        }
        goes_on
    }

    /// Returns whether the task was handed over to the next process.
    pub(in crate::edge::tasks) fn is_left(&self) -> bool {
        self.background.is_left()
    }

    /// Ends the task as failed because its call was interrupted.
    pub(in crate::edge::tasks) fn lose(&self) {
        let error = RpcError::new(code::INTERNAL_ERROR, INTERRUPTED_TEXT);
        let (message, answer) = (Some(error.message.clone()), Err(error));
        let (at, held) = (now(), TaskResponsePlace::Here(answer.clone()));
        if self.over(at, TaskStatus::Failed, message.clone(), held) {
            self.stop();
            drop(self.keep(at, TaskStatus::Failed, message, Some(&answer)));
        }
    }

    /// Ends the task at this time. Returns false if it has ended.
    fn over(
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
        state.asks.clear();
        state.updated = at;
        drop(state);
        self.changed.send_modify(|n| *n += 1);
        true
    }

    fn stop(&self) {
        if let Some(work) = self.state().work.take() {
            work.abort();
        }
    }

    /// Stores the task from now on. Returns at once if tasks are not stored.
    pub(in crate::edge::tasks) async fn keep_begin(&self) -> Result<(), Error> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let (status, message, answer, again, updated) = {
            let mut state = self.state();
            state.keeps = true;
            let again = state.again.as_ref().filter(|_| state.end.is_none());
            // Queued under the lock, or it could be stored after the end.
            let again = again.map(|sealed| kept.write_again(&self.id, sealed));
            let answer = match state.end.as_ref().map(|over| &over.answer) {
                Some(TaskResponsePlace::Here(answer)) => Some(answer.clone()),
                _ => None,
            };
            let status = state.end.as_ref().map_or(TaskStatus::Working, |o| o.status);
            (status, state.message.clone(), answer, again, state.updated)
        };
        let row = self.row(updated, status, message, answer.as_ref());
        // An end that is stored in the meantime takes precedence.
        let keeping = kept.write(&self.id, row, answer.as_ref(), WritePrecondition::Absent);
        if let Some(again) = again {
            again.await?;
        }
        keeping.await
    }

    fn keep(
        &self,
        at: u64,
        status: TaskStatus,
        message: Option<String>,
        answer: Option<&TaskResponse>,
    ) -> Option<impl Future<Output = Result<(), Error>> + use<>> {
        let kept = self.kept.as_ref().filter(|_| self.state().keeps)?;
        let row = self.row(at, status, message, answer);
        Some(kept.write(&self.id, row, answer, WritePrecondition::Any))
    }

    fn row(
        &self,
        at: u64,
        status: TaskStatus,
        message: Option<String>,
        answer: Option<&TaskResponse>,
    ) -> StoredTask {
        StoredTask {
            caller: self.owner.name().to_owned(),
            holder: self.owner.holder(),
            words: self.words,
            call: self.call.to_string(),
            tool: self.tool.clone(),
            created: self.created,
            updated: at,
            life: millis(self.life),
            status,
            message,
            size: answer.map_or(0, size),
        }
    }

    /// Removes the task from the store.
    pub(in crate::edge::tasks) fn forget(&self) {
        if let Some(kept) = self.kept.as_ref().filter(|_| self.state().keeps) {
            kept.forget(&self.id);
        }
    }

    /// Returns the response once the task has ended: `Some(None)` if it was cancelled.
    pub(in crate::edge::tasks) fn end(&self) -> Option<Option<TaskResponse>> {
        let over = self.state().end.clone()?;
        Some(self.read(over.answer))
    }

    pub(super) fn read(&self, held: TaskResponsePlace) -> Option<TaskResponse> {
        match held {
            TaskResponsePlace::None => None,
            TaskResponsePlace::Here(answer) => Some(answer),
            TaskResponsePlace::Kept(_) => {
                let answer = self.kept.as_ref().and_then(|kept| kept.answer(&self.id));
                let lost = || RpcError::new(code::INTERNAL_ERROR, LOST_RESULT_TEXT);
                Some(answer.unwrap_or_else(|| Err(lost())))
            }
        }
    }
}

/// Error text for a task that its process did not complete.
const INTERRUPTED_TEXT: &str = "the gateway stopped before the call ended, and it is not known whether the call took \
                           effect; check before you call the tool again";
/// Error text for a stored result that cannot be read.
const LOST_RESULT_TEXT: &str = "the stored result cannot be read any more; call the tool again";

/// Returns the final status for a response, and a status message if it failed.
fn told(words: TaskForm, answer: &TaskResponse) -> (TaskStatus, Option<String>) {
    match answer {
        Err(error) => (TaskStatus::Failed, Some(error.message.clone())),
        // Page basic/utilities/tasks (2025-11-25): a tool that fails is a task that failed.
        Ok(result) if words == TaskForm::Core && is_error(result) => {
            let text = "the tool returned an error; tasks/result has it";
            (TaskStatus::Failed, Some(text.to_owned()))
        }
        Ok(_) => (TaskStatus::Completed, None),
    }
}

fn is_error(result: &Json) -> bool {
    result.get("isError").and_then(|is| is.bool()) == Some(true)
}

pub(super) fn size(answer: &TaskResponse) -> usize {
    match answer {
        Ok(result) => result.as_str().len(),
        Err(error) => error.message.len(),
    }
}
