//! Single-flight cache: concurrent requests share one fetch, which completes even if they are canceled.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Single-flight cache of one value that is fetched on demand.
pub(super) struct SingleFlightCache<T> {
    state: Mutex<SingleFlightState<T>>,
    /// Lock of a running fetch. Only requests that need a new value wait for it.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

struct SingleFlightState<T> {
    /// Cached value and the time of its fetch.
    cached: Option<(Arc<T>, Instant)>,
    /// End of the last fetch, successful or not.
    last_fetch: Option<Instant>,
}

impl<T: Send + Sync + 'static> SingleFlightCache<T> {
    pub(super) fn new() -> Arc<SingleFlightCache<T>> {
        Arc::new(SingleFlightCache {
            state: Mutex::new(SingleFlightState {
                cached: None,
                last_fetch: None,
            }),
            fetching: Arc::default(),
        })
    }

    /// Returns the cached value and its age.
    pub(super) fn cached(&self) -> Option<(Arc<T>, Duration)> {
        let state = self.state();
        let (known, at) = state.cached.as_ref()?;
        Some((known.clone(), at.elapsed()))
    }

    /// Returns the cached value if it is younger than a limit.
    pub(super) fn younger_than(&self, than: Duration) -> Option<Arc<T>> {
        let (known, age) = self.cached()?;
        (age < than).then_some(known)
    }

    /// Fetches the value again, at least `pause` after the last fetch. Returns whether the cached value is from a fetch
    /// that ended after this call began.
    pub(super) async fn refetch<F>(
        self: &Arc<Self>,
        pause: Duration,
        fetch: impl FnOnce() -> F + Send,
    ) -> bool
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let began = Instant::now();
        let turn = self.fetching.clone().lock_owned().await;
        {
            let state = self.state();
            if state.cached.as_ref().is_some_and(|(_, at)| *at >= began) {
                return true;
            }
            if state.last_fetch.is_some_and(|at| at.elapsed() < pause) {
                return false;
            }
        }
        let (look, found) = (self.clone(), fetch());
        let fetching = async move {
            let found = found.await;
            let mut state = look.state();
            let (now, is_found) = (Instant::now(), found.is_some());
            state.last_fetch = Some(now);
            if let Some(found) = found {
                state.cached = Some((Arc::new(found), now));
            }
            drop(state);
            drop(turn);
            is_found
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "one bounded exchange at a time; it is for all, and must not end with the one who asked first"
        )]
        let fetching = tokio::spawn(fetching);
        fetching.await.unwrap_or(false)
    }

    fn state(&self) -> MutexGuard<'_, SingleFlightState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
