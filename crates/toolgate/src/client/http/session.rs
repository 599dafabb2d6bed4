//! HTTP session of a legacy server. The session id is a secret and never printed.

use super::super::{
    connection::{RequestFailure, ServerConnection},
    negotiate,
    options::RemoteOptions,
};
use http::HeaderValue;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::{Mutex, watch};

/// Maximum length of a session id, in bytes.
const MAX_SESSION_ID_BYTES: usize = 1024;

/// HTTP session.
#[derive(Clone, Default)]
pub(super) struct ClientHttpSession {
    /// Session id; absent if the server keeps no sessions.
    pub(super) id: Option<HeaderValue>,
    /// Number of the handshake.
    pub(super) number: u64,
    /// True if the handshake is complete and the session has not ended since.
    pub(super) ready: bool,
}

/// Current session, and its renewal.
#[derive(Default)]
pub(super) struct ClientHttpSessions {
    current: watch::Sender<ClientHttpSession>,
    renewing: Mutex<()>,
}

impl ClientHttpSessions {
    /// Returns the current session.
    pub(super) fn current(&self) -> ClientHttpSession {
        self.current.borrow().clone()
    }

    /// Returns a receiver of session changes.
    pub(super) fn watch(&self) -> watch::Receiver<ClientHttpSession> {
        self.current.subscribe()
    }

    /// Records the answer to a handshake.
    ///
    /// # Errors
    /// The session id is invalid.
    pub(super) fn begin(&self, id: Option<&HeaderValue>) -> Result<(), RequestFailure> {
        let good = |id: &HeaderValue| {
            id.len() <= MAX_SESSION_ID_BYTES
                && id.as_bytes().iter().all(|byte| matches!(byte, 0x21..=0x7e))
        };
        if id.is_some_and(|id| id.is_empty() || !good(id)) {
            return Err(RequestFailure::Malformed(
                "its session id is empty, too long, or not visible ASCII",
            ));
        }
        let mut id = id.cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        self.current.send_modify(|session| {
            let number = session.number + 1;
            *session = ClientHttpSession {
                id,
                number,
                ready: false,
            };
        });
        Ok(())
    }

    /// Marks the handshake as complete.
    pub(super) fn mark_ready(&self) {
        self.current.send_modify(|session| session.ready = true);
    }

    /// Returns a usable session. Renews it if it ended; concurrent callers share one handshake.
    ///
    /// # Errors
    /// The new handshake failed.
    pub(super) async fn usable(
        &self,
        link: &ServerConnection,
        options: &RemoteOptions,
    ) -> Result<ClientHttpSession, RequestFailure> {
        loop {
            let session = self.current();
            if session.ready {
                return Ok(session);
            }
            let _one = self.renewing.lock().await;
            if self.current().ready {
                continue;
            }
            // Boxed, so that the future of a call is small.
            Box::pin(negotiate::repeat_handshake(link, options))
                .await
                .map_err(|error| RequestFailure::Http {
                    words: format!("ended its session, and a new one cannot be opened: {error}"),
                    status: None,
                    sent: false,
                    no_token: None,
                })?;
            // Changes between the sessions were not reported.
            link.generation.fetch_add(1, Relaxed);
            link.renewals.send_modify(|count| *count += 1);
        }
    }

    /// Marks that session as ended.
    pub(super) fn mark_ended(&self, number: u64) {
        self.current.send_if_modified(|session| {
            let ours = session.number == number && session.ready;
            if ours {
                session.ready = false;
            }
            ours
        });
    }
}
