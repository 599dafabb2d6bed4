//! Write-ahead audit records: `call.begin` is written before a call is sent.

use crate::{
    AuditContents, AuditRecorder, CallObserver, CallStage, PerServer, digest,
    recorder::{self, RecordWritten},
};
use futures_util::future::{Either, select};
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, DecisionLog, DecisionStep, Error, Item, Layer, Next, Outcome, SpanEventValue,
};
use toolgate_journal::{AuditEntry, AuditEvent, Urgency};

const LAYER_NAME: &str = "intent";
const BEGIN_STEP: &str = "begin";

/// Durability of audit records: the time at which a call waits until its record is on disk. No response is released
/// before both of its records are on disk, in every mode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuditDurability {
    /// [`AuditDurability::End`] if a trusted server annotates the tool as read-only, else [`AuditDurability::Strict`].
    #[default]
    Auto,
    /// The audit record `call.begin` is on disk before the call is sent, so every call that may have had an effect is
    /// recorded.
    Strict,
    /// The audit record `call.begin` is queued before the call is sent, and on disk before the response is released. A
    /// short call has one sync for both of its records. A crash in between may leave no record of the call.
    End,
}

impl AuditDurability {
    /// Reports whether the call is sent only after `call.begin` is on disk.
    fn waits_before_send(self, item: &Item) -> bool {
        match self {
            AuditDurability::Auto => !item.annotations().read_only,
            AuditDurability::Strict => true,
            AuditDurability::End => false,
        }
    }
}

/// Layer that writes the audit record `call.begin` of each call. It waits for the disk before the call is sent or
/// before its outcome is released, as [`AuditDurability`] says.
pub struct AuditBegin {
    recorder: Arc<AuditRecorder>,
    observer: Arc<dyn CallObserver>,
    policy: Arc<str>,
    contents: AuditContents,
    waits: PerServer<AuditDurability>,
}

impl AuditBegin {
    /// Creates the layer that writes `call.begin`; `policy` is the hash of the operator's policy in force.
    pub fn new(
        recorder: Arc<AuditRecorder>,
        observer: Arc<dyn CallObserver>,
        policy: Arc<str>,
    ) -> AuditBegin {
        AuditBegin {
            recorder,
            observer,
            policy,
            contents: AuditContents::default(),
            waits: PerServer::default(),
        }
    }

    /// Sets the form of arguments in audit records. Default: digests.
    pub fn with_contents(mut self, contents: AuditContents) -> AuditBegin {
        self.contents = contents;
        self
    }

    /// Sets the durability of audit records by server. Default: [`AuditDurability::Auto`].
    pub fn with_durability(mut self, durability: PerServer<AuditDurability>) -> AuditBegin {
        self.waits = durability;
        self
    }

    fn record(&self, call: &Call, item: &Item) -> AuditEntry {
        let record = recorder::with_item(recorder::call_entry(AuditEvent::CALL_BEGIN, call), item)
            .with_trusted_text("tool_hash", digest::definition(item).as_str())
            .with_trusted_text("dec", "allow")
            .with_trusted_text("policy_hash", &self.policy);
        let record = call.decision_log.with_steps(|steps| {
            let record = record.with_objects("trail", decision_log(steps));
            match approval_id(steps) {
                Some(id) => record.with_text("approval", id),
                None => record,
            }
        });
        let arguments = call.arguments().raw();
        let of = (&call.caller, Some(item));
        self.contents
            .arguments(&self.recorder, record, of, arguments)
    }
}

impl Layer for AuditBegin {
    fn name(&self) -> &'static str {
        LAYER_NAME
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown_item_error());
            };
            let waits_before_send = self.waits.of(&item.origin.server).waits_before_send(&item);
            let urgency = match waits_before_send {
                true => Urgency::Urgent,
                false => Urgency::CanWait,
            };
            if self.contents.keys.is_some() {
                // Boxed, so that the future of a call without encryption is no larger.
                let contents = &self.contents;
                Box::pin(contents.prepare_arguments(&call.caller, Some(&item))).await;
            }
            // Queued before the step is logged, so that an end record is written exactly for calls with a begin record.
            let written = match self.recorder.is_consumed() {
                true => Some(
                    self.recorder
                        .append_as(self.record(&call, &item), urgency)?,
                ),
                false => None,
            };
            call.decision_log.add(LAYER_NAME, BEGIN_STEP, "");
            if let Some(span) = &call.span {
                let allow = ("toolgate.decision", SpanEventValue::Text("allow"));
                span.add_event("toolgate.decision", &[allow]);
            }
            let written = match written {
                Some(written) if waits_before_send => {
                    written.await?;
                    None
                }
                written => written,
            };
            self.observer.on_stage(&call.id, &CallStage::Running(item));
            let log = call.decision_log.clone();
            let running = next.call(call);
            match written {
                Some(written) => run_while_writing(written, running, &log).await,
                None => running.await,
            }
        })
    }
}

/// Runs the call while its begin record is written. If the write fails, the call is dropped. If the call ends first, the
/// layer that records the end waits for both records, which are then written together.
async fn run_while_writing(
    written: RecordWritten,
    running: BoxFuture<'_, Result<Outcome, Error>>,
    log: &DecisionLog,
) -> Result<Outcome, Error> {
    match select(written, running).await {
        Either::Left((written, running)) => {
            written?;
            running.await
        }
        Either::Right((outcome, written)) => match log.defer(written) {
            None => outcome,
            Some(written) => written.await.and(outcome),
        },
    }
}

/// Reports whether the step marks that `call.begin` was queued.
pub(crate) fn is_begin(step: &DecisionStep) -> bool {
    step.policy == LAYER_NAME && step.decision == BEGIN_STEP
}

/// Returns the steps after `call.begin`.
pub(crate) fn steps_after_begin(steps: &[DecisionStep]) -> &[DecisionStep] {
    let at = steps.iter().position(is_begin);
    at.map_or(&[], |at| &steps[at + 1..])
}

/// Returns the decision log as it appears in audit records.
pub(crate) fn decision_log(
    steps: &[DecisionStep],
) -> impl Iterator<Item = [(&'static str, &str); 3]> {
    let steps = steps.iter().filter(|step| step.policy != LAYER_NAME);
    steps.map(|step| {
        [
            ("by", step.policy),
            ("verdict", step.decision),
            ("why", &*step.reason),
        ]
    })
}

/// Returns the id of the approval or grant: `confirm` writes it first in its step.
fn approval_id(steps: &[DecisionStep]) -> Option<&str> {
    let given = |step: &&DecisionStep| {
        step.policy == "confirm" && matches!(step.decision, "approved" | "granted")
    };
    let step = steps.iter().rev().find(given)?;
    step.reason.split(' ').next()
}
