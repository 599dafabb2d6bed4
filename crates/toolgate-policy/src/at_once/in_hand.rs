//! Admission limit: bounds running and queued calls together.

use super::ConcurrencyLimits;
use ahash::AHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, LimitSubject, Next, Outcome};

/// Layer that bounds running and queued calls, per caller and in total. Clones share the counts.
#[derive(Clone)]
pub(crate) struct AdmissionLimit {
    per_caller: usize,
    all: usize,
    held: Arc<Mutex<AdmittedCalls>>,
}

/// Number of idle callers that may stay in the table.
const IDLE_CALLERS_RETAINED: usize = 64;

#[derive(Default)]
struct AdmittedCalls {
    of: AHashMap<LimitSubject, usize>,
    all: usize,
}

impl AdmissionLimit {
    pub(super) fn new(caps: &ConcurrencyLimits) -> AdmissionLimit {
        AdmissionLimit {
            per_caller: caps.caller.saturating_add(caps.waiting_per_caller),
            all: caps.all.saturating_add(caps.waiting),
            held: Arc::default(),
        }
    }

    pub(super) fn reloaded(&self, caps: &ConcurrencyLimits) -> AdmissionLimit {
        AdmissionLimit {
            held: self.held.clone(),
            ..AdmissionLimit::new(caps)
        }
    }

    /// Returns the number of callers in the table.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        lock(&self.held).of.len()
    }

    pub(super) fn take(&self, caller: &LimitSubject) -> Result<AdmissionPermit, Error> {
        let mut held = lock(&self.held);
        let all = held.all;
        let count = held.of.get_mut(caller);
        let own = count.as_ref().map_or(0, |count| **count);
        let why = match (own >= self.per_caller, all >= self.all) {
            (true, _) => held_words(own, " of this caller"),
            (_, true) => held_words(all, ""),
            _ => {
                match count {
                    Some(count) => *count += 1,
                    None => _ = held.of.insert(caller.clone(), 1),
                }
                held.all += 1;
                return Ok(AdmissionPermit(self.held.clone(), caller.clone()));
            }
        };
        let text = format!("too many concurrent calls: {why}; try again when one has completed");
        Err(Error::new(ErrorKind::Busy(None), text))
    }
}

fn held_words(count: usize, of: &str) -> String {
    match count {
        1 => format!("1 call{of} runs or waits already"),
        _ => format!("{count} calls{of} run or wait already"),
    }
}

fn lock(held: &Mutex<AdmittedCalls>) -> MutexGuard<'_, AdmittedCalls> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Permit of one call, released on drop.
pub(super) struct AdmissionPermit(Arc<Mutex<AdmittedCalls>>, LimitSubject);

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        let mut held = lock(&self.0);
        held.all = held.all.saturating_sub(1);
        if let Some(count) = held.of.get_mut(&self.1) {
            *count = count.saturating_sub(1);
        }
        // Most callers return immediately, so idle entries are removed lazily.
        if held.of.len() > IDLE_CALLERS_RETAINED + 2 * held.all {
            held.of.retain(|_, count| *count > 0);
        }
    }
}

impl Layer for AdmissionLimit {
    fn name(&self) -> &'static str {
        "in hand"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let _hold = self.take(&call.caller.limit_subject())?;
            next.call(call).await
        })
    }
}
