//! Subscriptions to single resources of a server that outlive its processes.

use super::seat::Seat;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};
use toolgate::{Changes, Interest, Service, Stale, client::Remote};

/// Task that keeps a subscription for one listener. Dropping it ends the subscription.
pub(super) struct Hearing(JoinHandle<()>);

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connection with an active subscription.
pub(super) struct Told {
    by: Arc<Remote>,
    _changes: Option<Changes>,
}

impl Told {
    /// Subscribes at a connection. Its updates arrive through the supervisor; this only keeps the subscription open.
    pub(super) async fn by(by: Arc<Remote>, want: &Interest) -> Told {
        let changes = by.changes(want.clone()).await.ok();
        Told {
            by,
            _changes: changes,
        }
    }
}

impl Hearing {
    /// Subscribes again at each new connection, and reports that the resources may have changed in between.
    pub(super) fn start(
        mut seats: watch::Receiver<Seat>,
        changes: watch::Sender<Stale>,
        want: Interest,
        mut told: Option<Told>,
    ) -> Hearing {
        let hear = async move {
            loop {
                let last = told.as_ref().map(|told| told.by.clone());
                let other = |seat: &Seat| match (&seat.remote, &last) {
                    (Some(now), Some(last)) => !Arc::ptr_eq(now, last),
                    (now, None) => now.is_some(),
                    (None, Some(_)) => false,
                };
                let Ok(seat) = seats.wait_for(other).await.map(|seat| seat.clone()) else {
                    return;
                };
                if let Some(remote) = seat.remote {
                    told = Some(Told::by(remote, &want).await);
                    changes.send_modify(|stale| want.uris.iter().for_each(|uri| stale.update(uri)));
                }
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "processes restart between requests; aborted with `ResourceSubscription`"
        )]
        Hearing(tokio::spawn(hear))
    }
}
