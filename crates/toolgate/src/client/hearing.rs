//! Hearing of changes of single resources: a stream of its own since 2026-07-28, a word to the session before.

use super::{link::Link, remote::Remote, subscription::Subscription};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::time::timeout;
use toolgate_wire::{
    json::{Json, ObjectWriter},
    method::resources_read::{SUBSCRIBE, UNSUBSCRIBE},
};

/// How many listen to each resource of a session.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<HashMap<String, usize>>>);

impl Heard {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more listens; whether it is the first.
    fn enter(&self, uri: &str) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// One listens no longer; whether it was the last.
    fn leave(&self, uri: &str) -> bool {
        let mut counts = self.counts();
        let Some(count) = counts.get_mut(uri) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            counts.remove(uri);
        }
        last
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
        let link = self.link.clone();
        if self.peer.dialect.stateless {
            let options = &self.options;
            let dialect = self.peer.dialect;
            let stream = Subscription::start(link.clone(), dialect, options, Vec::new(), uris);
            return Hearing {
                link,
                heard: self.heard.clone(),
                uris: Vec::new(),
                _stream: Some(stream),
            };
        }
        let mut hearing = Hearing {
            link,
            heard: self.heard.clone(),
            uris: Vec::new(),
            _stream: None,
        };
        for uri in uris {
            let first = self.heard.enter(&uri);
            hearing.uris.push(uri.clone());
            if first {
                let asked = self
                    .link
                    .request(SUBSCRIBE, super::link::Purpose::List, |_| params(&uri));
                // A server that never answers must not hold up whoever listens to others as well.
                let answered = timeout(self.options.list, asked).await;
                if !matches!(answered, Ok(Ok(_))) {
                    self.link
                        .notes
                        .say("it refused to tell changes of a resource, or did not answer");
                }
            }
        }
        hearing
    }
}

fn params(uri: &str) -> Json {
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.finish()
}
