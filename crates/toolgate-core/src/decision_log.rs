//! Decision log of a call, for the audit log and for dry runs.

use crate::{BoxFuture, Error, Item};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// One entry of a decision log: a policy, its decision on a call, and the reason.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DecisionStep {
    /// Name of the policy that decided.
    pub policy: &'static str,
    /// Decision on the call: `allow`, `ask`, `refuse`, `approved` and others.
    pub decision: &'static str,
    /// Matching rule, or reason of the decision.
    pub reason: String,
}

impl DecisionStep {
    /// Creates a step of a decision log.
    pub fn new(
        policy: &'static str,
        decision: &'static str,
        reason: impl Into<String>,
    ) -> DecisionStep {
        DecisionStep {
            policy,
            decision,
            reason: reason.into(),
        }
    }
}

/// Reason of the cancellation of a call, after which its caller no longer waits for it.
///
/// Specification: [cancellation](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The caller cancelled the call, with an optional reason, which is untrusted text.
    Caller(Option<Arc<str>>),
    /// The caller's connection or session ended.
    Disconnected,
    /// The call timed out.
    TimedOut,
    /// An operator cancelled the call.
    Operator,
    /// The program is shutting down, which cancels the call.
    Shutdown,
}

impl CancelReason {
    /// Returns the name of the cancel reason in the audit log.
    pub fn audit_name(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "caller",
            CancelReason::Disconnected => "link",
            CancelReason::TimedOut => "deadline",
            CancelReason::Operator => "operator",
            CancelReason::Shutdown => "stop",
        }
    }

    /// Returns the cancel reason that the caller gave, which is untrusted text.
    pub fn reason(&self) -> Option<&str> {
        match self {
            CancelReason::Caller(reason) => reason.as_deref(),
            _ => None,
        }
    }

    /// Returns the cancel reason to send to the server that executes the call. Contains no text of the caller.
    pub fn message(&self) -> &'static str {
        match self {
            CancelReason::Caller(_) => "the caller cancelled the call",
            CancelReason::Disconnected => "the caller disconnected",
            CancelReason::TimedOut => "the call timed out",
            CancelReason::Operator => "an operator cancelled the call",
            CancelReason::Shutdown => "the client is shutting down",
        }
    }
}

/// Decision log of one call: its policy decisions in order, and counters of sanitizer actions. All rounds of the call
/// share it.
///
/// ```
/// use toolgate_core::{CancelReason, DecisionLog, DecisionStep};
///
/// let log = DecisionLog::default();
/// log.add("access", "ask", "rule 2");
/// log.set_cancel_reason(CancelReason::TimedOut);
/// let steps: Vec<DecisionStep> = log.steps();
/// assert_eq!((steps[0].policy, steps[0].decision), ("access", "ask"));
/// assert_eq!(log.cancel_reason().map(|reason| reason.audit_name()), Some("deadline"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct DecisionLog(Arc<Mutex<DecisionLogState>>);

#[derive(Default)]
struct DecisionLogState {
    steps: Vec<DecisionStep>,
    counts: BTreeMap<String, u64>,
    item: Option<Arc<Item>>,
    /// Item that a lookup just before the call found, and the layer that found it.
    looked_up: Option<(u64, Arc<Item>)>,
    cancel_reason: Option<CancelReason>,
    /// True if the caller got a result that reports an error.
    has_failed: bool,
    answered_at: Option<Instant>,
    /// True if a layer around the others awaits a deferred write.
    awaits_deferred: bool,
    deferred: Option<DeferredWrite>,
}

/// Write of an audit record that is awaited before the response is released, with the record of the call's end.
type DeferredWrite = BoxFuture<'static, Result<(), Error>>;

impl fmt::Debug for DecisionLogState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionLog")
            .field("steps", &self.steps)
            .field("counts", &self.counts)
            .field("cancel_reason", &self.cancel_reason)
            .finish_non_exhaustive()
    }
}

impl DecisionLog {
    /// Adds a decision of a policy on the call, with its reason.
    pub fn add(&self, policy: &'static str, decision: &'static str, reason: impl Into<String>) {
        self.lock().steps.push(DecisionStep {
            policy,
            decision,
            reason: reason.into(),
        });
    }

    /// Adds to the counter of a frequent event, for example a redaction by the name of its rule.
    pub fn count(&self, event: &str, times: u64) {
        let mut taken = self.lock();
        match taken.counts.get_mut(event) {
            Some(count) => *count += times,
            None => _ = taken.counts.insert(event.to_owned(), times),
        }
    }

    /// Returns the counters of frequent events, by name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.lock().counts.clone()
    }

    /// Records the reason why the caller no longer waits for the call. Call it before dropping the call's future:
    /// resources that close then see the reason.
    pub fn set_cancel_reason(&self, reason: CancelReason) {
        self.lock().cancel_reason = Some(reason);
    }

    /// Returns the reason why the caller no longer waits for the call, if it was recorded.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.lock().cancel_reason.clone()
    }

    /// Clears the decisions and counters for a new round, which is decided again. The cancel reason stays.
    pub fn clear(&self) {
        let mut taken = self.lock();
        taken.steps.clear();
        if !taken.counts.is_empty() {
            taken.counts.clear();
        }
        taken.item = None;
        taken.answered_at = None;
    }

    /// Clears the decisions for a new round. The caller promises to await [`DecisionLog::take_deferred`] before it
    /// releases the response.
    #[doc(hidden)]
    pub fn begin_round(&self) {
        self.clear();
        let mut taken = self.lock();
        taken.awaits_deferred = true;
        taken.deferred = None;
    }

    /// Leaves a write to the layer that began the round. Returns it if there is none.
    #[doc(hidden)]
    pub fn defer(&self, write: DeferredWrite) -> Option<DeferredWrite> {
        let mut taken = self.lock();
        match taken.awaits_deferred && taken.deferred.is_none() {
            true => {
                taken.deferred = Some(write);
                None
            }
            false => Some(write),
        }
    }

    /// Takes the write that a layer left. Later writes are not left any more.
    #[doc(hidden)]
    pub fn take_deferred(&self) -> Option<DeferredWrite> {
        let mut taken = self.lock();
        taken.awaits_deferred = false;
        taken.deferred.take()
    }

    /// Records that the caller gets a result that reports an error.
    #[doc(hidden)]
    pub fn mark_failed(&self) {
        self.lock().has_failed = true;
    }

    /// Returns whether the caller gets a result that reports an error.
    #[doc(hidden)]
    pub fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// Records the item that the called name resolved to.
    pub fn set_item(&self, item: Arc<Item>) {
        self.lock().item = Some(item);
    }

    /// Returns the called item, once the pipeline has resolved its name.
    pub fn item(&self) -> Option<Arc<Item>> {
        self.lock().item.clone()
    }

    /// Records the time at which the server's response arrived, before the sanitizers and checks of the result.
    #[doc(hidden)]
    pub fn set_answered_at(&self, time: Instant) {
        self.lock().answered_at = Some(time);
    }

    /// Returns the time at which the server's response arrived, if it did and a gateway's layers recorded it.
    #[doc(hidden)]
    pub fn answered_at(&self) -> Option<Instant> {
        self.lock().answered_at
    }

    /// Stores the item that a layer found in a lookup just before the call.
    pub(crate) fn set_looked_up(&self, layer: u64, item: Arc<Item>) {
        self.lock().looked_up = Some((layer, item));
    }

    /// Takes the item that this layer found just before the call.
    pub(crate) fn take_looked_up(&self, layer: u64) -> Option<Arc<Item>> {
        let found = self.lock().looked_up.take();
        found.filter(|(by, _)| *by == layer).map(|(_, item)| item)
    }

    /// Returns all decisions on the call so far, in order.
    pub fn steps(&self) -> Vec<DecisionStep> {
        self.lock().steps.clone()
    }

    /// Calls `read` with the decisions on the call so far. The log is locked meanwhile.
    #[doc(hidden)]
    pub fn with_steps<T>(&self, read: impl FnOnce(&[DecisionStep]) -> T) -> T {
        read(&self.lock().steps)
    }

    /// Returns true if a decision on the call so far satisfies the predicate.
    pub fn any_step(&self, predicate: impl FnMut(&DecisionStep) -> bool) -> bool {
        self.lock().steps.iter().any(predicate)
    }

    /// Returns the policy of the last step with this decision.
    pub fn last_policy(&self, decision: &str) -> Option<&'static str> {
        let state = self.lock();
        let mut steps = state.steps.iter().rev();
        steps
            .find(|step| step.decision == decision)
            .map(|step| step.policy)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DecisionLogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
