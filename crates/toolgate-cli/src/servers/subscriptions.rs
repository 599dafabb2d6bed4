//! Subscriptions to single resources of a server that outlive its processes.

use super::connection_state::ConnectionState;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};
use toolgate::client::RemoteServer;
use toolgate_core::{ChangeCounters, ChangeFilter, ChangeStream, Service};

/// Task that keeps a subscription for one listener. Dropping it ends the subscription.
pub(super) struct ResourceSubscription(JoinHandle<()>);

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connection with an active subscription.
pub(super) struct ActiveSubscription {
    remote: Arc<RemoteServer>,
    _changes: Option<ChangeStream>,
}

impl ActiveSubscription {
    /// Subscribes at a connection. Its updates arrive through the supervisor; this only keeps the subscription open.
    pub(super) async fn subscribe(
        by: Arc<RemoteServer>,
        want: &ChangeFilter,
    ) -> ActiveSubscription {
        let changes = by.changes(want.clone()).await.ok();
        ActiveSubscription {
            remote: by,
            _changes: changes,
        }
    }
}

impl ResourceSubscription {
    /// Subscribes again at each new connection, and reports that the resources may have changed in between.
    pub(super) fn start(
        mut seats: watch::Receiver<ConnectionState>,
        changes: watch::Sender<ChangeCounters>,
        want: ChangeFilter,
        mut told: Option<ActiveSubscription>,
    ) -> ResourceSubscription {
        let hear = async move {
            loop {
                let last = told.as_ref().map(|told| told.remote.clone());
                let other = |seat: &ConnectionState| match (&seat.remote, &last) {
                    (Some(now), Some(last)) => !Arc::ptr_eq(now, last),
                    (now, None) => now.is_some(),
                    (None, Some(_)) => false,
                };
                let Ok(seat) = seats.wait_for(other).await.map(|seat| seat.clone()) else {
                    return;
                };
                if let Some(remote) = seat.remote {
                    told = Some(ActiveSubscription::subscribe(remote, &want).await);
                    changes.send_modify(|stale| {
                        want.uris.iter().for_each(|uri| stale.count_update(uri))
                    });
                }
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "processes restart between requests; aborted with `ResourceSubscription`"
        )]
        ResourceSubscription(tokio::spawn(hear))
    }
}
