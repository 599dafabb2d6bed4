//! Change notifications for one client with a handshake: list changes, resource subscriptions and task status.

use super::{
    ProtocolServer,
    changes::{self, CHANGE_MERGE_WINDOW},
    client_context::ClientContext,
    received_lists::{ReceivedLists, ReportedLists, add_pending},
    responder::{OutgoingFrame, Responder},
};
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{sync::mpsc, task::AbortHandle};
use toolgate_core::{ChangeFilter, ChangeSet, ChangeStream, Error};
use toolgate_protocol::{
    json::Json,
    memory_budget::{COPIES_PER_MESSAGE, MemoryPermit},
    message::{self, RpcError, code},
};

/// Memory that one resource subscription takes up besides its URI, in bytes, over all places that store it.
const SUBSCRIPTION_BYTES: u64 = 512;

/// The notification stream of one client and its subscriptions.
pub(super) struct ChangeNotifier {
    server: Arc<ProtocolServer>,
    client: Arc<ClientContext>,
    /// The lists that the client received.
    pub(super) received_lists: ReceivedLists,
    state: Mutex<SubscriptionState>,
    /// Held while the subscription is replaced, so that concurrent changes take effect in order.
    resubscribe_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct SubscriptionState {
    /// Subscribed resources, sorted, each with its memory permit.
    uris: Vec<(String, MemoryPermit)>,
    stream: Option<NotificationTask>,
}

/// A running notification stream; dropping it ends it.
struct NotificationTask {
    replacements: mpsc::Sender<ChangeStream>,
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
        client: Arc<ClientContext>,
    ) -> Arc<ChangeNotifier> {
        Arc::new(ChangeNotifier {
            server,
            client,
            received_lists: ReceivedLists::default(),
            state: Mutex::default(),
            resubscribe_lock: tokio::sync::Mutex::default(),
        })
    }

    /// Sends notifications on `responder` until it is closed. A second stream replaces the first.
    pub(super) fn start(self: &Arc<Self>, responder: Responder) {
        let (swaps, next) = mpsc::channel(1);
        let mut run = Box::pin(self.clone().run(responder, next));
        // The first poll subscribes before the client's next request, which may cause a change.
        if (&mut run).now_or_never().is_some() {
            return self.close();
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "the server owns the stream of its client and aborts it"
        )]
        let task = tokio::spawn(run).abort_handle();
        self.state().stream = Some(NotificationTask {
            replacements: swaps,
            task,
        });
    }

    /// Ends the notification stream.
    pub(super) fn close(&self) {
        self.state().stream = None;
    }

    /// Subscribes to a resource (`resources/subscribe`). The subscription is active when this returns.
    pub(super) async fn subscribe(&self, uri: String) -> Result<(), RpcError> {
        let mut claim = self.server.budget_scope(&self.client.caller).permit();
        let room = claim.cover_any_size(uri.len() as u64 * COPIES_PER_MESSAGE + SUBSCRIPTION_BYTES);
        room.map_err(|full| RpcError::new(code::INTERNAL_ERROR, full.to_string()))?;
        if !self
            .state()
            .add(uri, claim, self.server.limits.max_subscriptions)
        {
            let most = self.server.limits.max_subscriptions;
            let text = format!(
                "this session has reached its limit of subscriptions ({most}); unsubscribe from some resources"
            );
            return Err(RpcError::new(code::INTERNAL_ERROR, text));
        }
        self.resubscribe().await
    }

    /// Unsubscribes from a resource (`resources/unsubscribe`).
    pub(super) async fn unsubscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.state().remove(uri);
        self.resubscribe().await
    }

    /// Subscribes again with the current URIs. The new subscription begins before the old one ends, so that no change
    /// is missed.
    async fn resubscribe(&self) -> Result<(), RpcError> {
        let _one = self.resubscribe_lock.lock().await;
        let Some(swaps) = self.state().stream.as_ref().map(|s| s.replacements.clone()) else {
            return Ok(());
        };
        let changes = self
            .open_changes()
            .await
            .map_err(|e| super::response::list_error(&e))?;
        // If the stream has ended since, the subscription is no longer needed.
        let _ = swaps.send(changes).await;
        Ok(())
    }

    async fn open_changes(&self) -> Result<ChangeStream, Error> {
        let mut want = ChangeFilter::all_lists(self.client.caller.clone());
        want.uris = self
            .state()
            .uris
            .iter()
            .map(|(uri, _)| uri.clone())
            .collect();
        Ok(self
            .server
            .service
            .changes(want.clone())
            .await?
            .filtered(&want))
    }

    async fn run(self: Arc<Self>, responder: Responder, swaps: mpsc::Receiver<ChangeStream>) {
        tokio::select! {
            () = self.send_changes(&responder, swaps) => {}
            () = self.send_task_status(&responder) => {}
            () = self.server.closed() => {}
            () = responder.closed() => {}
        }
    }

    async fn send_task_status(&self, responder: &Responder) {
        let Some(tasks) = &self.client.session_tasks else {
            return std::future::pending().await;
        };
        let tell = |method, params: Json| async move {
            let text = message::notification(method, Some(&params));
            responder
                .send(OutgoingFrame::BeforeReply(text.into()))
                .await;
        };
        tasks.send_status(self.client.dialect, tell).await
    }

    async fn send_changes(&self, responder: &Responder, mut swaps: mpsc::Receiver<ChangeStream>) {
        let first = {
            let _one = self.resubscribe_lock.lock().await;
            self.open_changes().await
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
                        let mut changed = changes::merge(changed, more);
                        add_pending(&mut pending, std::mem::take(&mut changed.lists));
                        send_notifications(responder, changed).await;
                    }
                    continue;
                }
                lists = self.received_lists.outdated(&self.server, &self.client.caller, &pending, &mut lists), if !pending.is_empty() => {
                    pending.clear();
                    send_notifications(responder, ChangeSet::of_lists(lists)).await;
                    continue;
                }
            };
            let Some(new) = swapped else { return };
            // Changes that the old subscription received and did not yet send.
            let last = changes.next().now_or_never().flatten();
            let mut last = last.unwrap_or_default();
            add_pending(&mut pending, std::mem::take(&mut last.lists));
            send_notifications(responder, last).await;
            (changes, over) = (new, false);
        }
    }

    fn state(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubscriptionState {
    /// Adds a subscription. Returns false at the limit.
    fn add(&mut self, uri: String, claim: MemoryPermit, most: usize) -> bool {
        match self.position(&uri) {
            Ok(at) => self.uris[at].1 = claim,
            Err(_) if self.uris.len() >= most => return false,
            Err(at) => self.uris.insert(at, (uri, claim)),
        }
        true
    }

    fn remove(&mut self, uri: &str) {
        if let Ok(at) = self.position(uri) {
            self.uris.remove(at);
        }
    }

    /// Returns the position of a subscription, or the one at which it belongs.
    fn position(&self, uri: &str) -> Result<usize, usize> {
        self.uris
            .binary_search_by(|(known, _)| known.as_str().cmp(uri))
    }
}

async fn send_notifications(responder: &Responder, changed: ChangeSet) {
    for (method, params) in changes::change_notifications(&changed) {
        let text = message::notification(method, Some(&params.finish()));
        responder
            .send(OutgoingFrame::BeforeReply(text.into()))
            .await;
    }
}
