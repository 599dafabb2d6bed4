//! What is about to happen is on the disk before it happens.

use crate::{Contents, Observer, PerServer, Recorder, Stage, digest, record, record::Written};
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{BoxFuture, Call, Error, Item, Layer, Next, Outcome, Step};
use toolgate_journal::{Entry, Event};

const NAME: &str = "intent";
const BEGUN: &str = "begin";

/// What a call waits for. No answer leaves before both of its records are on the disk, in every mode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waits {
    /// As [`Waits::End`] where a trusted server says that the tool only reads, else as [`Waits::Strict`].
    #[default]
    Auto,
    /// `call.begin` is on the disk before the call leaves: what may have had an effect is recorded, whatever happens.
    Strict,
    /// `call.begin` is queued before the call leaves, and on the disk before the answer does. A crash meanwhile may
    /// leave no trace of the call.
    End,
}

impl Waits {
    /// Whether the call leaves only once its begin is on the disk.
    fn before(self, item: &Item) -> bool {
        match self {
            Waits::Auto => !item.hints().read_only,
            Waits::Strict => true,
            Waits::End => false,
        }
    }
}

/// Writes `call.begin` and, as [`Waits`] says, waits for the disk before the call is passed on or before its outcome is.
pub struct Intent {
    recorder: Arc<Recorder>,
    observer: Arc<dyn Observer>,
    policy: Arc<str>,
    contents: Contents,
    waits: PerServer<Waits>,
}

impl Intent {
    /// An intent that records and tells there; `policy` names the policy in force.
    pub fn new(recorder: Arc<Recorder>, observer: Arc<dyn Observer>, policy: Arc<str>) -> Intent {
        Intent {
            recorder,
            observer,
            policy,
            contents: Contents::default(),
            waits: PerServer::default(),
        }
    }

    /// What of the arguments is recorded; without it, digests.
    pub fn holding(mut self, contents: Contents) -> Intent {
        self.contents = contents;
        self
    }

    /// What calls wait for, by server; without it, as the tools are.
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
            // Queued at once; only then is the mark set, so an end is written for exactly those that have a begin.
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

/// The call while its begin is written. Where that fails, the call is dropped.
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

/// Whether the step says that `call.begin` was queued.
pub(crate) fn begins(step: &Step) -> bool {
    step.by == NAME && step.verdict == BEGUN
}

/// What was decided once the call was let out.
pub(crate) fn after(steps: &[Step]) -> &[Step] {
    let at = steps.iter().position(begins);
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
