//! Admission limit: bounds running and queued calls together.

use super::ConcurrencyLimits;
use foldhash::HashMap as FoldHashMap;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::sleep;
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, LimitSubject, Next, Outcome};

/// Layer that bounds running and queued calls, per caller and in total. Clones share the counts.
#[derive(Clone)]
pub(crate) struct AdmissionLimit {
    per_caller: usize,
    total: usize,
    rejection_delay: Duration,
    admitted: Arc<Mutex<AdmittedCalls>>,
}

/// Number of idle callers that may stay in the table.
const IDLE_CALLERS_RETAINED: usize = 64;

#[derive(Default)]
struct AdmittedCalls {
    by_caller: FoldHashMap<LimitSubject, usize>,
    total: usize,
}

impl AdmissionLimit {
    pub(super) fn new(caps: &ConcurrencyLimits) -> AdmissionLimit {
        AdmissionLimit {
            per_caller: caps.per_caller.saturating_add(caps.max_queued_per_caller),
            total: caps.total.saturating_add(caps.max_queued),
            rejection_delay: caps.rejection_delay,
            admitted: Arc::default(),
        }
    }

    pub(super) fn with_limits(&self, caps: &ConcurrencyLimits) -> AdmissionLimit {
        AdmissionLimit {
            admitted: self.admitted.clone(),
            ..AdmissionLimit::new(caps)
        }
    }

    /// Returns the number of callers in the table.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        lock(&self.admitted).by_caller.len()
    }

    pub(super) fn admit(&self, caller: &LimitSubject) -> Result<AdmissionPermit, Error> {
        let mut held = lock(&self.admitted);
        let all = held.total;
        let count = held.by_caller.get_mut(caller);
        let own = count.as_ref().map_or(0, |count| **count);
        let why = match (own >= self.per_caller, all >= self.total) {
            (true, _) => describe_count(own, " from this caller"),
            (_, true) => describe_count(all, ""),
            _ => {
                match count {
                    Some(count) => *count += 1,
                    None => _ = held.by_caller.insert(caller.clone(), 1),
                }
                held.total += 1;
                return Ok(AdmissionPermit(self.admitted.clone(), caller.clone()));
            }
        };
        let text = format!("too many concurrent calls: {why}; try again when one has completed");
        Err(Error::new(ErrorKind::Busy(None), text))
    }
}

fn describe_count(count: usize, of: &str) -> String {
    match count {
        1 => format!("1 call{of} is already running or waiting"),
        _ => format!("{count} calls{of} are already running or waiting"),
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
        held.total = held.total.saturating_sub(1);
        if let Some(count) = held.by_caller.get_mut(&self.1) {
            *count = count.saturating_sub(1);
        }
        // Most callers return immediately, so idle entries are removed lazily.
        if held.by_caller.len() > IDLE_CALLERS_RETAINED + 2 * held.total {
            held.by_caller.retain(|_, count| *count > 0);
        }
    }
}

impl Layer for AdmissionLimit {
    fn name(&self) -> &'static str {
        "admission"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let _hold = match self.admit(&call.caller.limit_subject()) {
                Ok(hold) => hold,
                Err(busy) => {
                    call.decision_log
                        .add(self.name(), "refuse", busy.public_message());
                    // The arguments need no memory while the client waits for the rejection.
                    drop(call);
                    // Boxed, so that the future of an admitted call is small.
                    Box::pin(sleep(self.rejection_delay)).await;
                    return Err(busy);
                }
            };
            next.call(call).await
        })
    }
}
