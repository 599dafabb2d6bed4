//! Concurrency limits with a fair queue.
//!
//! - [`ConcurrencyLimit`]: the layer that limits concurrent calls.
//! - `queue`: permits of running calls, and the order of queued ones.
//! - `admission`: the admission limit on running and queued calls together, applied before any lookup.

mod admission;
mod queue;
#[cfg(test)]
mod tests;

use crate::{PerServer, humanize};
pub(crate) use admission::AdmissionLimit;
use queue::{ConcurrencyKeys, PermitQueue, QueueAdmission, ReachedLimit};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, Next, Outcome};

/// Limits on concurrent and queued calls per caller, tool, server and in total.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConcurrencyLimits {
    /// Maximum number of concurrent calls of one caller. Default: 64.
    pub per_caller: usize,
    /// Maximum number of concurrent calls of one tool, resource or prompt. Default: 256.
    pub per_tool: usize,
    /// Maximum number of concurrent calls to one server. Default: 512.
    pub per_server: PerServer<usize>,
    /// Maximum number of concurrent calls in total. Default: 2,048.
    pub total: usize,
    /// Maximum number of calls of one caller that wait in the queue for a permit. Default: 512.
    pub max_queued_per_caller: usize,
    /// Maximum number of calls that wait in the queue for a permit, in total. Default: 1,024.
    pub max_queued: usize,
    /// Maximum time that a call waits in the queue for a permit. Default: 10 s.
    pub queue_timeout: Duration,
    /// Time after which a call is rejected because the queue is full. It slows down a client that repeats rejected calls
    /// at once, so that the other calls keep the processor. Default: 250 ms.
    pub rejection_delay: Duration,
}

impl Default for ConcurrencyLimits {
    fn default() -> ConcurrencyLimits {
        ConcurrencyLimits {
            per_caller: 64,
            per_tool: 256,
            per_server: PerServer::all(512),
            total: 2048,
            max_queued_per_caller: 512,
            max_queued: 1024,
            queue_timeout: Duration::from_secs(10),
            rejection_delay: Duration::from_millis(250),
        }
    }
}

/// Layer that limits concurrent calls per caller, tool, server and in total, with a bounded queue.
///
/// The queue serves callers round-robin, one call at a time, so that a greedy caller only delays itself. Clones share
/// the permits.
///
/// A call that waits for an approval does not hold a permit.
#[derive(Clone)]
pub struct ConcurrencyLimit {
    limits: Arc<ConcurrencyLimits>,
    queue: Arc<PermitQueue>,
    admission: AdmissionLimit,
}

impl ConcurrencyLimit {
    /// Creates a limit on concurrent calls per caller and in total, without a queue: further calls are rejected
    /// immediately.
    pub fn new(per_caller: usize, total: usize) -> ConcurrencyLimit {
        ConcurrencyLimit::with_queue(ConcurrencyLimits {
            per_caller,
            per_tool: total,
            per_server: PerServer::all(total),
            total,
            max_queued_per_caller: 0,
            max_queued: 0,
            queue_timeout: Duration::ZERO,
            rejection_delay: Duration::ZERO,
        })
    }

    /// Creates a limit on concurrent calls with a queue for further ones.
    pub fn with_queue(limits: ConcurrencyLimits) -> ConcurrencyLimit {
        ConcurrencyLimit {
            admission: AdmissionLimit::new(&limits),
            queue: Arc::default(),
            limits: Arc::new(limits),
        }
    }

    /// Returns a layer with other limits that shares the permits of running calls and the queue. Running calls still
    /// count, and queued calls keep their order.
    #[doc(hidden)]
    pub fn with_limits(&self, limits: ConcurrencyLimits) -> ConcurrencyLimit {
        ConcurrencyLimit {
            admission: self.admission.with_limits(&limits),
            queue: self.queue.clone(),
            limits: Arc::new(limits),
        }
    }

    /// Returns the numbers of running and of queued calls, for monitoring.
    #[doc(hidden)]
    pub fn counts(&self) -> (usize, usize) {
        self.queue.counts()
    }

    /// Returns the layer that bounds running and queued calls together, before any lookup.
    pub(crate) fn admission(&self) -> AdmissionLimit {
        self.admission.clone()
    }

    /// Waits for a permit.
    async fn wait_for_permit(
        &self,
        mut waiting: queue::QueueTurn,
    ) -> Result<queue::ConcurrencyPermit, Error> {
        match timeout(self.limits.queue_timeout, waiting.wait()).await {
            Ok(place) => Ok(place),
            // The permit may have arrived at this moment.
            Err(_) => match waiting.give_up() {
                Ok(place) => Ok(place),
                Err(full) => Err(limit_error(&full, Some(self.limits.queue_timeout))),
            },
        }
    }
}

/// Returns an error that a model can act on: the limit reached, and the time to retry.
fn limit_error(full: &ReachedLimit, waited: Option<Duration>) -> Error {
    let waited = waited.map_or(String::new(), |wait| {
        format!(
            ", and no slot became free within {}",
            humanize::duration(wait)
        )
    });
    Error::new(
        ErrorKind::Busy(None),
        format!("too many concurrent calls: {full}{waited}; try again when one has completed"),
    )
}

impl Layer for ConcurrencyLimit {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let entered = match self.queue.enter(ConcurrencyKeys::of(&call), &self.limits) {
                Ok(QueueAdmission::Runs(place)) => Ok(place),
                // Boxed, so that the future of a call that need not wait is small.
                Ok(QueueAdmission::Waits(turn)) => Box::pin(self.wait_for_permit(turn)).await,
                Err(full) => Err(limit_error(&full, None)),
            };
            let _place = entered.inspect_err(|busy| {
                let log = &call.decision_log;
                log.add(self.name(), "refuse", busy.public_message());
            })?;
            next.call(call).await
        })
    }
}
