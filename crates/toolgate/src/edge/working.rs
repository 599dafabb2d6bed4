//! Requests of a peer that are being worked on: how their work begins, and the table of those that stand for themselves
//! (2026-07-28 over stdio).

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
use toolgate_wire::{
    message::Id,
    session::{Refusal, Session},
};

/// What works on requests, and can be aborted.
pub(crate) struct Working {
    table: Mutex<Session<(), AbortHandle>>,
    /// Told when a request ends.
    ended: Notify,
}

impl Working {
    /// Takes at most `limit` requests at once.
    pub(crate) fn new(limit: usize) -> Working {
        Working {
            table: Mutex::new(Session::new(limit)),
            ended: Notify::new(),
        }
    }

    /// A request came.
    ///
    /// # Errors
    /// It must not be worked on.
    pub(crate) fn accept(&self, id: &Id, task: AbortHandle) -> Result<(), Refusal> {
        self.table().accept(id, task)
    }

    /// The work is over; whether its answer is still wanted.
    pub(crate) fn finish(&self, id: &Id) -> bool {
        let wanted = self.table().finish(id).is_some();
        self.ended.notify_waiters();
        wanted
    }

    /// The peer cancels a request.
    pub(crate) fn cancel(&self, id: &Id) {
        let task = self.table().cancel(id);
        if let Some(task) = task {
            task.abort();
        }
        self.ended.notify_waiters();
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        for task in self.table().stop() {
            task.abort();
        }
        self.ended.notify_waiters();
    }

    /// Ends when nothing is being worked on.
    pub(crate) async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Listening comes before looking, or an end in between would be missed.
            ended.as_mut().enable();
            if self.table().working() == 0 {
                return;
            }
            ended.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, Session<(), AbortHandle>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to work on a request. On a runtime of one thread nothing is lost by a first step here and now, and most
/// requests are over with it; what is not goes on as a task. Where there are more threads, another one may take it.
pub(crate) async fn begin(
    work: impl Future<Output = Result<(), Aborted>> + Send + Unpin + 'static,
) {
    // As in a task, a panic ends the one request.
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
        reason = "an edge owns the futures of its peer's requests and aborts them"
    )]
    tokio::spawn(work);
}
