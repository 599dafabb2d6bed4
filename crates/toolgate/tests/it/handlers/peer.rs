//! The client of the testkit, with every line checked against the official schemas.

use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex},
};
use toolgate::edge;
use toolgate_testkit as kit;
pub(crate) use toolgate_testkit::{MODERN, REVISIONS};

/// The peer, and every line of the server.
pub(crate) struct Peer(kit::Peer, Arc<Mutex<Vec<String>>>);

impl Peer {
    pub(crate) async fn open(
        server: &Arc<edge::Front>,
        revision: &'static str,
        abilities: Value,
    ) -> Peer {
        let mut talk = Talk::of(Side::Server);
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = heard.clone();
        let watch = move |side: kit::Side, line: &str| match side {
            kit::Side::Testing => talk.heard(line),
            kit::Side::Tested => {
                talk.said(line);
                kept.lock().unwrap().push(line.to_owned());
            }
        };
        let peer = kit::Peer::watched(server, revision, abilities, Some(Box::new(watch))).await;
        Peer(peer, heard)
    }

    /// All that the server said.
    pub(crate) fn heard(self) -> Vec<Value> {
        let texts = self.texts().into_iter();
        texts
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }

    /// The same, as it was written.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }

    /// What the server said when the session was opened.
    pub(crate) async fn opened(server: &Arc<edge::Front>, revision: &'static str) -> Value {
        Peer::open(server, revision, json!({}))
            .await
            .0
            .opened()
            .clone()
    }
}

impl Deref for Peer {
    type Target = kit::Peer;

    fn deref(&self) -> &kit::Peer {
        &self.0
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut kit::Peer {
        &mut self.0
    }
}
