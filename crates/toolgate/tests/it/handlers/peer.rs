//! The client of the testkit, with every line checked against the official schemas.

use crate::official::{Side, Talk};
use serde_json::{Value, json};
use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex},
};
use toolgate::edge;
use toolgate_testkit as kit;
pub(crate) use toolgate_testkit::{NEWEST_REVISION, REVISIONS};

/// The peer, and every line of the server.
pub(crate) struct Peer(kit::TestClient, Arc<Mutex<Vec<String>>>);

impl Peer {
    pub(crate) async fn open(
        server: &Arc<edge::ProtocolServer>,
        revision: &'static str,
        abilities: Value,
    ) -> Peer {
        let mut talk = Talk::of(Side::Server);
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = heard.clone();
        let watch = move |side: kit::StreamSide, line: &str| match side {
            kit::StreamSide::Testing => talk.heard(line),
            kit::StreamSide::Tested => {
                talk.said(line);
                kept.lock().unwrap().push(line.to_owned());
            }
        };
        let peer =
            kit::TestClient::watched(server, revision, abilities, Some(Box::new(watch))).await;
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

    /// Opens a session and returns the server's result.
    pub(crate) async fn opened(
        server: &Arc<edge::ProtocolServer>,
        revision: &'static str,
    ) -> Value {
        Peer::open(server, revision, json!({}))
            .await
            .0
            .initialize_result()
            .clone()
    }
}

impl Deref for Peer {
    type Target = kit::TestClient;

    fn deref(&self) -> &kit::TestClient {
        &self.0
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut kit::TestClient {
        &mut self.0
    }
}
