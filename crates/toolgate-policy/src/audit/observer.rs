//! Observation of calls as they happen.

use std::{sync::Arc, time::Duration};
use toolgate_core::{
    Call, Caller, DecisionLog, Item, Json, Op, OperatorDetail, Output, Progress, RequestInfo,
};

/// Observer of calls as they happen, for live displays: begin, stages, progress and end of every round of every call.
/// Must not block.
///
/// The data it receives is for the operator: nothing is redacted yet.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{Output, Progress};
/// use toolgate_policy::{CallEnd, CallObserver, CallStage, CallView, Policy};
///
/// /// Shows calls in a terminal.
/// struct Terminal;
///
/// impl CallObserver for Terminal {
///     fn on_begin(&self, call: &CallView) {
///         println!("{}: {} calls {}", call.id, call.caller.name(), call.name);
///     }
///
///     fn on_stage(&self, id: &str, stage: &CallStage) {
///         if let CallStage::Running(item) = stage {
///             println!("{id}: runs {}", item.full_name());
///         }
///     }
///
///     fn on_progress(&self, id: &str, progress: &Progress) {
///         println!("{id}: {}", progress.progress);
///     }
///
///     fn on_result(&self, id: &str, output: &Output) {
///         println!("{id}: {} bytes", output.size());
///     }
///
///     fn on_end(&self, id: &str, end: &CallEnd) {
///         println!("{id}: {} after {:?}", end.outcome, end.duration);
///     }
/// }
///
/// let mut policy = Policy::for_program();
/// policy.observer = Arc::new(Terminal);
/// ```
pub trait CallObserver: Send + Sync + 'static {
    /// Returns whether the observer is in use. If not, [`CallObserver::on_begin`] and [`CallObserver::on_progress`] are
    /// not called.
    fn is_active(&self) -> bool {
        true
    }

    /// Receives each call when it arrives, before any rule judges it.
    fn on_begin(&self, call: &CallView);

    /// Receives the id of each call that reaches another stage of the pipeline, such as running.
    fn on_stage(&self, id: &str, stage: &CallStage);

    /// Receives each progress notification of a call, with the call's id.
    fn on_progress(&self, id: &str, progress: &Progress);

    /// Receives the result of each call that has one, as the caller gets it, before [`CallObserver::on_end`].
    fn on_result(&self, _id: &str, _output: &Output) {}

    /// Receives the end of each call that began, also if its caller disconnected.
    fn on_end(&self, id: &str, end: &CallEnd);
}

/// View of a call for a [`CallObserver`], unredacted: the caller's request as it arrived, before any rule judged it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallView {
    /// Id of the call, as in the audit log; the same in every round.
    pub id: Arc<str>,
    /// Caller that made the call.
    pub caller: Caller,
    /// Kind of the call: tool call, resource read, prompt or completion.
    pub op: Op,
    /// Name or URI of the called item, as the caller wrote it.
    pub name: String,
    /// Exact arguments of the call, unredacted.
    pub arguments: Json,
    /// Information about the caller's request: transport, client and so on.
    pub request: Arc<RequestInfo>,
    /// Number of earlier rounds of this call.
    pub round: u32,
    /// Decision log of the call: the steps of rules and layers, filled while the call is processed.
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

/// Stage of a call in the pipeline, for a [`CallObserver`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallStage {
    /// The rules allowed the call and it runs, with the item that it uses.
    Running(Arc<Item>),
}

/// End of a round of a call (one request; an input request leads to another), with outcome, error, duration and size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallEnd {
    /// Outcome of the call as in the audit log: `ok`, `tool_error`, `refused`, `timeout`, `waiting` and others.
    pub outcome: &'static str,
    /// Error class of a failed call as in the audit log (`code`): `invalid`, `refused_person`, `busy` and others.
    pub code: Option<&'static str>,
    /// Error message for the caller of a failed call.
    pub public: Option<String>,
    /// Details of the call's failure for the operator only.
    pub detail: Option<OperatorDetail>,
    /// Ids of the approvals that the call waits for; after their decision, the same call starts another round.
    pub approvals: Vec<Arc<str>>,
    /// Duration of the round of the call (one request; an input request leads to another).
    pub duration: Duration,
    /// Size of the call's result, in bytes.
    pub size: usize,
    /// Called item, if its name was resolved.
    pub item: Option<Arc<Item>>,
    /// Caller that made the call.
    pub caller: Caller,
    /// True if the rules allowed the call and it was sent.
    pub was_sent: bool,
    /// Name of the policy that refused the call, or asked for an approval of it, for example `rate`.
    pub decided_by: Option<&'static str>,
}

/// Call observer that ignores all events.
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
