//! Input requests of a task.

use super::{ServerTask, TaskPhase};
use crate::edge::ask::InputRequester;
use std::sync::Arc;
use tokio::sync::oneshot;
use toolgate_core::{BoxFuture, Error, ErrorKind};
use toolgate_wire::{json::Json, method::elicitation::RawInputRequest};

/// An input request that has no response yet.
pub(super) struct OpenTaskRequest {
    pub(super) ask: RawInputRequest,
    answer: oneshot::Sender<Json>,
    /// True while it is being sent to the client (2025-11-25).
    taken: bool,
}

impl ServerTask {
    /// Answers open input requests; unknown and answered keys are ignored.
    pub(in crate::edge::tasks) fn answer(&self, answers: impl Iterator<Item = (String, Json)>) {
        let mut found = Vec::new();
        self.change(|state| {
            for (key, answer) in answers {
                let at = state.asks.iter().position(|open| open.ask.key == key);
                found.extend(at.map(|at| (state.asks.remove(at), answer)));
            }
        });
        for (open, answer) in found {
            let _ = open.answer.send(answer);
        }
    }

    /// Returns an open input request that is not being sent to the client.
    pub(in crate::edge::tasks) fn take(self: &Arc<Self>) -> Option<SendingTaskRequest> {
        let mut state = self.state();
        let open = state.asks.iter_mut().find(|open| !open.taken)?;
        open.taken = true;
        Some(SendingTaskRequest {
            task: self.clone(),
            ask: open.ask.clone(),
        })
    }

    /// Waits until an input request is no longer open.
    pub(in crate::edge::tasks) async fn settled(&self, key: &str) {
        let mut changes = self.changes();
        while self.state().asks.iter().any(|open| open.ask.key == key) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Adds an input request under a new key.
    fn open(&self, method: &str, params: Option<Json>) -> (String, oneshot::Receiver<Json>) {
        let (answer, answered) = oneshot::channel();
        let key = self.change(|state| {
            let key = format!("{}q{}", state.head, state.keys.len() + 1);
            state.keys.insert(key.clone());
            state.asks.push(OpenTaskRequest {
                ask: RawInputRequest {
                    key: key.clone(),
                    method: method.to_owned(),
                    params,
                },
                answer,
                taken: false,
            });
            key
        });
        (key, answered)
    }

    /// Withdraws an input request.
    fn close(&self, key: &str) {
        let there = self.state().asks.iter().any(|open| open.ask.key == key);
        if there {
            self.change(|state| state.asks.retain(|open| open.ask.key != key));
        }
    }
}

/// An input request that is being sent to the client. Dropping this makes it available again.
pub(in crate::edge::tasks) struct SendingTaskRequest {
    task: Arc<ServerTask>,
    pub(in crate::edge::tasks) ask: RawInputRequest,
}

impl Drop for SendingTaskRequest {
    fn drop(&mut self) {
        let mut state = self.task.state();
        for open in &mut state.asks {
            if open.ask.key == self.ask.key {
                open.taken = false;
            }
        }
    }
}

/// Withdraws an input request when its waiter is dropped.
struct WithdrawOnDrop<'a>(&'a ServerTask, String);

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(&self.1);
    }
}

impl InputRequester for ServerTask {
    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>> {
        Box::pin(async move {
            let (key, answered) = self.open(method, params);
            let _asked = WithdrawOnDrop(self, key);
            let gone = |_| {
                Error::new(
                    ErrorKind::Cancelled,
                    "the task ended before the input request was answered",
                )
            };
            answered.await.map_err(gone)
        })
    }

    fn leaves(&self) -> bool {
        let mut state = self.state();
        let leaves = self.rounds && self.is_waited_for(&mut state);
        if leaves {
            state.phase = TaskPhase::Answered;
        }
        leaves
    }

    fn together(&self) -> bool {
        true
    }
}
