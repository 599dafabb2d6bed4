//! Subscriptions to single resources: a notification stream since 2026-07-28, `resources/subscribe` before.

use super::{
    link::{Failure, Link, Purpose},
    remote::Remote,
    subscription::Subscription,
};
use futures_util::{StreamExt, stream};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    method::resources_read::{SUBSCRIBE, UNSUBSCRIBE},
};

/// Maximum number of concurrent subscribe requests.
const AT_ONCE: usize = 32;

/// Reference counts of the resource subscriptions of a session.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<HashMap<String, Listeners>>>);

#[derive(Default)]
struct Listeners {
    count: usize,
    /// True if the server was asked to subscribe, and did not refuse.
    asked: bool,
}

impl Heard {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Listeners>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener. Returns whether a subscribe request must be sent.
    fn enter(&self, uri: &str) -> bool {
        let mut all = self.all();
        let listeners = all.entry(uri.to_owned()).or_default();
        listeners.count += 1;
        !std::mem::replace(&mut listeners.asked, true)
    }

    /// Removes a listener. Returns whether an unsubscribe request must be sent.
    fn leave(&self, uri: &str) -> bool {
        let mut all = self.all();
        let Some(listeners) = all.get_mut(uri) else {
            return false;
        };
        listeners.count -= 1;
        if listeners.count > 0 {
            return false;
        }
        let told = listeners.asked;
        all.remove(uri);
        told
    }

    /// Records that the server refused: the next listener asks again.
    fn refused(&self, uri: &str) {
        if let Some(listeners) = self.all().get_mut(uri) {
            listeners.asked = false;
        }
    }

    /// Returns all URIs with listeners and marks them as subscribed, for a new session.
    fn renew(&self) -> Vec<String> {
        let mut all = self.all();
        all.values_mut().for_each(|l| l.asked = true);
        all.keys().cloned().collect()
    }

    /// Sends subscribe requests concurrently, within `limit` in total. The next listener repeats those that fail or get
    /// no answer.
    async fn ask(&self, link: &Link, uris: Vec<String>, limit: Duration) {
        let mut open: HashSet<String> = uris.iter().cloned().collect();
        let asked = stream::iter(uris).map(|uri| async {
            let answer = link.request(SUBSCRIBE, Purpose::List, |_| params(&uri));
            let answer = answer.await;
            (uri, answer)
        });
        let mut asked = std::pin::pin!(asked.buffer_unordered(AT_ONCE));
        let answers = async {
            while let Some((uri, answer)) = asked.next().await {
                match answer {
                    Ok(_) => drop(open.remove(&uri)),
                    // The connection is lost, so no other request can succeed.
                    Err(Failure::Lost { .. }) => return,
                    Err(_) => {}
                }
            }
        };
        // A server that never answers must not block listeners to other resources.
        let _ = timeout(limit, answers).await;
        if !open.is_empty() {
            let words = "it refused a resource subscription, or did not answer";
            link.notes.say(words);
        }
        open.iter().for_each(|uri| self.refused(uri));
    }
}

/// Task that renews the subscriptions in each new session; aborted on drop.
pub(super) struct Renewal(JoinHandle<()>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Renewal {
    pub(super) fn start(link: Arc<Link>, heard: Heard, limit: Duration) -> Renewal {
        let mut renewed = link.renewed.subscribe();
        let renew = async move {
            while renewed.changed().await.is_ok() {
                let uris = heard.renew();
                heard.ask(&link, uris.clone(), limit).await;
                // Changes between the two sessions were not reported.
                uris.iter().for_each(|uri| link.updated(uri));
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "renews sessions in the background; aborted on drop"
        )]
        Renewal(tokio::spawn(renew))
    }
}

/// Listener to resources; dropping it ends its subscriptions.
pub(super) struct Hearing {
    link: Arc<Link>,
    heard: Heard,
    uris: Vec<String>,
    _stream: Option<Subscription>,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        for uri in &self.uris {
            if self.heard.leave(uri) {
                self.link.ask_no_more(UNSUBSCRIBE, &params(uri));
            }
        }
    }
}

impl Remote {
    /// Subscribes to resources. No change is reported for a resource that the server refuses.
    pub(super) async fn hear_of(&self, uris: Vec<String>) -> Hearing {
        let mut hearing = Hearing {
            link: self.link.clone(),
            heard: self.heard.clone(),
            uris: Vec::new(),
            _stream: None,
        };
        if self.peer.dialect.stateless {
            let (link, dialect) = (self.link.clone(), self.peer.dialect);
            let stream = Subscription::start(link, dialect, &self.options, Vec::new(), uris);
            stream.answered(self.options.list).await;
            hearing._stream = Some(stream);
            return hearing;
        }
        let mut new = Vec::new();
        for uri in uris {
            if self.heard.enter(&uri) {
                new.push(uri.clone());
            }
            hearing.uris.push(uri);
        }
        self.heard.ask(&self.link, new, self.options.list).await;
        hearing
    }
}

fn params(uri: &str) -> Json {
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.finish()
}
