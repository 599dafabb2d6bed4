//! The plan in force, as the service that the edges serve. It is swapped whole: a call runs on the plan with which it
//! began, and what comes after the swap runs on the next.

use crate::plan::Plan;
use futures_util::FutureExt;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};
use toolgate::{
    BoxFuture, Call, Caller, Catalog, Changed, Changes, Error, Interest, ItemKind, List, Outcome,
    Service, Stale, edge::Instructs,
};

/// The plan in force.
pub(crate) struct Live {
    plan: watch::Sender<Arc<Plan>>,
    stale: watch::Sender<Stale>,
}

/// Somebody who hears of single resources. Each plan is asked anew what he may hear, and keeps its servers telling.
/// Dropping it ends that.
struct Ear(JoinHandle<()>);

impl Drop for Ear {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Live {
    /// This plan is in force.
    pub(crate) fn new(plan: Plan) -> Live {
        Live {
            plan: watch::Sender::new(Arc::new(plan)),
            stale: watch::Sender::default(),
        }
    }

    /// The plan in force. Whoever keeps it for long keeps its servers from ending.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.borrow().clone()
    }

    /// From now on this plan is in force; who listens is told that all lists are stale.
    pub(crate) fn swap(&self, plan: Plan) {
        let _before = self.plan.send_replace(Arc::new(plan));
    }

    /// Passes on what the servers tell, of one plan after the other, without end.
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
            // What the servers told before the swap, and what they tell after it: the new plan has listened since before.
            let last = heard.as_mut().and_then(|heard| heard.next().now_or_never());
            self.tell(&last.flatten().unwrap_or_default());
            heard = plans.borrow_and_update().heard();
            self.tell(&Changed {
                lists: vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt],
                updated: Vec::new(),
            });
        }
    }

    fn tell(&self, changed: &Changed) {
        self.stale.send_modify(|stale| {
            changed.lists.iter().for_each(|kind| stale.list(*kind));
        });
    }
}

/// The next change; none ever where nobody tells any more.
async fn next(heard: &mut Option<Changes>) -> Changed {
    if let Some(changes) = heard {
        if let Some(changed) = changes.next().await {
            return changed;
        }
        *heard = None;
    }
    std::future::pending().await
}

impl Ear {
    /// Passes on to `stale` what is heard of resources, of one plan after the other.
    fn start(
        mut plans: watch::Receiver<Arc<Plan>>,
        want: Interest,
        mut heard: Option<Changes>,
        stale: watch::Sender<Stale>,
    ) -> Ear {
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
                // The old one is let go after the new one listens, and nobody hears of what he may not see any more.
                let service = plans.borrow_and_update().service.clone();
                let new = service.changes(want.clone()).await.ok();
                let told = new
                    .as_ref()
                    .map(|new| new.told().unwrap_or(&want).uris.clone());
                heard = new;
                // What may have changed in between.
                stale.send_modify(|stale| told.iter().flatten().for_each(|uri| stale.update(uri)));
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "plans come and go while nobody asks; ended with `Ear`"
        )]
        Ear(tokio::spawn(hear))
    }
}

impl Service for Live {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        let plan = self.plan();
        Box::pin(async move { plan.service.list(ask).await })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let plan = self.plan();
        Box::pin(async move { plan.service.call(call).await })
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move {
            // Before anything is asked, so that nothing falls between.
            let (lists, mut plans) = (self.stale.subscribe(), self.plan.subscribe());
            let lists = Changes::new(lists);
            if want.uris.is_empty() {
                return Ok(lists.only(&want));
            }
            let service = plans.borrow_and_update().service.clone();
            let heard = service.changes(want.clone()).await?;
            let told = heard.told().unwrap_or(&want).clone();
            let stale = watch::Sender::new(Stale::default());
            let single = Changes::new(stale.subscribe());
            let want = Interest {
                lists: Vec::new(),
                ..want
            };
            let ear = Ear::start(plans, want, Some(heard), stale);
            Ok(lists.and(single).only(&told).holding(ear))
        })
    }
}

impl Instructs for Live {
    fn instructions(&self, caller: &Caller) -> Option<String> {
        self.plan().instructions.instructions(caller)
    }
}
