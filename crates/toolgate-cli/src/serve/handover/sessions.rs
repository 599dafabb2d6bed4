//! Sessions of the revisions with a handshake, which a successor continues.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};
use toolgate::{Error, edge::http::SessionStore};
use toolgate_core::BoxFuture;

/// Digest of the id of a session, and its record.
pub(super) type StoredSession = (String, String);

/// Time for which a request waits for the record of its session, which the predecessor may just send.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of sessions that wait to be sent to a successor.
const MAX_QUEUED_SESSIONS: usize = 1024;

/// Sessions that a predecessor opened and that no client used here yet. A session in use is in the memory of the
/// endpoint, which also hands it over.
#[derive(Default)]
pub(crate) struct TransferredSessions {
    records: Mutex<HashMap<String, String>>,
    arrived: Notify,
    /// True while a predecessor may send more sessions.
    arriving: AtomicBool,
    /// Channel to the successor that accepts the connections now.
    successor: Mutex<Option<mpsc::Sender<StoredSession>>>,
}

impl TransferredSessions {
    fn records(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn successor(&self) -> MutexGuard<'_, Option<mpsc::Sender<StoredSession>>> {
        self.successor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether a predecessor may send more sessions.
    pub(super) fn set_arriving(&self, arriving: bool) {
        self.arriving.store(arriving, Relaxed);
        self.arrived.notify_waiters();
    }

    /// Adds a session of the predecessor.
    pub(super) fn add(&self, (key, record): StoredSession) {
        self.records().insert(key, record);
        self.arrived.notify_waiters();
    }

    /// Returns the sessions that no client used here yet.
    pub(super) fn unused(&self) -> Vec<StoredSession> {
        let records = self.records();
        let records = records.iter();
        records
            .map(|(key, record)| (key.clone(), record.clone()))
            .collect()
    }

    /// Returns the sessions that clients open from now on, on connections that are still open here.
    pub(super) fn send_new(&self) -> mpsc::Receiver<StoredSession> {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_SESSIONS);
        *self.successor() = Some(sender);
        receiver
    }

    /// Waits until a session arrives, or no more can.
    async fn arrival(&self, key: &str) {
        while self.arriving.load(Relaxed) {
            let next = self.arrived.notified();
            if self.records().contains_key(key) {
                return;
            }
            next.await;
        }
    }
}

impl SessionStore for TransferredSessions {
    fn save(&self, key: String, record: String) -> BoxFuture<'_, Result<(), Error>> {
        // It is in use here now.
        self.records().remove(&key);
        let successor = self.successor().clone();
        Box::pin(async move {
            if let Some(successor) = successor {
                // If the successor has ended, the client opens a new session.
                let _ = successor.send((key, record)).await;
            }
            Ok(())
        })
    }

    fn load(&self, key: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let _ = timeout(ARRIVAL_TIMEOUT, self.arrival(&key)).await;
            Ok(self.records().get(&key).cloned())
        })
    }

    fn remove(&self, key: &str) {
        self.records().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_waits_for_its_record_only_while_more_can_arrive() {
        let sessions = TransferredSessions::default();
        assert_eq!(sessions.load("a".to_owned()).await.unwrap(), None);
        sessions.set_arriving(true);
        let add = async { sessions.add(("a".to_owned(), "record".to_owned())) };
        let (loaded, ()) = tokio::join!(sessions.load("a".to_owned()), add);
        assert_eq!(loaded.unwrap().as_deref(), Some("record"));
        // Another caller may have asked, so it stays until its owner uses it.
        assert_eq!(sessions.unused().len(), 1);
        sessions
            .save("a".to_owned(), "newer".to_owned())
            .await
            .unwrap();
        assert!(sessions.unused().is_empty());
    }

    #[tokio::test]
    async fn a_session_that_opens_after_the_handover_goes_to_the_successor() {
        let sessions = TransferredSessions::default();
        sessions.save("a".to_owned(), "1".to_owned()).await.unwrap();
        let mut sent = sessions.send_new();
        sessions.save("b".to_owned(), "2".to_owned()).await.unwrap();
        assert_eq!(sent.try_recv().unwrap(), ("b".to_owned(), "2".to_owned()));
        assert!(sent.try_recv().is_err());
    }
}
