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
    pub policy: &'static str,
    /// Decision: `allow`, `ask`, `refuse`, `approved` and others.
    pub decision: &'static str,
    /// Text of the step: the matching rule, or the reason of the decision.
    pub reason: String,
}

/// Reason of a cancellation: why the caller no longer waits for a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The caller cancelled it, with an optional reason, which is untrusted text.
    Caller(Option<Arc<str>>),
    /// Its connection or session ended.
    Disconnected,
    /// It timed out.
    TimedOut,
    /// An operator cancelled it.
    Operator,
    /// The program is shutting down.
    Shutdown,
}

impl CancelReason {
    /// Name of the reason in the audit log.
    pub fn audit_name(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "caller",
            CancelReason::Disconnected => "link",
            CancelReason::TimedOut => "deadline",
            CancelReason::Operator => "operator",
            CancelReason::Shutdown => "stop",
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
    pub fn message(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "the caller cancelled it",
            CancelReason::Disconnected => "the caller disconnected",
            CancelReason::TimedOut => "the call timed out",
            CancelReason::Operator => "an operator cancelled it",
            CancelReason::Shutdown => "the client is shutting down",
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
    cancel_reason: Option<CancelReason>,
}

impl DecisionLog {
    /// Adds a decision.
    pub fn add(&self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        self.lock().steps.push(DecisionStep {
            policy: by,
            decision: verdict,
            reason: why.into(),
        });
    }

    /// Counts a frequent event, for example a redaction by the name of its rule.
    pub fn count(&self, what: &str, times: u64) {
        let mut taken = self.lock();
        match taken.counts.get_mut(what) {
            Some(count) => *count += times,
            None => _ = taken.counts.insert(what.to_owned(), times),
        }
    }

    /// Returns the counters, by name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.lock().counts.clone()
    }

    /// Records why the caller no longer waits. Call it before dropping the call's future: resources that close then see
    /// the reason.
    pub fn set_cancel_reason(&self, why: CancelReason) {
        self.lock().cancel_reason = Some(why);
    }

    /// Returns why the caller no longer waits, if it was recorded.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.lock().cancel_reason.clone()
    }

    /// Clears the log for a new round, which is decided again. The cancel reason stays.
    pub fn clear(&self) {
        let mut taken = self.lock();
        taken.steps.clear();
        taken.counts.clear();
        taken.item = None;
    }

    /// Records the resolved item.
    pub fn set_item(&self, item: Arc<Item>) {
        self.lock().item = Some(item);
    }

    /// Returns the item of that name, once the pipeline has resolved it.
    pub fn item(&self) -> Option<Arc<Item>> {
        self.lock().item.clone()
    }

    /// Returns all decisions so far.
    pub fn steps(&self) -> Vec<DecisionStep> {
        self.lock().steps.clone()
    }

    /// Returns true if a decision so far satisfies the predicate.
    pub fn any_step(&self, is: impl FnMut(&DecisionStep) -> bool) -> bool {
        self.lock().steps.iter().any(is)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DecisionLogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
