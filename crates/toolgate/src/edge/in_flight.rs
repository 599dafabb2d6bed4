//! Requests in flight of one connection: how their work starts, and the table of stateless requests (2026-07-28 over
//! stdio).

use futures_util::{
    FutureExt,
    future::{AbortHandle, Aborted},
};
use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Notify,
};
use toolgate_core::{CancelReason, DecisionLog};
use toolgate_protocol::{
    json::Json,
    message::Id,
    method::notifications,
    placeholder,
    request_table::{RequestTable, RequestTableError},
};

/// The abort handle and decision log of one request in flight.
pub(crate) struct RequestWork {
    task: AbortHandle,
    /// The decision log of the call, if the request is one.
    decision_log: DecisionLog,
}

impl RequestWork {
    /// Returns the work that `task` aborts, with its decision log.
    pub(crate) fn new(task: AbortHandle, trail: DecisionLog) -> RequestWork {
        RequestWork {
            task,
            decision_log: trail,
        }
    }

    /// Aborts the work. The decision log passes the reason on to what the work started.
    pub(crate) fn abort(self, why: CancelReason) {
        self.decision_log.set_cancel_reason(why);
        self.task.abort();
    }
}

/// Longest cancellation reason of a client that is kept, in bytes. A longer one is replaced by its length.
const MAX_CANCEL_REASON_BYTES: usize = 1024;

/// Returns the [`CancelReason`] of a cancellation (`notifications/cancelled`), with the client's reason.
pub(crate) fn cancel_reason(params: Option<&Json>) -> CancelReason {
    let reason = notifications::cancelled_reason(params);
    CancelReason::Caller(reason.map(|reason| match reason.len() {
        0..=MAX_CANCEL_REASON_BYTES => reason.into(),
        long => placeholder::omitted(long).into(),
    }))
}

/// Table of the stateless requests in flight on one connection.
pub(crate) struct StatelessRequestTable {
    table: Mutex<RequestTable<(), RequestWork>>,
    /// Notified when a request ends.
    request_ended: Notify,
}

impl StatelessRequestTable {
    /// Creates a table for at most `limit` requests at once.
    pub(crate) fn new(limit: usize) -> StatelessRequestTable {
        StatelessRequestTable {
            table: Mutex::new(RequestTable::new(limit)),
            request_ended: Notify::new(),
        }
    }

    /// Adds a request to the table.
    ///
    /// # Errors
    /// Its id is already in flight, or too many requests are.
    pub(crate) fn accept(&self, id: &Id, work: RequestWork) -> Result<(), RequestTableError> {
        self.table().accept(id, work)
    }

    /// Removes a completed request. Returns false if it was cancelled, so that its reply is not sent.
    pub(crate) fn finish(&self, id: &Id) -> bool {
        let wanted = self.table().finish(id).is_some();
        self.request_ended.notify_waiters();
        wanted
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, id: &Id, why: CancelReason) {
        let work = self.table().cancel(id);
        if let Some(work) = work {
            work.abort(why);
        }
        self.request_ended.notify_waiters();
    }

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self, why: &CancelReason) {
        let all = self.table().drain_workers();
        all.into_iter().for_each(|work| work.abort(why.clone()));
        self.request_ended.notify_waiters();
    }

    /// Waits until no request is in flight.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.request_ended.notified());
            // Register before the check, or a request that ends in between would be missed.
            ended.as_mut().enable();
            if self.table().received_count() == 0 {
                return;
            }
            ended.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, RequestTable<(), RequestWork>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the work on a request. On a single-threaded runtime it is polled once right here, which completes most
/// requests; otherwise it is spawned as a task. On a multi-threaded runtime it is always spawned, so that another
/// thread can run it.
pub(crate) async fn start_work(
    work: impl Future<Output = Result<(), Aborted>> + Send + Unpin + 'static,
) {
    // As in a spawned task, a panic ends only this request.
    let mut work = AssertUnwindSafe(work).catch_unwind();
    let alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    if alone
        && poll_fn(|cx| Poll::Ready(work.poll_unpin(cx)))
            .await
            .is_ready()
    {
        return;
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "the server owns the futures of its client's requests and aborts them"
    )]
    tokio::spawn(work);
}
