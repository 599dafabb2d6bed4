//! Metrics of calls by tool.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolgate_core::{BoxFuture, Call, Error, Item, Layer, Next, Outcome};

/// Metrics by item: calls, failures, calls in flight and durations.
///
/// Clones share the numbers: add one to the server, and keep one to read them, for example for a metrics endpoint.
///
/// Items have their full names, such as `files.search`. Resources and prompts count too, a resource of a template under
/// its template. The layer counts only calls that reach it: no calls that a rule, a rate or concurrency limit or the
/// validation of arguments rejects, or that wait for approval. A [`CallObserver`](crate::CallObserver) sees those too.
///
/// ```
/// use toolgate_policy::layers::{ToolMetrics, ToolStats};
///
/// let metrics = ToolMetrics::new();
/// let layer = metrics.clone(); // for Server::layer
/// for (item, ToolStats { calls, failures, .. }) in metrics.snapshot() {
///     println!("mcp_calls_total{{item={item:?}}} {calls}");
///     println!("mcp_failures_total{{item={item:?}}} {failures}");
/// }
/// # let _ = layer;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolMetrics(Arc<Mutex<BTreeMap<Arc<str>, ToolStats>>>);

/// Metrics of one item since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolStats {
    /// Ended calls. Each round of a call that requires input counts.
    pub calls: u64,
    /// Ended calls with an error, or with a result that reports one. Includes calls that a
    /// [`TimeoutLayer`](super::TimeoutLayer) inside of this layer ended, such as the timeout of one tool.
    pub failures: u64,
    /// Calls that were dropped before their end, because the caller cancelled them or a timeout outside of this layer
    /// ended them, such as the [`CallTimeout`](crate::CallTimeout) of the server.
    pub dropped: u64,
    /// Calls that are running.
    pub running: u64,
    /// Sum of the durations of ended calls.
    pub total: Duration,
    /// Longest duration of an ended call.
    pub longest: Duration,
}

impl ToolMetrics {
    /// Creates metrics without calls.
    pub fn new() -> ToolMetrics {
        ToolMetrics::default()
    }

    /// Returns the metrics of each called item, by its full name.
    pub fn snapshot(&self) -> Vec<(Arc<str>, ToolStats)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .map(|(item, stats)| (item.clone(), *stats))
            .collect()
    }

    fn update(&self, item: &Arc<str>, change: impl FnOnce(&mut ToolStats)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(all.entry(item.clone()).or_default());
    }
}

/// Call that has begun. Dropping it counts the call as dropped, unless it has ended.
struct RunningCall<'m> {
    metrics: &'m ToolMetrics,
    item: Arc<str>,
    since: Instant,
    failed: Option<bool>,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let (failed, took) = (self.failed, self.since.elapsed());
        self.metrics.update(&self.item, |stats| {
            stats.running -= 1;
            let Some(failed) = failed else {
                stats.dropped += 1;
                return;
            };
            stats.calls += 1;
            stats.failures += u64::from(failed);
            stats.total += took;
            stats.longest = stats.longest.max(took);
        });
    }
}

impl Layer for ToolMetrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            // A resource of a template counts as its template: callers choose URIs, and there may be any number.
            let Some(item) = call.item().map(|item: &Arc<Item>| item.shared_name()) else {
                return next.call(call).await;
            };
            self.update(&item, |stats| stats.running += 1);
            let mut running = RunningCall {
                metrics: self,
                item,
                since: Instant::now(),
                failed: None,
            };
            let outcome = next.call(call).await;
            running.failed = Some(match &outcome {
                Ok(Outcome::Done(output)) => output.is_error(),
                Ok(Outcome::InputRequired(_)) => false,
                Err(_) => true,
            });
            outcome
        })
    }
}
