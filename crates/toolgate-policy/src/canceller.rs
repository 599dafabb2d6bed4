//! Cancellation of running calls by the operator.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use toolgate_core::{BoxFuture, Call, CancelReason, Error, ErrorKind, Layer, Next, Outcome};

/// Layer that lets the operator cancel running calls, for example from a console. Clones share the list of running
/// calls.
///
/// ```
/// use toolgate_core::Pipeline;
/// use toolgate_policy::CallCanceller;
///
/// let canceller = CallCanceller::default();
/// let pipeline = Pipeline::new().layer(canceller.clone());
/// // Later, when the operator cancels the call with this id:
/// if !canceller.cancel("c-17") {
///     println!("the call c-17 is not running");
/// }
/// # drop(pipeline);
/// ```
#[derive(Clone, Default)]
pub struct CallCanceller(Arc<Mutex<RunningRounds>>);

/// The running rounds by call id. A client may send the same round twice.
type RunningRounds = HashMap<Arc<str>, Vec<Arc<Notify>>>;

impl CallCanceller {
    /// Cancels the running call with this id, in all its rounds. Returns `false` if there are none.
    pub fn cancel(&self, id: &str) -> bool {
        let running = self.running();
        let rounds = running.get(id);
        rounds
            .into_iter()
            .flatten()
            .for_each(|stop| stop.notify_one());
        rounds.is_some()
    }

    /// Returns whether the call with this id is running.
    pub fn is_running(&self, id: &str) -> bool {
        self.running().contains_key(id)
    }

    fn running(&self) -> MutexGuard<'_, RunningRounds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a round from the list when it is dropped.
struct RunningRound<'a>(&'a CallCanceller, Arc<str>, Arc<Notify>);

impl Drop for RunningRound<'_> {
    fn drop(&mut self) {
        let mut running = self.0.running();
        if let Some(rounds) = running.get_mut(&self.1) {
            rounds.retain(|stop| !Arc::ptr_eq(stop, &self.2));
            if rounds.is_empty() {
                running.remove(&self.1);
            }
        }
    }
}

impl Layer for CallCanceller {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let stop = Arc::new(Notify::new());
            self.running()
                .entry(call.id.clone())
                .or_default()
                .push(stop.clone());
            let _listed = RunningRound(self, call.id.clone(), stop.clone());
            let trail = call.decision_log.clone();
            // The reason is logged in the same poll that drops the call, before anything else happens.
            let stopped = async {
                stop.notified().await;
                trail.set_cancel_reason(CancelReason::Operator);
            };
            tokio::select! {
                outcome = next.call(call) => outcome,
                () = stopped => Err(Error::new(ErrorKind::Cancelled, "the operator stopped this call")),
            }
        })
    }
}
