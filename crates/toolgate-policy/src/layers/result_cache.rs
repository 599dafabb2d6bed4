//! Cache of results of read-only tools.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_core::{BoxFuture, Call, Error, Layer, Next, Op, Outcome, Output};

/// Maximum number of results that are cached; the oldest is evicted.
const MAX_RESULTS: usize = 1_024;
/// Maximum size of a cached result, and of the arguments of its call, in bytes.
const MAX_RESULT_BYTES: usize = 65_536;

/// Cache of results of read-only tools, for each caller and for the same arguments.
///
/// Only successful results of tools that are annotated as read-only are cached; a client has to trust the annotations
/// of its server. The cache holds 1,024 results of at most 64 KiB. Rules and approvals decide before it, and the audit
/// log has every call.
///
/// ```
/// use std::time::Duration;
/// use toolgate_policy::layers::ResultCache;
///
/// let cache = ResultCache::new(Duration::from_secs(60));
/// # let _ = cache;
/// ```
pub struct ResultCache {
    lifetime: Duration,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    results: HashMap<CallKey, CachedResult>,
    /// Keys in the order in which they were added, with the time of that.
    order: VecDeque<(CallKey, Instant)>,
}

struct CachedResult {
    output: Output,
    since: Instant,
}

/// Caller, item and canonical arguments.
type CallKey = (Arc<str>, Arc<str>, Arc<str>);

impl ResultCache {
    /// Creates a cache whose results are used for this time.
    pub fn new(lifetime: Duration) -> ResultCache {
        ResultCache {
            lifetime,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &CallKey) -> Option<Output> {
        let state = self.lock();
        let cached = state.results.get(key)?;
        (cached.since.elapsed() < self.lifetime).then(|| cached.output.clone())
    }

    fn insert(&self, key: CallKey, output: Output) {
        let mut state = self.lock();
        let since = Instant::now();
        state.order.push_back((key.clone(), since));
        state.results.insert(key, CachedResult { output, since });
        while state.order.len() > MAX_RESULTS {
            let Some((oldest, added)) = state.order.pop_front() else {
                break;
            };
            // A newer result of the same call has an entry of its own.
            if state
                .results
                .get(&oldest)
                .is_some_and(|cached| cached.since == added)
            {
                state.results.remove(&oldest);
            }
        }
    }
}

/// Returns the key of a call whose result may be cached.
fn key_of(call: &Call) -> Option<CallKey> {
    let item = call.item()?;
    let is_plain = call.op == Op::Tool && call.round.number == 0 && call.resumed_after.is_none();
    if !is_plain || !item.annotations().read_only {
        return None;
    }
    let arguments = call.arguments().raw();
    (arguments.as_str().len() <= MAX_RESULT_BYTES).then(|| {
        (
            call.caller.shared_name(),
            item.shared_name(),
            arguments.canonical().into(),
        )
    })
}

impl Layer for ResultCache {
    fn name(&self) -> &'static str {
        "result_cache"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(key) = key_of(&call) else {
                return next.call(call).await;
            };
            if let Some(output) = self.get(&key) {
                call.decision_log.add("result_cache", "hit", "");
                return Ok(Outcome::Done(output));
            }
            let outcome = next.call(call).await?;
            if let Outcome::Done(output) = &outcome
                && !output.is_error()
                && output.size() <= MAX_RESULT_BYTES
            {
                self.insert(key, output.clone());
            }
            Ok(outcome)
        })
    }
}
