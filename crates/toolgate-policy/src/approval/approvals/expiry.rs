//! Expiry of approvals that were not decided or spent in time, and of those whose caller's key was revoked.
//!
//! Every process of a store detects an expiry, and the process that requested the approval may have exited. The process
//! that first writes the end to the store records it, so each end has one audit record.

use super::{ApprovalService, ApprovalStatus, pending::PendingApproval};
use crate::{StateStore, WriteOutcome};
use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use toolgate_core::{BoxFuture, Error};
use toolgate_journal::AuditEntry;

/// Maximum interval between two checks of the clock: the clock may be set, and the machine may sleep.
const MAX_CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The end of an approval while it is written to the store.
pub(super) struct EndingApproval {
    id: Arc<str>,
    record: AuditEntry,
    writing: BoxFuture<'static, Result<WriteOutcome, Error>>,
}

impl EndingApproval {
    pub(super) fn of(
        approval: &PendingApproval,
        end: &ApprovalStatus,
        store: &dyn StateStore,
    ) -> EndingApproval {
        EndingApproval {
            id: approval.id.clone(),
            record: approval.record(end.as_str()),
            writing: approval.write(store, |kept| kept.status = end.clone()),
        }
    }
}

/// Ends that the store has not confirmed yet. Only [`ApprovalService::follow`] waits for them.
#[derive(Default)]
pub(super) struct EndingApprovals {
    waiting: Mutex<Vec<EndingApproval>>,
    more: Notify,
}

impl EndingApprovals {
    fn lock(&self) -> MutexGuard<'_, Vec<EndingApproval>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the ends that the store has confirmed or rejected by now.
    fn ready(&self, cx: &mut Context<'_>) -> Vec<(EndingApproval, Result<WriteOutcome, Error>)> {
        let mut ready = Vec::new();
        let (mut waiting, mut still) = (self.lock(), Vec::new());
        for mut ending in waiting.drain(..) {
            match ending.writing.as_mut().poll(cx) {
                Poll::Ready(answer) => ready.push((ending, answer)),
                Poll::Pending => still.push(ending),
            }
        }
        *waiting = still;
        ready
    }
}

impl ApprovalService {
    /// Follows changes of approvals by other processes and expires approvals. Runs until it is dropped.
    ///
    /// A store that writes asynchronously needs it: without it, expiries are not recorded.
    pub async fn follow(&self) {
        let mut kept = self.store.changed();
        loop {
            self.sweep();
            let next = self.lock_index().next_expiry();
            let look = Instant::now() + MAX_CLOCK_CHECK_INTERVAL;
            tokio::select! {
                changed = kept.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                () = tokio::time::sleep_until(next.map_or(look, |next| next.min(look))) => {}
                () = self.endings.more.notified() => {}
                () = self.wait_for_ends() => {}
            }
        }
    }

    /// Ends the approvals that match the predicate, with this status.
    pub(super) fn expire(&self, end: &ApprovalStatus, over: impl Fn(&PendingApproval) -> bool) {
        let ended = self
            .lock_index()
            .end_matching(self.store.as_ref(), end, over);
        if ended.is_empty() {
            return;
        }
        self.notify_change();
        // An in-memory store has completed already. The ends in flight have another waker, which must stay registered.
        let new = EndingApprovals::default();
        *new.lock() = ended;
        let ready = new.ready(&mut Context::from_waker(Waker::noop()));
        self.endings.lock().append(&mut new.lock());
        self.endings.more.notify_one();
        self.record_ends(ready);
    }

    /// Completes once the store has answered for at least one end.
    async fn wait_for_ends(&self) {
        let ready = poll_fn(|cx| match self.endings.ready(cx) {
            none if none.is_empty() => Poll::Pending,
            some => Poll::Ready(some),
        });
        let ready = ready.await;
        self.record_ends(ready);
    }

    fn record_ends(&self, ready: Vec<(EndingApproval, Result<WriteOutcome, Error>)>) {
        for (ending, answer) in ready {
            match answer {
                Ok(WriteOutcome::Done(_)) => self.recorder.note(ending.record),
                // Another process wrote the end or a decision first, and that one counts.
                Ok(WriteOutcome::Conflict) => {}
                // The approval has ended in this process. The next process that checks it writes the end to the store.
                Err(error) => {
                    tracing::warn!(approval = %ending.id, %error, "the end of an approval cannot be stored");
                }
            }
        }
    }
}
