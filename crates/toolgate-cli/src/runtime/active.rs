//! Active snapshot of the config, as the service behind all edges.
//!
//! A reload swaps the whole snapshot. A call runs on the snapshot with which it began.

use crate::runtime::snapshot::ConfigSnapshot;
use futures_util::FutureExt;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};
use toolgate::edge::InstructionsProvider;
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeCounters, ChangeFilter, ChangeSet, ChangeStream, Error,
    ItemKind, ListRequest, Outcome, Service,
};

/// Service that delegates to the active [`ConfigSnapshot`].
pub(crate) struct ActiveSnapshot {
    snapshot: watch::Sender<Arc<ConfigSnapshot>>,
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
            snapshot: watch::Sender::new(Arc::new(plan)),
            stale: watch::Sender::default(),
        }
    }

    /// Returns the active snapshot. Its servers run for as long as it is held.
    pub(crate) fn snapshot(&self) -> Arc<ConfigSnapshot> {
        self.snapshot.borrow().clone()
    }

    /// Returns a receiver that changes when another snapshot becomes active.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<ConfigSnapshot>> {
        self.snapshot.subscribe()
    }

    /// Activates a snapshot. Subscribers are notified that all lists are stale.
    pub(crate) fn activate(&self, plan: ConfigSnapshot) {
        let _before = self.snapshot.send_replace(Arc::new(plan));
    }

    /// Forwards list changes from the servers, across reloads, without end.
    pub(crate) async fn forward_changes(&self) {
        let mut plans = self.snapshot.subscribe();
        let mut heard = plans.borrow_and_update().take_changes();
        loop {
            loop {
                tokio::select! {
                    changed = next_change(&mut heard) => self.mark_stale(&changed),
                    swapped = plans.changed() => match swapped {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                }
            }
            // Drain the changes from before the swap. The new snapshot has subscribed before the swap, so none is
            // lost.
            let last = heard.as_mut().and_then(|heard| heard.next().now_or_never());
            self.mark_stale(&last.flatten().unwrap_or_default());
            heard = plans.borrow_and_update().take_changes();
            self.mark_stale(&ChangeSet::of_lists(vec![
                ItemKind::Tool,
                ItemKind::Resource,
                ItemKind::Prompt,
            ]));
        }
    }

    fn mark_stale(&self, changed: &ChangeSet) {
        self.stale.send_modify(|stale| {
            changed
                .lists
                .iter()
                .for_each(|kind| stale.count_list_change(*kind));
        });
    }
}

/// Waits for the next change; never resolves once the stream has ended.
async fn next_change(heard: &mut Option<ChangeStream>) -> ChangeSet {
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
                    changed = next_change(&mut heard) => {
                        let uris = changed.updated;
                        stale.send_modify(|stale| uris.iter().for_each(|uri| stale.count_update(uri)));
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
                    .map(|new| new.filter().unwrap_or(&want).uris.clone());
                heard = new;
                // These resources may have changed in between.
                stale.send_modify(|stale| {
                    told.iter()
                        .flatten()
                        .for_each(|uri| stale.count_update(uri))
                });
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
        let plan = self.snapshot();
        Box::pin(async move { plan.service.list(ask).await })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let plan = self.snapshot();
        Box::pin(async move { plan.service.call(call).await })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async move {
            // Subscribe before the service is asked, so that no change is lost.
            let (lists, mut plans) = (self.stale.subscribe(), self.snapshot.subscribe());
            let lists = ChangeStream::new(lists);
            if want.uris.is_empty() {
                return Ok(lists.filtered(&want));
            }
            let service = plans.borrow_and_update().service.clone();
            let heard = service.changes(want.clone()).await?;
            let told = heard.filter().unwrap_or(&want).clone();
            let stale = watch::Sender::new(ChangeCounters::default());
            let single = ChangeStream::new(stale.subscribe());
            let mut want = want;
            want.lists = Vec::new();
            let ear = SubscriptionTask::start(plans, want, Some(heard), stale);
            Ok(lists.merged_with(single).filtered(&told).keep_alive(ear))
        })
    }
}

impl InstructionsProvider for ActiveSnapshot {
    fn instructions(&self, caller: &Caller) -> Option<String> {
        self.snapshot().instructions.instructions(caller)
    }
}
