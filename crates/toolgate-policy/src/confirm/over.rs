//! The end of approvals that nobody decided, or used, in time, and of those whose caller's key was revoked.
//!
//! All processes of a store see it, and the one that asked may be gone. Whoever puts the end into the store first
//! records it, so that each has one record.

use super::{Desk, Standing, slip::Slip};
use crate::{Store, Written};
use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use toolgate_core::{BoxFuture, Error};
use toolgate_journal::Entry;

/// The longest time in which nobody looks at the clock: it may be set, and a machine may sleep.
const LOOK: Duration = Duration::from_secs(30);

/// An end on its way to the store.
pub(super) struct Ending {
    id: Arc<str>,
    record: Entry,
    writing: BoxFuture<'static, Result<Written, Error>>,
}

impl Ending {
    pub(super) fn of(slip: &Slip, end: &Standing, store: &dyn Store) -> Ending {
        Ending {
            id: slip.id.clone(),
            record: slip.record(end.as_str()),
            writing: slip.write(store, |kept| kept.standing = end.clone()),
        }
    }
}

/// Those that the store has not answered yet. [`Desk::follow`] alone waits for them.
#[derive(Default)]
pub(super) struct Endings {
    waiting: Mutex<Vec<Ending>>,
    more: Notify,
}

impl Endings {
    fn lock(&self) -> MutexGuard<'_, Vec<Ending>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that the store answered by now.
    fn ready(&self, cx: &mut Context<'_>) -> Vec<(Ending, Result<Written, Error>)> {
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

impl Desk {
    /// Looks whenever another process may have changed something, and ends what is over, without end. A store that does
    /// not answer at once needs it: without it, nobody records what expired.
    pub async fn follow(&self) {
        let mut kept = self.store.changed();
        loop {
            self.sweep();
            let next = self.book().next_expiry();
            let look = Instant::now() + LOOK;
            tokio::select! {
                changed = kept.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                () = tokio::time::sleep_until(next.map_or(look, |next| next.min(look))) => {}
                () = self.endings.more.notified() => {}
                () = self.some_ended() => {}
            }
        }
    }

    /// Ends approvals, which stand there then.
    pub(super) fn expire(&self, end: &Standing, over: impl Fn(&Slip) -> bool) {
        let ended = self.book().expire(self.store.as_ref(), end, over);
        if ended.is_empty() {
            return;
        }
        self.touch();
        // A store in memory has answered already. Those that are on their way have another waker, which must stay.
        let new = Endings::default();
        *new.lock() = ended;
        let ready = new.ready(&mut Context::from_waker(Waker::noop()));
        self.endings.lock().append(&mut new.lock());
        self.endings.more.notify_one();
        self.ended(ready);
    }

    /// Until the store answered for some of them.
    async fn some_ended(&self) {
        let ready = poll_fn(|cx| match self.endings.ready(cx) {
            none if none.is_empty() => Poll::Pending,
            some => Poll::Ready(some),
        });
        let ready = ready.await;
        self.ended(ready);
    }

    fn ended(&self, ready: Vec<(Ending, Result<Written, Error>)>) {
        for (ending, answer) in ready {
            match answer {
                Ok(Written::Done(_)) => self.recorder.note(ending.record),
                // Another process was faster, with this or with a word of a person: what it wrote counts.
                Ok(Written::Conflict) => {}
                // It is over all the same; the next process that looks ends it in the store.
                Err(error) => {
                    tracing::warn!(approval = %ending.id, %error, "its end is not kept");
                }
            }
        }
    }
}
