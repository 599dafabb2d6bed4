//! Waiting for the decision of an approval.

use super::{pending::ApprovalExpiry, service::ApprovalService};
use std::sync::Arc;
use tokio::{sync::watch, time::sleep_until};
use toolgate_core::{BoxFuture, Caller, DecisionWaiter};

pub(super) struct DecisionWait {
    pub(super) service: Arc<ApprovalService>,
    pub(super) id: Arc<str>,
    pub(super) decided: watch::Receiver<bool>,
    pub(super) expiry: ApprovalExpiry,
    pub(super) caller: Caller,
    pub(super) server: Arc<str>,
}

impl DecisionWaiter for DecisionWait {
    fn wait_for_decision(&self) -> BoxFuture<'static, ()> {
        let (mut decided, over) = (self.decided.clone(), self.expiry.monotonic);
        let (service, caller, server) = (
            self.service.clone(),
            self.caller.clone(),
            self.server.clone(),
        );
        // Another process may decide, or a freeze may end the wait. The retried call then returns the error.
        let elsewhere = async move {
            let mut kept = service.store.changed();
            loop {
                service.sync();
                if service.freezes.frozen_reason(&caller, &server).is_some() {
                    return;
                }
                if kept.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        Box::pin(async move {
            tokio::select! {
                // An error means that the approval was evicted, so it has ended too.
                _ = decided.wait_for(|decided| *decided) => {}
                () = sleep_until(over) => {}
                () = elsewhere => {}
            }
        })
    }

    fn mark_waiting(&self) -> Box<dyn Send + Sync> {
        self.service.count_waiters(&self.id, true);
        Box::new(WaiterGuard {
            service: self.service.clone(),
            id: self.id.clone(),
        })
    }
}

struct WaiterGuard {
    service: Arc<ApprovalService>,
    id: Arc<str>,
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        self.service.count_waiters(&self.id, false);
    }
}
