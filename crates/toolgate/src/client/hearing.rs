//! Hearing of changes of single resources: a stream of its own since 2026-07-28, a word to the session before.

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

/// How many subscriptions are asked for at once.
const AT_ONCE: usize = 32;

/// Who listens to which resource of a session.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<HashMap<String, Listeners>>>);

#[derive(Default)]
struct Listeners {
    count: usize,
    /// Whether the server was asked to tell, and did not refuse.
    asked: bool,
}

impl Heard {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Listeners>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more listens; whether the server has to be asked.
    fn enter(&self, uri: &str) -> bool {
        let mut all = self.all();
        let listeners = all.entry(uri.to_owned()).or_default();
        listeners.count += 1;
        !std::mem::replace(&mut listeners.asked, true)
    }

    /// One listens no longer; whether the server has to be told that it is enough.
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

    /// The server does not tell: whoever listens next asks again.
    fn refused(&self, uri: &str) {
        if let Some(listeners) = self.all().get_mut(uri) {
            listeners.asked = false;
        }
    }

    /// All that somebody listens to; the server has to be asked for each.
    fn renew(&self) -> Vec<String> {
        let mut all = self.all();
        all.values_mut().for_each(|l| l.asked = true);
        all.keys().cloned().collect()
    }

    /// Asks the server to tell of these, many at once. One that it refuses, or does not answer within that time in all,
    /// is asked for again by the next who listens.
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
                    // Nobody is there who could answer for the others.
                    Err(Failure::Lost { .. }) => return,
                    Err(_) => {}
                }
            }
        };
        // A server that never answers must not hold up whoever listens to others as well.
        let _ = timeout(limit, answers).await;
        if !open.is_empty() {
            let words = "it refused to tell changes of a resource, or did not answer";
            link.notes.say(words);
        }
        open.iter().for_each(|uri| self.refused(uri));
    }
}

/// Asks the next session for what was asked of the one before; dropping it ends that.
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
                // What was told between the sessions was not heard.
                uris.iter().for_each(|uri| link.updated(uri));
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge: sessions end while nobody waits; ended with `Remote`"
        )]
        Renewal(tokio::spawn(renew))
    }
}

/// Somebody listens; dropping it ends that.
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
    /// Listens to these resources. One that the server refuses is never told of.
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
