//! The session with a server that shakes hands. Its id is a secret; nothing prints it.

use super::super::{
    link::{Failure, Link},
    open,
    options::RemoteOptions,
};
use http::HeaderValue;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::{Mutex, watch};

/// Longest id that is taken, in bytes.
const LIMIT: usize = 1024;

/// One session.
#[derive(Clone, Default)]
pub(super) struct Session {
    /// Absent where the server keeps none.
    pub(super) id: Option<HeaderValue>,
    /// Counts the handshakes.
    pub(super) number: u64,
    /// Whether the handshake is over and the session has not ended since.
    pub(super) ready: bool,
}

/// The one session that is in use, and the way to the next.
#[derive(Default)]
pub(super) struct Sessions {
    now: watch::Sender<Session>,
    renewing: Mutex<()>,
}

impl Sessions {
    /// The session in use.
    pub(super) fn now(&self) -> Session {
        self.now.borrow().clone()
    }

    /// Tells of each change.
    pub(super) fn watch(&self) -> watch::Receiver<Session> {
        self.now.subscribe()
    }

    /// The server answered a handshake.
    ///
    /// # Errors
    /// The id is none.
    pub(super) fn begin(&self, id: Option<&HeaderValue>) -> Result<(), Failure> {
        let good = |id: &HeaderValue| {
            id.len() <= LIMIT && id.as_bytes().iter().all(|byte| matches!(byte, 0x21..=0x7e))
        };
        if id.is_some_and(|id| id.is_empty() || !good(id)) {
            return Err(Failure::Malformed("its session id is no plain text"));
        }
        let mut id = id.cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        self.now.send_modify(|session| {
            let number = session.number + 1;
            *session = Session {
                id,
                number,
                ready: false,
            };
        });
        Ok(())
    }

    /// The handshake is over.
    pub(super) fn ready(&self) {
        self.now.send_modify(|session| session.ready = true);
    }

    /// A session that can be used.
    ///
    /// # Errors
    /// There was none, and the new handshake failed.
    pub(super) async fn usable(
        &self,
        link: &Link,
        options: &RemoteOptions,
    ) -> Result<Session, Failure> {
        loop {
            let session = self.now();
            if session.ready {
                return Ok(session);
            }
            let _one = self.renewing.lock().await;
            if self.now().ready {
                continue;
            }
            open::again(link, options)
                .await
                .map_err(|error| Failure::Http {
                    words: format!("ended its session, and a new one cannot be opened: {error}"),
                    status: None,
                    sent: false,
                    no_token: None,
                })?;
            // What it told between the sessions was not heard.
            link.generation.fetch_add(1, Relaxed);
            link.renewed.send_modify(|count| *count += 1);
        }
    }

    /// The server says that this session has ended.
    pub(super) fn ended(&self, number: u64) {
        self.now.send_if_modified(|session| {
            let ours = session.number == number && session.ready;
            if ours {
                session.ready = false;
            }
            ours
        });
    }
}
