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
use toolgate_core::{GivenUp, Trail};
use toolgate_wire::{
    json::Json,
    message::Id,
    method::notifications,
    placeholder,
    session::{Refusal, Session},
};

/// The work on one request.
pub(crate) struct Work {
    task: AbortHandle,
    /// That of the call, where it is one.
    trail: Trail,
}

impl Work {
    /// Work that is ended by its handle, on this trail.
    pub(crate) fn new(task: AbortHandle, trail: Trail) -> Work {
        Work { task, trail }
    }

    /// Ends it. What it opened learns why from the trail.
    pub(crate) fn end(self, why: GivenUp) {
        self.trail.give_up(why);
        self.task.abort();
    }
}

/// Bytes of the reason of a peer that are kept. Of a longer one its length is.
const REASON: usize = 1024;

/// That the peer cancels a request, with its reason.
pub(crate) fn cancelled(params: Option<&Json>) -> GivenUp {
    let reason = notifications::cancelled_reason(params);
    GivenUp::Caller(reason.map(|reason| match reason.len() {
        0..=REASON => reason.into(),
        long => placeholder::omitted(long).into(),
    }))
}

/// What works on requests, and can be ended.
pub(crate) struct Working {
    table: Mutex<Session<(), Work>>,
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
    pub(crate) fn accept(&self, id: &Id, work: Work) -> Result<(), Refusal> {
        self.table().accept(id, work)
    }

    /// The work is over; whether its answer is still wanted.
    pub(crate) fn finish(&self, id: &Id) -> bool {
        let wanted = self.table().finish(id).is_some();
        self.ended.notify_waiters();
        wanted
    }

    /// The peer cancels a request.
    pub(crate) fn cancel(&self, id: &Id, why: GivenUp) {
        let work = self.table().cancel(id);
        if let Some(work) = work {
            work.end(why);
        }
        self.ended.notify_waiters();
    }

    /// Ends all of them.
    pub(crate) fn stop(&self, why: &GivenUp) {
        let all = self.table().stop();
        all.into_iter().for_each(|work| work.end(why.clone()));
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

    fn table(&self) -> MutexGuard<'_, Session<(), Work>> {
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
