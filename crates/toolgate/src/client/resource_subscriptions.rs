//! Subscriptions to single resources: a notification stream since 2026-07-28, `resources/subscribe` before.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    remote::RemoteServer,
    subscription::ChangeSubscription,
};
use futures_util::{StreamExt, stream};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    method::resources_read::{SUBSCRIBE, UNSUBSCRIBE},
};

/// Maximum number of concurrent subscribe requests.
const MAX_CONCURRENT_SUBSCRIBES: usize = 32;

/// Reference counts of the resource subscriptions of a session.
#[derive(Clone, Default)]
pub(super) struct SubscriptionCounts(Arc<Mutex<HashMap<String, ResourceListeners>>>);

#[derive(Default)]
struct ResourceListeners {
    count: usize,
    /// True if the server was asked to subscribe, and did not refuse.
    subscribed: bool,
}

impl SubscriptionCounts {
    fn all(&self) -> MutexGuard<'_, HashMap<String, ResourceListeners>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener. Returns whether a subscribe request must be sent.
    fn add_listener(&self, uri: &str) -> bool {
        let mut all = self.all();
        let listeners = all.entry(uri.to_owned()).or_default();
        listeners.count += 1;
        !std::mem::replace(&mut listeners.subscribed, true)
    }

    /// Removes a listener. Returns whether an unsubscribe request must be sent.
    fn remove_listener(&self, uri: &str) -> bool {
        let mut all = self.all();
        let Some(listeners) = all.get_mut(uri) else {
            return false;
        };
        listeners.count -= 1;
        if listeners.count > 0 {
            return false;
        }
        let told = listeners.subscribed;
        all.remove(uri);
        told
    }

    /// Records that the server refused: the next listener asks again.
    fn mark_refused(&self, uri: &str) {
        if let Some(listeners) = self.all().get_mut(uri) {
            listeners.subscribed = false;
        }
    }

    /// Returns all URIs with listeners and marks them as subscribed, for a new session.
    fn take_for_renewal(&self) -> Vec<String> {
        let mut all = self.all();
        all.values_mut().for_each(|l| l.subscribed = true);
        all.keys().cloned().collect()
    }

    /// Sends subscribe requests concurrently, within `limit` in total. The next listener repeats those that fail or get
    /// no answer.
    async fn subscribe(&self, link: &ServerConnection, uris: Vec<String>, limit: Duration) {
        let mut open: HashSet<String> = uris.iter().cloned().collect();
        let all = open.len();
        let asked = stream::iter(uris).map(|uri| async {
            let answer = link.request(SUBSCRIBE, RequestPurpose::List, |_| params(&uri));
            let answer = answer.await;
            (uri, answer)
        });
        let mut asked = std::pin::pin!(asked.buffer_unordered(MAX_CONCURRENT_SUBSCRIBES));
        let answers = async {
            while let Some((uri, answer)) = asked.next().await {
                match answer {
                    Ok(_) => drop(open.remove(&uri)),
                    // The connection is lost, so no other request can succeed.
                    Err(RequestFailure::ConnectionLost { .. }) => return,
                    Err(_) => {}
                }
            }
        };
        // A server that never answers must not block listeners to other resources.
        let _ = timeout(limit, answers).await;
        if !open.is_empty() {
            link.notes.record(format!(
                "it refused or did not answer {} of {all} resource subscriptions, so changes to those resources are not reported",
                open.len()
            ));
        }
        open.iter().for_each(|uri| self.mark_refused(uri));
    }
}

/// Task that renews the subscriptions in each new session; aborted on drop.
pub(super) struct SubscriptionRenewal(JoinHandle<()>);

impl Drop for SubscriptionRenewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SubscriptionRenewal {
    pub(super) fn start(
        link: Arc<ServerConnection>,
        heard: SubscriptionCounts,
        limit: Duration,
    ) -> SubscriptionRenewal {
        let mut renewed = link.renewals.subscribe();
        let renew = async move {
            while renewed.changed().await.is_ok() {
                let uris = heard.take_for_renewal();
                heard.subscribe(&link, uris.clone(), limit).await;
                // Changes between the two sessions were not reported.
                uris.iter().for_each(|uri| link.mark_resource_updated(uri));
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "renews sessions in the background; aborted on drop"
        )]
        SubscriptionRenewal(tokio::spawn(renew))
    }
}

/// Listener to resources; dropping it ends its subscriptions.
pub(super) struct ResourceListener {
    link: Arc<ServerConnection>,
    heard: SubscriptionCounts,
    uris: Vec<String>,
    _stream: Option<ChangeSubscription>,
}

impl Drop for ResourceListener {
    fn drop(&mut self) {
        for uri in &self.uris {
            if self.heard.remove_listener(uri) {
                self.link.send_and_forget(UNSUBSCRIBE, &params(uri));
            }
        }
    }
}

impl RemoteServer {
    /// Subscribes to resources. No change is reported for a resource that the server refuses.
    pub(super) async fn subscribe_resources(&self, uris: Vec<String>) -> ResourceListener {
        let mut listener = ResourceListener {
            link: self.link.clone(),
            heard: self.subscription_counts.clone(),
            uris: Vec::new(),
            _stream: None,
        };
        if self.peer.dialect.subscription_streams {
            let (link, dialect) = (self.link.clone(), self.peer.dialect);
            let stream = ChangeSubscription::start(link, dialect, &self.options, Vec::new(), uris);
            stream.wait_for_answer(self.options.list_timeout).await;
            listener._stream = Some(stream);
            return listener;
        }
        let mut new = Vec::new();
        for uri in uris {
            if self.subscription_counts.add_listener(&uri) {
                new.push(uri.clone());
            }
            listener.uris.push(uri);
        }
        self.subscription_counts
            .subscribe(&self.link, new, self.options.list_timeout)
            .await;
        listener
    }
}

fn params(uri: &str) -> Json {
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.finish()
}
