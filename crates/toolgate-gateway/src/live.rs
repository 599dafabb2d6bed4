//! Active snapshot of the config, as the service behind all edges.
//!
//! A reload swaps the whole snapshot. A call runs on the snapshot with which it began.

use crate::plan::ConfigSnapshot;
use futures_util::FutureExt;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};
use toolgate::{
    BoxFuture, Call, Caller, Catalog, ChangeCounters, ChangeFilter, ChangeSet, ChangeStream, Error,
    ItemKind, ListRequest, Outcome, Service, edge::InstructionsProvider,
};

/// Service that delegates to the active [`ConfigSnapshot`].
pub(crate) struct ActiveSnapshot {
    plan: watch::Sender<Arc<ConfigSnapshot>>,
    stale: watch::Sender<ChangeCounters>,
}

/// Task that forwards updates of single resources to one subscriber.
///
/// After a reload, it subscribes to the new snapshot, which decides again which resources the caller may see. Its
/// subscription keeps the servers sending updates. Dropping it ends the task.
struct SubscriptionTask(JoinHandle<()>);

impl Drop for SubscriptionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ActiveSnapshot {
    /// Creates the service with its first snapshot.
    pub(crate) fn new(plan: ConfigSnapshot) -> ActiveSnapshot {
        ActiveSnapshot {
            plan: watch::Sender::new(Arc::new(plan)),
            stale: watch::Sender::default(),
        }
    }

    /// Returns the active snapshot. Its servers run for as long as it is held.
    pub(crate) fn plan(&self) -> Arc<ConfigSnapshot> {
        self.plan.borrow().clone()
    }

    /// Activates a snapshot. Subscribers are notified that all lists are stale.
    pub(crate) fn swap(&self, plan: ConfigSnapshot) {
        let _before = self.plan.send_replace(Arc::new(plan));
    }

    /// Forwards list changes from the servers, across reloads, without end.
    pub(crate) async fn feed(&self) {
        let mut plans = self.plan.subscribe();
        let mut heard = plans.borrow_and_update().heard();
        loop {
            loop {
                tokio::select! {
                    changed = next(&mut heard) => self.tell(&changed),
                    swapped = plans.changed() => match swapped {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                }
            }
            // Drain the changes from before the swap. The new snapshot has subscribed before the swap, so none is
            // lost.
            let last = heard.as_mut().and_then(|heard| heard.next().now_or_never());
            self.tell(&last.flatten().unwrap_or_default());
            heard = plans.borrow_and_update().heard();
            self.tell(&ChangeSet {
                lists: vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt],
                updated: Vec::new(),
            });
        }
    }

    fn tell(&self, changed: &ChangeSet) {
        self.stale.send_modify(|stale| {
            changed.lists.iter().for_each(|kind| stale.list(*kind));
        });
    }
}

/// Waits for the next change; never resolves once the stream has ended.
async fn next(heard: &mut Option<ChangeStream>) -> ChangeSet {
    if let Some(changes) = heard {
        if let Some(changed) = changes.next().await {
            return changed;
        }
        *heard = None;
    }
    std::future::pending().await
}

impl SubscriptionTask {
    /// Forwards resource updates to `stale`, across reloads.
    fn start(
        mut plans: watch::Receiver<Arc<ConfigSnapshot>>,
        want: ChangeFilter,
        mut heard: Option<ChangeStream>,
        stale: watch::Sender<ChangeCounters>,
    ) -> SubscriptionTask {
        let hear = async move {
            loop {
                let swapped = tokio::select! {
                    changed = next(&mut heard) => {
                        let uris = changed.updated;
                        stale.send_modify(|stale| uris.iter().for_each(|uri| stale.update(uri)));
                        continue;
                    }
                    swapped = plans.changed() => swapped,
                };
                if swapped.is_err() {
                    return;
                }
                // The old subscription is dropped only after the new one exists. Resources that the caller may no
                // longer see are left out of the new one.
                let service = plans.borrow_and_update().service.clone();
                let new = service.changes(want.clone()).await.ok();
                let told = new
                    .as_ref()
                    .map(|new| new.told().unwrap_or(&want).uris.clone());
                heard = new;
                // These resources may have changed in between.
                stale.send_modify(|stale| told.iter().flatten().for_each(|uri| stale.update(uri)));
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "snapshots change between requests; aborted with `SubscriptionTask`"
        )]
        SubscriptionTask(tokio::spawn(hear))
    }
}

impl Service for ActiveSnapshot {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let plan = self.plan();
        Box::pin(async move { plan.service.list(ask).await })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let plan = self.plan();
        Box::pin(async move { plan.service.call(call).await })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async move {
            // Subscribe before the service is asked, so that no change is lost.
            let (lists, mut plans) = (self.stale.subscribe(), self.plan.subscribe());
            let lists = ChangeStream::new(lists);
            if want.uris.is_empty() {
                return Ok(lists.only(&want));
            }
            let service = plans.borrow_and_update().service.clone();
            let heard = service.changes(want.clone()).await?;
            let told = heard.told().unwrap_or(&want).clone();
            let stale = watch::Sender::new(ChangeCounters::default());
            let single = ChangeStream::new(stale.subscribe());
            let want = ChangeFilter {
                lists: Vec::new(),
                ..want
            };
            let ear = SubscriptionTask::start(plans, want, Some(heard), stale);
            Ok(lists.and(single).only(&told).holding(ear))
        })
    }
}

impl InstructionsProvider for ActiveSnapshot {
    fn instructions(&self, caller: &Caller) -> Option<String> {
        self.plan().instructions.instructions(caller)
    }
}
