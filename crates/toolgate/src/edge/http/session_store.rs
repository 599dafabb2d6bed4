//! Stores outside the process: sessions that a restarted server continues, and events of their streams.

use super::{HttpEndpointState, sessions::HttpSession};
use crate::edge::handshake::InitializedClient;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};
use toolgate_core::{BoxFuture, Caller, Error};
use toolgate_protocol::{
    hex,
    json::{Json, JsonLimits, ObjectWriter},
};

/// Store of open sessions (2025 revisions), so that a restarted server accepts their ids. Set it with
/// [`HttpEndpoint::with_session_store`](super::HttpEndpoint::with_session_store).
///
/// A key is a digest of the secret session id. A record is a JSON text of this crate, bounded by the size of a message;
/// it contains the caller's name and what the client sent in `initialize`. A session is restored only for the caller
/// that opened it, and only within [`HttpLimits::max_session_age`](super::HttpLimits::max_session_age). Requests in
/// flight, resource subscriptions and the log level are not restored. At any time, only one process may serve a
/// session.
///
/// Specification: [session management of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
/// use toolgate::{Error, core::BoxFuture, edge::http::SessionStore};
///
/// /// A store in memory; a real one writes to a database.
/// #[derive(Default)]
/// struct Sessions(Mutex<HashMap<String, String>>);
///
/// impl SessionStore for Sessions {
///     fn save(&self, key: String, record: String) -> BoxFuture<'_, Result<(), Error>> {
///         self.0.lock().unwrap().insert(key, record);
///         Box::pin(async { Ok(()) })
///     }
///
///     fn load(&self, key: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
///         let found = self.0.lock().unwrap().get(&key).cloned();
///         Box::pin(async { Ok(found) })
///     }
///
///     fn remove(&self, key: &str) {
///         self.0.lock().unwrap().remove(key);
///     }
/// }
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Stores a record under a key; it replaces an earlier one. The client gets the session id after that.
    ///
    /// # Errors
    /// The record cannot be stored. The session then works in this process only.
    fn save(&self, key: String, record: String) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns the record of a key.
    ///
    /// # Errors
    /// The store cannot be read. The client is then told to open a new session.
    fn load(&self, key: String) -> BoxFuture<'_, Result<Option<String>, Error>>;

    /// Removes a record: the session ended, or was idle for too long. It must not block, so a slow store queues the
    /// request. Records of sessions that no server knows any more need an expiry of the store's own.
    fn remove(&self, key: &str);
}

/// Store of the events of resumable SSE streams, for clients that resume with `Last-Event-ID` after a restart. Set it
/// with [`HttpEndpoint::with_event_store`](super::HttpEndpoint::with_event_store), together with a [`SessionStore`].
///
/// Within one process, streams are resumed from memory, bounded by [`ResumeLimits`](super::ResumeLimits). This store is
/// read for streams of an earlier process only. The process that served a stream is then gone, so the stream ends after
/// the events that were stored. The store bounds its own size; an event is at most as long as a result.
///
/// Specification: [resumability of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
///
/// ```
/// use std::{collections::BTreeMap, sync::Mutex};
/// use bytes::Bytes;
/// use toolgate::{core::BoxFuture, edge::http::EventStore};
///
/// /// A store in memory; a real one writes to a database, and bounds its size.
/// #[derive(Default)]
/// struct Events(Mutex<BTreeMap<(String, u64, u64), Bytes>>);
///
/// impl EventStore for Events {
///     fn append(&self, key: &str, stream: u64, position: u64, event: Bytes) {
///         self.0.lock().unwrap().insert((key.to_owned(), stream, position), event);
///     }
///
///     fn load_after(&self, key: String, stream: u64, position: u64) -> BoxFuture<'_, Option<Vec<Bytes>>> {
///         let events = self.0.lock().unwrap();
///         let known = events.contains_key(&(key.clone(), stream, 1));
///         let later = (key.clone(), stream, position + 1)..=(key, stream, u64::MAX);
///         let found = known.then(|| events.range(later).map(|(_, event)| event.clone()).collect());
///         Box::pin(async { found })
///     }
///
///     fn remove(&self, key: &str) {
///         self.0.lock().unwrap().retain(|(other, ..), _| other != key);
///     }
/// }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Adds an event of a stream. Positions of a stream begin with 1 and increase by one. It must not block, so a slow
    /// store queues the event.
    fn append(&self, key: &str, stream: u64, position: u64, event: Bytes);

    /// Returns all events of a stream after a position, in order. `None` if one of them is no longer stored, or the
    /// stream is unknown.
    fn load_after(
        &self,
        key: String,
        stream: u64,
        position: u64,
    ) -> BoxFuture<'_, Option<Vec<Bytes>>>;

    /// Removes all events of a session. It must not block.
    fn remove(&self, key: &str);
}

/// The stores that the program has set.
#[derive(Default)]
pub(crate) struct SessionStores {
    sessions: OnceLock<Arc<dyn SessionStore>>,
    events: OnceLock<Arc<dyn EventStore>>,
}

impl SessionStores {
    /// Sets the store of sessions, unless one is set.
    pub(super) fn set_sessions(&self, store: Arc<dyn SessionStore>) {
        let _ = self.sessions.set(store);
    }

    /// Sets the store of events, unless one is set.
    pub(super) fn set_events(&self, store: Arc<dyn EventStore>) {
        let _ = self.events.set(store);
    }

    /// Returns the store of the events of one session.
    pub(super) fn events_of(&self, id: &str) -> Option<SessionEvents> {
        let store = self.events.get()?.clone();
        let key = storage_key(id);
        Some(SessionEvents { store, key })
    }

    /// Removes what is stored of a session.
    pub(super) fn remove(&self, id: &str) {
        if self.sessions.get().is_none() && self.events.get().is_none() {
            return;
        }
        let key = storage_key(id);
        if let Some(store) = self.sessions.get() {
            store.remove(&key);
        }
        if let Some(store) = self.events.get() {
            store.remove(&key);
        }
    }
}

/// The event store of one session.
pub(crate) struct SessionEvents {
    store: Arc<dyn EventStore>,
    key: String,
}

impl SessionEvents {
    pub(super) fn append(&self, stream: u64, position: u64, event: Bytes) {
        self.store.append(&self.key, stream, position, event);
    }

    /// Returns the events after an event id as one text; `None` if there is none.
    pub(super) async fn load_after(&self, stream: u64, position: u64) -> Option<Vec<u8>> {
        let load = self.store.load_after(self.key.clone(), stream, position);
        let events = load.await?.concat();
        (!events.is_empty()).then_some(events)
    }
}

/// Returns the digest of a session id under which it is stored.
fn storage_key(id: &str) -> String {
    hex::encode(digest(&SHA256, id.as_bytes()).as_ref())
}

/// Maximum length of the parameters of `initialize` that a session keeps for a handover, in bytes.
const MAX_KEPT_PARAMS_BYTES: usize = 8 * 1024;

/// Stored state of a session.
pub(super) struct SessionRecord {
    caller: String,
    generation: Option<u64>,
    view: Option<String>,
    /// Time of its `initialize`, since the Unix epoch.
    created: Duration,
    /// Number of times that the session was restored. It keeps the ids of its streams apart.
    restores: u32,
    params: Json,
}

impl SessionRecord {
    fn text(&self) -> String {
        let mut o = ObjectWriter::new();
        o.int("version", 1);
        o.str("caller", &self.caller);
        if let Some(generation) = self.generation {
            o.str("generation", &generation.to_string());
        }
        if let Some(view) = &self.view {
            o.str("view", view);
        }
        o.int(
            "created",
            i64::try_from(self.created.as_secs()).unwrap_or(i64::MAX),
        );
        o.int("restores", i64::from(self.restores));
        o.raw("initialize", &self.params);
        o.finish().as_str().to_owned()
    }

    /// Returns whether it is short enough to be kept in memory.
    pub(super) fn is_short(&self) -> bool {
        self.params.as_str().len() <= MAX_KEPT_PARAMS_BYTES
    }

    fn read(text: String, limits: &JsonLimits) -> Option<SessionRecord> {
        let json = Json::read(text.into_bytes(), limits).ok()?;
        if json.get("version")?.u64()? != 1 {
            return None;
        }
        let generation = match json.get("generation") {
            Some(generation) => Some(generation.string()?.parse().ok()?),
            None => None,
        };
        Some(SessionRecord {
            caller: json.get("caller")?.string()?,
            generation,
            view: json.get("view").and_then(|view| view.string()),
            created: Duration::from_secs(json.get("created")?.u64()?),
            restores: u32::try_from(json.get("restores")?.u64()?).ok()?,
            params: json.get("initialize")?,
        })
    }

    fn belongs_to(&self, caller: &Caller) -> bool {
        let stored = Caller::new(self.caller.as_str());
        let stored = match self.generation {
            Some(generation) => stored.with_generation(generation),
            None => stored,
        };
        let stored = match &self.view {
            Some(view) => stored.in_view(view.as_str()),
            None => stored,
        };
        stored.same_principal(caller)
    }
}

/// Stores a new session, if there is a store.
pub(super) async fn save(
    endpoint: &HttpEndpointState,
    session: &HttpSession,
    caller: &Caller,
    params: &Json,
) {
    if let Some(store) = endpoint.sessions.stores.sessions.get() {
        let record = SessionRecord {
            caller: caller.name().to_owned(),
            generation: caller.generation(),
            view: caller.view().map(str::to_owned),
            created: since_epoch(),
            restores: 0,
            params: params.clone(),
        };
        save_record(&**store, &session.id, &record).await;
        session.keep_record(record);
    }
}

/// Returns the records of the open sessions, with the keys of a [`SessionStore`]. Only sessions with a store have one.
pub(super) fn records(endpoint: &HttpEndpointState) -> Vec<(String, String)> {
    let sessions = endpoint.sessions.all();
    let records = sessions.iter().filter_map(|session| {
        let record = session.record()?;
        Some((storage_key(&session.id), record.text()))
    });
    records.collect()
}

/// Returns the session with this id, if `caller` owns it: an open one, or one that an earlier process stored.
pub(super) async fn find(
    endpoint: &HttpEndpointState,
    id: &str,
    caller: &Caller,
) -> Option<Arc<HttpSession>> {
    if let Some(found) = endpoint.sessions.find(id, caller) {
        return Some(found);
    }
    let store = endpoint.sessions.stores.sessions.get()?;
    Box::pin(restore(endpoint, &**store, id, caller)).await
}

async fn restore(
    endpoint: &HttpEndpointState,
    store: &dyn SessionStore,
    id: &str,
    caller: &Caller,
) -> Option<Arc<HttpSession>> {
    let loaded = store.load(storage_key(id)).await;
    let text = loaded.unwrap_or_else(|error| {
        warn("a stored session cannot be read", &error);
        None
    })?;
    let mut record = SessionRecord::read(text, &endpoint.server.limits.json)?;
    if !record.belongs_to(caller) || endpoint.server.is_closing() {
        return None;
    }
    let age = since_epoch().saturating_sub(record.created);
    if age >= endpoint.limits.max_session_age {
        endpoint.sessions.stores.remove(id);
        return None;
    }
    record.restores = record.restores.saturating_add(1);
    save_record(store, id, &record).await;
    let opened = InitializedClient::initialize(
        endpoint.server.clone(),
        caller.clone(),
        "http",
        None,
        Some(&record.params),
    );
    let (client, _) = opened.ok()?;
    client.set_ready();
    let created = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let session = (id.to_owned(), caller.clone(), client);
    let restored = endpoint
        .sessions
        .add_restored(session, created, record.restores)?;
    restored.keep_record(record);
    Some(restored)
}

async fn save_record(store: &dyn SessionStore, id: &str, record: &SessionRecord) {
    if let Err(error) = store.save(storage_key(id), record.text()).await {
        warn("a session cannot be stored", &error);
    }
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn warn(text: &str, error: &dyn fmt::Display) {
    tracing::warn!(target: "toolgate::http", %error, "{text}");
}
