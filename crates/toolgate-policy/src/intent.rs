//! What is about to happen is on the disk before it happens.

use crate::{Contents, Observer, Recorder, Stage, digest, record};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{BoxFuture, Call, Error, Item, Layer, Next, Outcome, Step};
use toolgate_journal::{Entry, Event};

const NAME: &str = "intent";
const BEGUN: &str = "begin";

/// Writes `call.begin` and waits for the disk before the call is passed on.
pub struct Intent {
    recorder: Arc<Recorder>,
    observer: Arc<dyn Observer>,
    policy: Arc<str>,
    contents: Contents,
}

impl Intent {
    /// An intent that records and tells there; `policy` names the policy in force.
    pub fn new(recorder: Arc<Recorder>, observer: Arc<dyn Observer>, policy: Arc<str>) -> Intent {
        Intent {
            recorder,
            observer,
            policy,
            contents: Contents::default(),
        }
    }

    /// What of the arguments is recorded; without it, digests.
    pub fn holding(mut self, contents: Contents) -> Intent {
        self.contents = contents;
        self
    }

    fn record(&self, call: &Call, item: &Item) -> Entry {
        let steps = call.trail.steps();
        let record = record::about(Event::CALL_BEGIN, call)
            .with("srv", item.origin.server.as_ref())
            .with("tool", item.full_name())
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
            // Queued at once; only then is the mark set, so an end is written for exactly those that have a begin.
            let written = self.recorder.append(self.record(&call, &item))?;
            call.trail.add(NAME, BEGUN, "");
            written.await?;
            self.observer.changed(&call.id, &Stage::Running(item));
            next.call(call).await
        })
    }
}

/// Whether `call.begin` was queued.
pub(crate) fn begun(steps: &[Step]) -> bool {
    steps
        .iter()
        .any(|step| step.by == NAME && step.verdict == BEGUN)
}

/// What was decided once the call was let out.
pub(crate) fn after(steps: &[Step]) -> &[Step] {
    let at = steps
        .iter()
        .position(|step| step.by == NAME && step.verdict == BEGUN);
    at.map_or(&[], |at| &steps[at + 1..])
}

/// The decisions as a record holds them.
pub(crate) fn trail(steps: &[Step]) -> Value {
    let steps = steps.iter().filter(|step| step.by != NAME);
    steps
        .map(|step| json!({"by": step.by, "verdict": step.verdict, "why": step.why}))
        .collect()
}

/// The approval or grant that a person gave: `confirm` writes its id first.
fn approval(steps: &[Step]) -> Option<String> {
    let given =
        |step: &&Step| step.by == "confirm" && matches!(step.verdict, "approved" | "granted");
    let step = steps.iter().rev().find(given)?;
    step.why.split(' ').next().map(str::to_owned)
}
