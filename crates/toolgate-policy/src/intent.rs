//! Write-ahead audit records: `call.begin` is written before a call is sent.

use crate::{Contents, Observer, PerServer, Recorder, Stage, digest, record, record::Written};
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{BoxFuture, Call, Error, Item, Layer, Next, Outcome, Step};
use toolgate_journal::{Entry, Event};

const NAME: &str = "intent";
const BEGUN: &str = "begin";

/// Durability of audit records before a call is sent. No response is released before both of its records are on disk,
/// in every mode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waits {
    /// [`Waits::End`] if a trusted server annotates the tool as read-only, else [`Waits::Strict`].
    #[default]
    Auto,
    /// `call.begin` is on disk before the call is sent, so every call that may have had an effect is recorded.
    Strict,
    /// `call.begin` is queued before the call is sent, and on disk before the response is released. A crash in between
    /// may leave no record of the call.
    End,
}

impl Waits {
    /// Reports whether the call is sent only after `call.begin` is on disk.
    fn before(self, item: &Item) -> bool {
        match self {
            Waits::Auto => !item.hints().read_only,
            Waits::Strict => true,
            Waits::End => false,
        }
    }
}

/// Layer that writes `call.begin`. It waits for the disk before the call is sent or before its outcome is released, as
/// [`Waits`] says.
pub struct Intent {
    recorder: Arc<Recorder>,
    observer: Arc<dyn Observer>,
    policy: Arc<str>,
    contents: Contents,
    waits: PerServer<Waits>,
}

impl Intent {
    /// Creates the layer for a recorder and an observer; `policy` is the hash of the policy in force.
    pub fn new(recorder: Arc<Recorder>, observer: Arc<dyn Observer>, policy: Arc<str>) -> Intent {
        Intent {
            recorder,
            observer,
            policy,
            contents: Contents::default(),
            waits: PerServer::default(),
        }
    }

    /// Sets how arguments are recorded. Default: digests.
    pub fn holding(mut self, contents: Contents) -> Intent {
        self.contents = contents;
        self
    }

    /// Sets the durability by server. Default: [`Waits::Auto`].
    pub fn waiting(mut self, waits: PerServer<Waits>) -> Intent {
        self.waits = waits;
        self
    }

    fn record(&self, call: &Call, item: &Item) -> Entry {
        let steps = call.trail.steps();
        let record = record::of_item(record::about(Event::CALL_BEGIN, call), item)
            .with("tool_hash", digest::definition(item).as_str())
            .with("dec", "allow")
            .with("policy_hash", self.policy.as_ref())
            .with("trail", trail(&steps));
        let arguments = call.arguments().raw();
        let record = self
            .contents
            .arguments(&self.recorder, record, Some(item), arguments);
        match approval(&steps) {
            Some(id) => record.with("approval", id),
            None => record,
        }
    }
}

impl Layer for Intent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown());
            };
            // Queued before the step is logged, so that an end record is written exactly for calls with a begin record.
            let written = match self.recorder.listens() {
                true => Some(self.recorder.append(self.record(&call, &item))?),
                false => None,
            };
            call.trail.add(NAME, BEGUN, "");
            let written = match written {
                Some(written) if self.waits.of(&item.origin.server).before(&item) => {
                    written.await?;
                    None
                }
                written => written,
            };
            self.observer.changed(&call.id, &Stage::Running(item));
            let running = next.call(call);
            match written {
                Some(written) => with(written, running).await,
                None => running.await,
            }
        })
    }
}

/// Runs the call while its begin record is written. If the write fails, the call is dropped.
async fn with(
    written: Written,
    running: BoxFuture<'_, Result<Outcome, Error>>,
) -> Result<Outcome, Error> {
    match select(written, running).await {
        Either::Left((written, running)) => {
            written?;
            running.await
        }
        Either::Right((outcome, written)) => written.await.and(outcome),
    }
}

/// Reports whether the step marks that `call.begin` was queued.
pub(crate) fn begins(step: &Step) -> bool {
    step.by == NAME && step.verdict == BEGUN
}

/// Returns the steps after `call.begin`.
pub(crate) fn after(steps: &[Step]) -> &[Step] {
    let at = steps.iter().position(begins);
    at.map_or(&[], |at| &steps[at + 1..])
}

/// Returns the decision log as it appears in audit records.
pub(crate) fn trail(steps: &[Step]) -> Value {
    let steps = steps.iter().filter(|step| step.by != NAME);
    steps
        .map(|step| json!({"by": step.by, "verdict": step.verdict, "why": step.why}))
        .collect()
}

/// Returns the id of the approval or grant: `confirm` writes it first in its step.
fn approval(steps: &[Step]) -> Option<String> {
    let given =
        |step: &&Step| step.by == "confirm" && matches!(step.verdict, "approved" | "granted");
    let step = steps.iter().rev().find(given)?;
    step.why.split(' ').next().map(str::to_owned)
}
