//! Decision log of a call, for the audit log and for dry runs.

use crate::Item;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// One decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionStep {
    /// Name of the policy that decided.
    pub by: &'static str,
    /// Decision: `allow`, `ask`, `refuse`, `approved` and others.
    pub verdict: &'static str,
    /// Matching rule, or the reason.
    pub why: String,
}

/// Reason why the caller no longer waits for a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The caller cancelled it, with an optional reason, which is untrusted text.
    Caller(Option<Arc<str>>),
    /// Its connection or session ended.
    Link,
    /// It timed out.
    Late,
    /// An operator cancelled it.
    Operator,
    /// The program is shutting down.
    Stop,
}

impl CancelReason {
    /// Name of the reason in the audit log.
    pub fn by(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "caller",
            CancelReason::Link => "link",
            CancelReason::Late => "deadline",
            CancelReason::Operator => "operator",
            CancelReason::Stop => "stop",
        }
    }

    /// Reason that the caller gave, which is untrusted text.
    pub fn reason(&self) -> Option<&str> {
        match self {
            CancelReason::Caller(reason) => reason.as_deref(),
            _ => None,
        }
    }

    /// Reason for the server that executes the call. Contains no text of the caller.
    pub fn words(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "the caller cancelled it",
            CancelReason::Link => "the caller disconnected",
            CancelReason::Late => "the call timed out",
            CancelReason::Operator => "an operator cancelled it",
            CancelReason::Stop => "the client is shutting down",
        }
    }
}

/// Decision log of one call in order, with counters of sanitizer actions. All rounds of the call share it.
#[derive(Clone, Debug, Default)]
pub struct DecisionLog(Arc<Mutex<DecisionLogState>>);

#[derive(Debug, Default)]
struct DecisionLogState {
    steps: Vec<DecisionStep>,
    counts: BTreeMap<String, u64>,
    item: Option<Arc<Item>>,
    given_up: Option<CancelReason>,
}

impl DecisionLog {
    /// Adds a decision.
    pub fn add(&self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        self.taken().steps.push(DecisionStep {
            by,
            verdict,
            why: why.into(),
        });
    }

    /// Counts a frequent event, for example a redaction by the name of its rule.
    pub fn count(&self, what: &str, times: u64) {
        let mut taken = self.taken();
        match taken.counts.get_mut(what) {
            Some(count) => *count += times,
            None => _ = taken.counts.insert(what.to_owned(), times),
        }
    }

    /// Returns the counters, by name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.taken().counts.clone()
    }

    /// Records why the caller no longer waits. Call it before dropping the call's future: resources that close then see
    /// the reason.
    pub fn give_up(&self, why: CancelReason) {
        self.taken().given_up = Some(why);
    }

    /// Returns why the caller no longer waits, if it was recorded.
    pub fn given_up(&self) -> Option<CancelReason> {
        self.taken().given_up.clone()
    }

    /// Clears the log for a new round, which is decided again. The cancel reason stays.
    pub fn clear(&self) {
        let mut taken = self.taken();
        taken.steps.clear();
        taken.counts.clear();
        taken.item = None;
    }

    /// Records the resolved item.
    pub fn found(&self, item: Arc<Item>) {
        self.taken().item = Some(item);
    }

    /// Returns the item of that name, once the pipeline has resolved it.
    pub fn item(&self) -> Option<Arc<Item>> {
        self.taken().item.clone()
    }

    /// Returns all decisions so far.
    pub fn steps(&self) -> Vec<DecisionStep> {
        self.taken().steps.clone()
    }

    /// Returns true if a decision so far satisfies the predicate.
    pub fn any(&self, is: impl FnMut(&DecisionStep) -> bool) -> bool {
        self.taken().steps.iter().any(is)
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, DecisionLogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
