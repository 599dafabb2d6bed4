//! Who watches calls as they happen.

use std::{sync::Arc, time::Duration};
use toolgate_core::{Call, Caller, Item, Json, Op, OperatorDetail, Progress, Seen, Trail};

/// Sees every round of every call from its start to its end. Must not block.
///
/// What it is shown is for the operator: nothing is masked yet.
pub trait Observer: Send + Sync + 'static {
    /// Whether anybody watches. Where nobody does, it is told of neither beginnings nor progress.
    fn watches(&self) -> bool {
        true
    }

    /// A call came in.
    fn began(&self, call: &CallView);

    /// It got further.
    fn changed(&self, id: &str, stage: &Stage);

    /// It told how far it is.
    fn progress(&self, id: &str, progress: &Progress);

    /// It ended: each call that began ends once, also if its caller went away.
    fn ended(&self, id: &str, end: &End);
}

/// A call as it came in.
#[derive(Clone, Debug)]
pub struct CallView {
    /// The id of the call; the same in every round.
    pub id: Arc<str>,
    /// Who calls.
    pub caller: Caller,
    /// What is done.
    pub op: Op,
    /// The name as the caller wrote it.
    pub name: String,
    /// The exact arguments.
    pub arguments: Json,
    /// How the edge saw it.
    pub seen: Arc<Seen>,
    /// How often it came before.
    pub round: u32,
    /// What is decided about it, as it is decided.
    pub trail: Trail,
}

impl CallView {
    pub(crate) fn of(call: &Call) -> CallView {
        CallView {
            id: call.id.clone(),
            caller: call.caller.clone(),
            op: call.op,
            name: call.name().to_owned(),
            arguments: call.arguments().raw().clone(),
            seen: call.seen.clone(),
            round: call.round.number,
            trail: call.trail.clone(),
        }
    }
}

/// How far a call is.
#[derive(Clone, Debug)]
pub enum Stage {
    /// It was let through and runs; this is what it uses.
    Running(Arc<Item>),
}

/// How a round of a call ended.
#[derive(Clone, Debug)]
pub struct End {
    /// The word of the record: `ok`, `tool_error`, `refused`, `timeout`, `waiting` and the like.
    pub out: &'static str,
    /// The kind of its error in the audit log (`code`), where it failed: `invalid`, `refused_person`, `busy` and the like.
    pub code: Option<&'static str>,
    /// What the caller was told, where it failed.
    pub public: Option<String>,
    /// What only the operator may read of the failure.
    pub detail: Option<OperatorDetail>,
    /// The approvals it waits for; then the same call comes again.
    pub approvals: Vec<Arc<str>>,
    /// How long the round took.
    pub took: Duration,
    /// Bytes of the result.
    pub size: usize,
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn watches(&self) -> bool {
        false
    }

    fn began(&self, _: &CallView) {}
    fn changed(&self, _: &str, _: &Stage) {}
    fn progress(&self, _: &str, _: &Progress) {}
    fn ended(&self, _: &str, _: &End) {}
}
