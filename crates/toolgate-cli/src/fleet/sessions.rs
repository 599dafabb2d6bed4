//! Sessions of all gateways. The id of a session names its home; the store has what another gateway needs to continue it.

use super::members::FleetMembers;
use crate::timestamp::millis;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use toolgate::{Error, edge::http::SessionStore};
use toolgate_core::BoxFuture;
use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};
use toolgate_protocol::hex;

/// Table of the sessions.
const SESSIONS_TABLE: &str = "sessions";
/// Interval at which expired sessions are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of attempts to continue a session here, while another gateway may be faster.
const MAX_ADOPTIONS: usize = 20;
/// Interval of these attempts.
const ADOPTION_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum interval between reads of the store for unknown sessions. It bounds them, as a client can make up ids.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(100);

/// Place where a request of a session is answered.
pub(crate) enum SessionRoute {
    /// This gateway.
    Local,
    /// Another gateway.
    Forward {
        /// Tag of its process.
        tag: String,
        /// Address at which it is reached.
        address: String,
    },
}

/// Sessions of all gateways of a shared store.
pub(crate) struct FleetSessions {
    store: Arc<dyn StateStore>,
    members: Arc<FleetMembers>,
    max_age: Duration,
    /// Sessions that ended here, until the store no longer has them.
    ended: Mutex<HashSet<String>>,
    /// Time at which the last read of the store for an unknown session began. The lock is held during the read.
    last_read: tokio::sync::Mutex<Option<Instant>>,
}

impl FleetSessions {
    /// Creates the table of sessions, which live for at most this time.
    pub(crate) fn new(
        store: Arc<dyn StateStore>,
        members: Arc<FleetMembers>,
        max_age: Duration,
    ) -> FleetSessions {
        FleetSessions {
            store,
            members,
            max_age,
            ended: Mutex::default(),
            last_read: tokio::sync::Mutex::default(),
        }
    }

    fn ended(&self) -> MutexGuard<'_, HashSet<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tag of the home of a session.
    fn home(&self, id: &str) -> Option<String> {
        let (_, tag) = id.rsplit_once('.')?;
        let row = self.store.row(SESSIONS_TABLE, &storage_key(id));
        let moved = row.as_ref().and_then(|row| row.value["home"].as_str());
        Some(moved.unwrap_or(tag).to_owned())
    }

    /// Returns the home of a session: this gateway, or another one that lives. A session whose home ended, or hands
    /// over to this gateway, continues here, if the store has it.
    pub(crate) async fn route(&self, id: &str) -> SessionRoute {
        for _ in 0..MAX_ADOPTIONS {
            let Some(tag) = self.home(id).filter(|home| home != self.members.tag()) else {
                return SessionRoute::Local;
            };
            match self.members.find(&tag) {
                Some(home) if !self.members.has_address_of(&home) => {
                    // Without an address, the session is not found here, as the specification says.
                    return match home.advertise {
                        Some(address) => SessionRoute::Forward { tag, address },
                        None => SessionRoute::Local,
                    };
                }
                _ if self.read_if_unknown(id).await => {}
                _ if self.become_home(id).await => return SessionRoute::Local,
                // Another gateway was faster. Soon the store says which.
                _ => tokio::time::sleep(ADOPTION_INTERVAL).await,
            }
        }
        SessionRoute::Local
    }

    /// Makes this gateway the home of a session of its predecessor, whose address it has: other gateways may not know
    /// yet that the predecessor ends.
    pub(crate) async fn adopt_from_predecessor(&self, id: &str) {
        let home = self.home(id).filter(|home| home != self.members.tag());
        let home = home.map(|home| self.members.find(&home));
        if home.is_some_and(|home| home.is_none_or(|home| self.members.has_address_of(&home))) {
            self.adopt(id).await;
        }
    }

    /// Makes this gateway the home of a session whose home is gone. Returns false if another gateway was faster.
    pub(crate) async fn adopt(&self, id: &str) -> bool {
        self.read_if_unknown(id).await;
        self.become_home(id).await
    }

    /// Makes this gateway the home of a session that it knows. Returns false if another gateway was faster.
    async fn become_home(&self, id: &str) -> bool {
        let key = storage_key(id);
        let Some(row) = self.store.row(SESSIONS_TABLE, &key) else {
            // Then it has ended, and no gateway finds it.
            return true;
        };
        let mut value = row.value;
        value["home"] = json!(self.members.tag());
        let expect = WritePrecondition::Version(row.version);
        let adopted = self.store.write(SESSIONS_TABLE, &key, Some(value), expect);
        let adopted = matches!(adopted.await, Ok(WriteOutcome::Done(_)));
        if !adopted {
            tracing::debug!("a session was not taken over");
        }
        adopted
    }

    /// Reads the changes that other gateways have stored, if this gateway does not know the session: another gateway may
    /// have opened it a moment ago. Returns true if this gateway knows the session only now.
    async fn read_if_unknown(&self, id: &str) -> bool {
        let key = storage_key(id);
        let is_known = || self.store.row(SESSIONS_TABLE, &key).is_some();
        if is_known() {
            return false;
        }
        let asked = Instant::now();
        let mut last_read = self.last_read.lock().await;
        if last_read.is_none_or(|began| began < asked) {
            if let Some(began) = *last_read {
                tokio::time::sleep_until(began + MIN_READ_INTERVAL).await;
            }
            *last_read = Some(Instant::now());
            // No row has this version, so the write changes nothing. But the store reads all earlier changes for it.
            let never = WritePrecondition::Version(0);
            let _ = self.store.write(SESSIONS_TABLE, &key, None, never).await;
        }
        is_known()
    }

    /// Removes expired sessions from time to time. Never returns.
    pub(crate) async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let now = unix_seconds(self.store.clock().now());
            let is_stored = |key: &String| self.store.row(SESSIONS_TABLE, key).is_some();
            self.ended().retain(is_stored);
            for row in self.store.entries(SESSIONS_TABLE) {
                if row.value["until"].as_u64().is_none_or(|until| until < now) {
                    let expect = WritePrecondition::Version(row.version);
                    let _ = self
                        .store
                        .write(SESSIONS_TABLE, &row.key, None, expect)
                        .await;
                }
            }
        }
    }
}

impl SessionStore for FleetSessions {
    fn save(&self, key: String, record: String) -> BoxFuture<'_, Result<(), Error>> {
        let until = unix_seconds(self.store.clock().now() + self.max_age);
        let row = json!({"home": self.members.tag(), "record": record, "until": until});
        let written = self
            .store
            .write(SESSIONS_TABLE, &key, Some(row), WritePrecondition::Any);
        Box::pin(async move { written.await.map(drop) })
    }

    fn load(&self, key: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let row = self.store.row(SESSIONS_TABLE, &key);
        // Only the home continues a session, and only until it ends.
        let ours = row.filter(|row| row.value["home"] == self.members.tag());
        let ours = ours.filter(|_| !self.ended().contains(&key));
        let record = ours.and_then(|row| match &row.value["record"] {
            Value::String(record) => Some(record.clone()),
            _ => None,
        });
        Box::pin(async move { Ok(record) })
    }

    fn remove(&self, key: &str) {
        // The store may still have it for a moment, or while the database is away.
        self.ended().insert(key.to_owned());
        // It takes effect even if nobody waits for it.
        drop(
            self.store
                .write(SESSIONS_TABLE, key, None, WritePrecondition::Any),
        );
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    millis(time) / 1000
}

/// Returns the digest of a session id under which the session is stored.
fn storage_key(id: &str) -> String {
    hex::encode(digest(&SHA256, id.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::sync::watch;
    use toolgate_policy::{MemoryStateStore, StateClock, StateRow};

    /// A shared store whose sessions this process reads only when it writes.
    #[derive(Default)]
    struct LaggingStore {
        stored: MemoryStateStore,
        writes: AtomicUsize,
    }

    impl StateStore for LaggingStore {
        fn entries(&self, table: &str) -> Vec<StateRow> {
            match table == SESSIONS_TABLE && self.writes.load(Relaxed) == 0 {
                true => Vec::new(),
                false => self.stored.entries(table),
            }
        }

        fn write(
            &self,
            table: &str,
            key: &str,
            value: Option<Value>,
            precondition: WritePrecondition,
        ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
            self.writes.fetch_add(1, Relaxed);
            self.stored.write(table, key, value, precondition)
        }

        fn changed(&self) -> watch::Receiver<u64> {
            self.stored.changed()
        }

        fn clock(&self) -> &Arc<StateClock> {
            self.stored.clock()
        }
    }

    #[tokio::test]
    async fn a_session_that_its_home_stored_a_moment_ago_is_continued() {
        let store = Arc::new(LaggingStore::default());
        let members = |advertise: &str| {
            let advertise = Some(advertise.to_owned());
            Arc::new(FleetMembers::new(store.clone(), advertise, 2))
        };
        let (home, other) = (members("a:1"), members("b:1"));
        let id = format!("secret.{}", home.tag());
        let row = json!({"home": home.tag(), "record": "{}", "until": u64::MAX});
        let stored = store.stored.write(
            SESSIONS_TABLE,
            &storage_key(&id),
            Some(row),
            WritePrecondition::Any,
        );
        stored.await.unwrap();
        let sessions = FleetSessions::new(store.clone(), other, Duration::from_secs(60));
        // The home ended before this gateway heard of either.
        assert!(matches!(sessions.route(&id).await, SessionRoute::Local));
        let record = sessions.load(storage_key(&id)).await.unwrap();
        assert_eq!(record.as_deref(), Some("{}"));
    }

    #[tokio::test(start_paused = true)]
    async fn many_unknown_sessions_cause_few_reads_of_the_store() {
        let store = Arc::new(LaggingStore::default());
        let members = Arc::new(FleetMembers::new(store.clone(), None, 2));
        let sessions = FleetSessions::new(store.clone(), members, Duration::from_secs(60));
        let ids: Vec<String> = (0..1000).map(|id| format!("{id}.unknown")).collect();
        let began = Instant::now();
        let routes = ids.iter().map(|id| sessions.route(id));
        futures_util::future::join_all(routes).await;
        assert_eq!(
            store.writes.load(Relaxed),
            1,
            "all of them wait for one read"
        );
        tokio::time::advance(Duration::from_millis(1)).await;
        sessions.route("later.unknown").await;
        assert_eq!(store.writes.load(Relaxed), 2);
        assert!(began.elapsed() >= MIN_READ_INTERVAL);
    }
}
