//! MCP tasks of builds without the feature `tasks`: no call becomes a task, and no method of tasks exists.

use super::{
    ProtocolServer, call::RequestContext, input_rounds::InputRequester, responder::CallReport,
    response,
};
use std::sync::Arc;
use toolgate_core::Call;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    message::RpcError,
};

/// The tasks of a server: none.
#[derive(Default)]
pub(crate) struct TaskTable;

impl TaskTable {
    pub(crate) fn set_suffix(&self, _: &str) {}

    pub(crate) fn cancel_of_connection(&self, _: u64) {}

    pub(crate) fn interrupt_all(&self) {}
}

/// Returns whether `method` is a task method that is offered: never.
pub(crate) fn is_method(_: &ProtocolServer, _: &Dialect, _: Option<u64>, _: &str) -> bool {
    false
}

/// Rejects a task method.
pub(crate) async fn handle_method(
    _: &ProtocolServer,
    _: &RequestContext,
    method: &str,
    _: Option<&Json>,
    _: Option<&dyn InputRequester>,
) -> Result<Json, RpcError> {
    Err(response::method_not_found(method))
}

/// The way in which a call may become a task: none.
pub(crate) enum TaskTrigger {}

/// Returns how a call may become a task: not at all.
pub(crate) async fn task_trigger(
    _: &ProtocolServer,
    _: &RequestContext,
    _: &Call,
    _: Option<&Json>,
) -> Result<Option<TaskTrigger>, RpcError> {
    Ok(None)
}

/// Runs a call that may become a task: there is none.
pub(crate) async fn run_call(
    _: &Arc<ProtocolServer>,
    _: &RequestContext,
    _: Call,
    _: Arc<CallReport>,
    trigger: TaskTrigger,
) -> Result<Json, RpcError> {
    match trigger {}
}

/// The tasks of one session: there are none.
#[derive(Debug)]
pub(crate) enum SessionTasks {}

impl SessionTasks {
    pub(crate) fn new(_: bool) -> Option<Arc<SessionTasks>> {
        None
    }

    pub(crate) fn reply_sent(&self) {
        match *self {}
    }

    pub(crate) async fn send_status<F: Future<Output = ()>>(
        &self,
        _: &Dialect,
        _: impl FnMut(&'static str, Json) -> F,
    ) {
        match *self {}
    }
}

/// The tasks of one `subscriptions/listen` stream: none.
pub(crate) struct TaskSubscription;

impl TaskSubscription {
    pub(crate) fn from_filter(
        _: &ProtocolServer,
        _: &RequestContext,
        _: &Json,
    ) -> Result<TaskSubscription, RpcError> {
        Ok(TaskSubscription)
    }

    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn acknowledge(&self, _: &mut ObjectWriter) {}

    pub(crate) async fn send_status<F: Future<Output = ()>>(
        self,
        _: &RequestContext,
        _: impl FnMut(&'static str, Json) -> F,
    ) {
        std::future::pending().await
    }
}
