//! Concurrency limit of what a layer surrounds.

use std::sync::Arc;
use tokio::sync::Semaphore;
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, Next, Outcome};

/// Concurrency limit of calls, usually of one tool. Further calls wait, in order, until the call timeout ends them.
///
/// Clones share the limit, so that several tools can share one.
///
/// ```
/// use toolgate_policy::layers::ConcurrentCalls;
///
/// let one_at_a_time = ConcurrentCalls::at_most(1);
/// # let _ = one_at_a_time;
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrentCalls(Arc<Semaphore>);

impl ConcurrentCalls {
    /// Creates a limit of this many calls, at least one.
    pub fn at_most(calls: usize) -> ConcurrentCalls {
        ConcurrentCalls(Arc::new(Semaphore::new(calls.max(1))))
    }
}

impl Layer for ConcurrentCalls {
    fn name(&self) -> &'static str {
        "concurrent_calls"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            // The semaphore is never closed.
            let _permit = self.0.acquire().await.map_err(|closed| {
                Error::new(
                    ErrorKind::Bug,
                    "internal error: the concurrency limit was closed",
                )
                .with_source(closed)
            })?;
            next.call(call).await
        })
    }
}
