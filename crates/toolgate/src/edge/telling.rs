//! Change notifications for one client with a handshake: list changes, resource subscriptions and task status.

use super::{
    ProtocolServer, TaskOffer,
    changes::{self, CHANGE_MERGE_WINDOW},
    given::{ReceivedLists, ReportedLists, add},
    outlet::{OutgoingFrame, Responder},
    tasks::SessionTasks,
};
use futures_util::FutureExt;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::mpsc, task::AbortHandle};
use toolgate_core::{Caller, ChangeFilter, ChangeSet, ChangeStream, Error};
use toolgate_wire::{
    dialect::Dialect,
    json::Json,
    message::{self, RpcError, code},
    method::tasks::TaskForm,
    room::{COPIES_PER_MESSAGE, MemoryPermit},
};

/// Memory that one resource subscription takes up besides its URI, in bytes, over all places that store it.
const SUBSCRIPTION_BYTES: u64 = 512;

/// The notification stream of one client and its subscriptions.
pub(super) struct ChangeNotifier {
    server: Arc<ProtocolServer>,
    caller: Caller,
    dialect: &'static Dialect,
    /// The tasks of the client, if its revision has tasks.
    pub(super) tasks: Option<Arc<SessionTasks>>,
    /// The lists that the client received.
    pub(super) given: ReceivedLists,
    state: Mutex<SubscriptionState>,
    /// Held while the subscription is replaced, so that concurrent changes take effect in order.
    anew: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct SubscriptionState {
    /// Subscribed resources, each with its memory permit.
    uris: BTreeMap<String, MemoryPermit>,
    stream: Option<NotificationTask>,
}

/// A running notification stream; dropping it ends it.
struct NotificationTask {
    swaps: mpsc::Sender<ChangeStream>,
    task: AbortHandle,
}

impl Drop for NotificationTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChangeNotifier {
    pub(super) fn new(
        server: Arc<ProtocolServer>,
        caller: Caller,
        dialect: &'static Dialect,
    ) -> Arc<ChangeNotifier> {
        let has_tasks = server.offers.tasks != TaskOffer::None && dialect.tasks == TaskForm::Core;
        Arc::new(ChangeNotifier {
            server,
            caller,
            dialect,
            tasks: has_tasks.then(Arc::default),
            given: ReceivedLists::default(),
            state: Mutex::default(),
            anew: tokio::sync::Mutex::default(),
        })
    }

    /// Sends notifications on `outlet` until it is closed. A second stream replaces the first.
    pub(super) fn start(self: &Arc<Self>, outlet: Responder) {
        let (swaps, next) = mpsc::channel(1);
        let mut run = Box::pin(self.clone().run(outlet, next));
        // The first poll subscribes before the client's next request, which may cause a change.
        if (&mut run).now_or_never().is_some() {
            return self.close();
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "the server owns the stream of its client and aborts it"
        )]
        let task = tokio::spawn(run).abort_handle();
        self.state().stream = Some(NotificationTask { swaps, task });
    }

    /// Ends the notification stream.
    pub(super) fn close(&self) {
        self.state().stream = None;
    }

    /// Subscribes to a resource (`resources/subscribe`). The subscription is active when this returns.
    pub(super) async fn hear(&self, uri: String) -> Result<(), RpcError> {
        let mut claim = self.server.account(&self.caller).claim();
        let room = claim.count(uri.len() as u64 * COPIES_PER_MESSAGE + SUBSCRIPTION_BYTES);
        room.map_err(|full| RpcError::new(code::INTERNAL_ERROR, full.to_string()))?;
        if !self.state().enter(uri, claim, self.server.limits.uris) {
            let most = self.server.limits.uris;
            let text = format!(
                "one session may subscribe to at most {most} resources; unsubscribe from some"
            );
            return Err(RpcError::new(code::INTERNAL_ERROR, text));
        }
        self.listen_anew().await
    }

    /// Unsubscribes from a resource (`resources/unsubscribe`).
    pub(super) async fn forget(&self, uri: &str) -> Result<(), RpcError> {
        self.state().uris.remove(uri);
        self.listen_anew().await
    }

    /// Subscribes again with the current URIs. The new subscription begins before the old one ends, so that no change
    /// is missed.
    async fn listen_anew(&self) -> Result<(), RpcError> {
        let _one = self.anew.lock().await;
        let Some(swaps) = self.state().stream.as_ref().map(|s| s.swaps.clone()) else {
            return Ok(());
        };
        let changes = self
            .changes()
            .await
            .map_err(|e| super::answer::list_failed(&e))?;
        // If the stream has ended since, the subscription is no longer needed.
        let _ = swaps.send(changes).await;
        Ok(())
    }

    async fn changes(&self) -> Result<ChangeStream, Error> {
        let want = ChangeFilter {
            uris: self.state().uris.keys().cloned().collect(),
            ..ChangeFilter::lists(self.caller.clone())
        };
        Ok(self.server.service.changes(want.clone()).await?.only(&want))
    }

    async fn run(self: Arc<Self>, outlet: Responder, swaps: mpsc::Receiver<ChangeStream>) {
        tokio::select! {
            () = self.tell(&outlet, swaps) => {}
            () = self.tell_tasks(&outlet) => {}
            () = self.server.closed() => {}
            () = outlet.closed() => {}
        }
    }

    async fn tell_tasks(&self, outlet: &Responder) {
        let Some(tasks) = &self.tasks else {
            return std::future::pending().await;
        };
        let tell = |method, params: Json| async move {
            let text = message::notification(method, Some(&params));
            outlet.send(OutgoingFrame::Before(text.into())).await;
        };
        tasks.tell(self.dialect, tell).await
    }

    async fn tell(&self, outlet: &Responder, mut swaps: mpsc::Receiver<ChangeStream>) {
        let first = {
            let _one = self.anew.lock().await;
            self.changes().await
        };
        let Ok(mut changes) = first else { return };
        let (mut over, mut pending, mut lists) = (false, Vec::new(), ReportedLists::default());
        loop {
            let swapped = tokio::select! {
                new = swaps.recv() => new,
                changed = changes.next(), if !over => {
                    over = changed.is_none();
                    if let Some(changed) = changed {
                        tokio::time::sleep(CHANGE_MERGE_WINDOW).await;
                        let more = changes.next().now_or_never().flatten();
                        let mut changed = changes::together(changed, more);
                        add(&mut pending, std::mem::take(&mut changed.lists));
                        told(outlet, changed).await;
                    }
                    continue;
                }
                lists = self.given.outdated(&self.server, &self.caller, &pending, &mut lists), if !pending.is_empty() => {
                    pending.clear();
                    told(outlet, ChangeSet { lists, updated: Vec::new() }).await;
                    continue;
                }
            };
            let Some(new) = swapped else { return };
            // Changes that the old subscription received and did not yet send.
            let last = changes.next().now_or_never().flatten();
            let mut last = last.unwrap_or_default();
            add(&mut pending, std::mem::take(&mut last.lists));
            told(outlet, last).await;
            (changes, over) = (new, false);
        }
    }

    fn state(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubscriptionState {
    /// Adds a subscription. Returns false at the limit.
    fn enter(&mut self, uri: String, claim: MemoryPermit, most: usize) -> bool {
        let fits = self.uris.len() < most || self.uris.contains_key(&uri);
        if fits {
            self.uris.insert(uri, claim);
        }
        fits
    }
}

async fn told(outlet: &Responder, changed: ChangeSet) {
    for (method, params) in changes::told(&changed) {
        let text = message::notification(method, Some(&params.finish()));
        outlet.send(OutgoingFrame::Before(text.into())).await;
    }
}
