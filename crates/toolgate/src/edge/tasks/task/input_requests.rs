//! Input requests of a task.

use super::{ServerTask, TaskPhase};
use crate::edge::input_rounds::InputRequester;
use std::sync::Arc;
use tokio::sync::oneshot;
use toolgate_core::{BoxFuture, Error, ErrorKind};
use toolgate_protocol::{json::Json, method::elicitation::RawInputRequest};

/// An input request that has no response yet.
pub(super) struct OpenTaskRequest {
    pub(super) request: RawInputRequest,
    response: oneshot::Sender<Json>,
    /// True while it is being sent to the client (2025-11-25).
    is_sending: bool,
}

impl ServerTask {
    /// Answers open input requests; unknown and answered keys are ignored.
    pub(in crate::edge::tasks) fn answer_requests(
        &self,
        answers: impl Iterator<Item = (String, Json)>,
    ) {
        let mut found = Vec::new();
        self.update(|state| {
            for (key, answer) in answers {
                let at = state
                    .input_requests
                    .iter()
                    .position(|open| open.request.key == key);
                found.extend(at.map(|at| (state.input_requests.remove(at), answer)));
            }
        });
        for (open, answer) in found {
            let _ = open.response.send(answer);
        }
    }

    /// Returns an open input request that is not being sent to the client.
    pub(in crate::edge::tasks) fn take_request(self: &Arc<Self>) -> Option<SendingTaskRequest> {
        let mut state = self.state();
        let open = state
            .input_requests
            .iter_mut()
            .find(|open| !open.is_sending)?;
        open.is_sending = true;
        Some(SendingTaskRequest {
            task: self.clone(),
            request: open.request.clone(),
        })
    }

    /// Waits until an input request is no longer open.
    pub(in crate::edge::tasks) async fn wait_until_settled(&self, key: &str) {
        let mut changes = self.subscribe();
        while self
            .state()
            .input_requests
            .iter()
            .any(|open| open.request.key == key)
        {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Adds an input request under a new key.
    fn add_request(&self, method: &str, params: Option<Json>) -> (String, oneshot::Receiver<Json>) {
        let (answer, answered) = oneshot::channel();
        let key = self.update(|state| {
            let key = format!("{}q{}", state.key_prefix, state.used_keys.len() + 1);
            state.used_keys.insert(key.clone());
            state.input_requests.push(OpenTaskRequest {
                request: RawInputRequest {
                    key: key.clone(),
                    method: method.to_owned(),
                    params,
                },
                response: answer,
                is_sending: false,
            });
            key
        });
        (key, answered)
    }

    /// Withdraws an input request.
    fn withdraw_request(&self, key: &str) {
        let there = self
            .state()
            .input_requests
            .iter()
            .any(|open| open.request.key == key);
        if there {
            self.update(|state| state.input_requests.retain(|open| open.request.key != key));
        }
    }
}

/// An input request that is being sent to the client. Dropping this makes it available again.
pub(in crate::edge::tasks) struct SendingTaskRequest {
    task: Arc<ServerTask>,
    pub(in crate::edge::tasks) request: RawInputRequest,
}

impl Drop for SendingTaskRequest {
    fn drop(&mut self) {
        let mut state = self.task.state();
        for open in &mut state.input_requests {
            if open.request.key == self.request.key {
                open.is_sending = false;
            }
        }
    }
}

/// Withdraws an input request when its waiter is dropped.
struct WithdrawOnDrop<'a>(&'a ServerTask, String);

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.0.withdraw_request(&self.1);
    }
}

impl InputRequester for ServerTask {
    fn send_request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>> {
        Box::pin(async move {
            let (key, answered) = self.add_request(method, params);
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

    fn returns_requests(&self) -> bool {
        let mut state = self.state();
        let leaves = self.returns_requests && self.has_waiting_caller(&mut state);
        if leaves {
            state.phase = TaskPhase::Answered;
        }
        leaves
    }

    fn sends_together(&self) -> bool {
        true
    }
}
