//! Observation of calls as they happen.

use std::{sync::Arc, time::Duration};
use toolgate_core::{
    Call, Caller, DecisionLog, Item, Json, Op, OperatorDetail, Progress, RequestInfo,
};

/// Observer of every round of every call, from start to end. Must not block.
///
/// The data it receives is for the operator: nothing is redacted yet.
pub trait CallObserver: Send + Sync + 'static {
    /// Returns whether anyone observes. If not, [`CallObserver::on_begin`] and [`CallObserver::on_progress`] are not called.
    fn is_active(&self) -> bool {
        true
    }

    /// Called when a call arrives.
    fn on_begin(&self, call: &CallView);

    /// Called when a call reaches another stage.
    fn on_stage(&self, id: &str, stage: &CallStage);

    /// Called for each progress notification of a call.
    fn on_progress(&self, id: &str, progress: &Progress);

    /// Called when a call ends: once for each call that began, also if its caller disconnected.
    fn on_end(&self, id: &str, end: &CallEnd);
}

/// A call as it arrived.
#[derive(Clone, Debug)]
pub struct CallView {
    /// The call id; the same in every round.
    pub id: Arc<str>,
    /// The caller.
    pub caller: Caller,
    /// The operation.
    pub op: Op,
    /// The item name as the caller wrote it.
    pub name: String,
    /// The exact arguments.
    pub arguments: Json,
    /// Information about the request from the edge.
    pub request: Arc<RequestInfo>,
    /// Number of earlier rounds of this call.
    pub round: u32,
    /// The decision log of the call, filled while it is processed.
    pub trail: DecisionLog,
}

impl CallView {
    pub(crate) fn of(call: &Call) -> CallView {
        CallView {
            id: call.id.clone(),
            caller: call.caller.clone(),
            op: call.op,
            name: call.name().to_owned(),
            arguments: call.arguments().raw().clone(),
            request: call.request_info.clone(),
            round: call.round.number,
            trail: call.decision_log.clone(),
        }
    }
}

/// The progress of a call through the pipeline.
#[derive(Clone, Debug)]
pub enum CallStage {
    /// The rules allowed it and it runs; with the item that it uses.
    Running(Arc<Item>),
}

/// The end of a round of a call.
#[derive(Clone, Debug)]
pub struct CallEnd {
    /// The outcome as in the audit log: `ok`, `tool_error`, `refused`, `timeout`, `waiting` and others.
    pub outcome: &'static str,
    /// The error class as in the audit log (`code`), if it failed: `invalid`, `refused_person`, `busy` and others.
    pub code: Option<&'static str>,
    /// The error message for the caller, if it failed.
    pub public: Option<String>,
    /// Details of the failure for the operator only.
    pub detail: Option<OperatorDetail>,
    /// The ids of pending approvals; after them, the same call starts another round.
    pub approvals: Vec<Arc<str>>,
    /// The duration of the round.
    pub duration: Duration,
    /// The size of the result in bytes.
    pub size: usize,
}

/// An observer that observes nothing.
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn is_active(&self) -> bool {
        false
    }

    fn on_begin(&self, _: &CallView) {}
    fn on_stage(&self, _: &str, _: &CallStage) {}
    fn on_progress(&self, _: &str, _: &Progress) {}
    fn on_end(&self, _: &str, _: &CallEnd) {}
}
