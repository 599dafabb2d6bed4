//! Streamable HTTP sessions of the 2025 revisions, limited by count, idle time and age.

use super::{
    HttpLimits,
    request_parts::HttpRequestParts,
    resume::ResumableStreams,
    session_store::{SessionRecord, SessionStores},
};
use crate::{
    edge::{ProtocolServer, call::MessageSender, handshake::InitializedClient},
    ids,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicUsize},
    time::{Duration, Instant},
};
use toolgate_core::Caller;

/// One open session. Its id does not authenticate: the caller must be the one that opened it.
pub(crate) struct HttpSession {
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<InitializedClient>,
    /// Its resumable streams.
    pub(crate) streams: Arc<ResumableStreams>,
    caller: Caller,
    number: u64,
    created: Instant,
    last_used: Mutex<Instant>,
    /// Stored state, if there is a store.
    record: OnceLock<Box<SessionRecord>>,
}

/// Open HTTP sessions and their limits.
pub(crate) struct HttpSessions {
    table: Mutex<HttpSessionTable>,
    limits: HttpLimits,
    /// Buffered bytes of the streams of all sessions.
    buffered_bytes: Arc<AtomicUsize>,
    /// Stores outside the process.
    pub(super) stores: SessionStores,
    /// Suffix of the ids of new sessions.
    suffix: OnceLock<String>,
}

/// The open sessions by id, and the time of the next sweep.
#[derive(Default)]
struct HttpSessionTable {
    all: HashMap<Arc<str>, Arc<HttpSession>>,
    /// Time before which no session can be idle or old enough to end; `None` if there are none. Without it, each
    /// request would check every session.
    next_sweep: Option<Instant>,
}

/// Shortest interval between sweeps, if a due session is still busy.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl HttpSessions {
    pub(crate) fn new(limits: HttpLimits) -> HttpSessions {
        HttpSessions {
            table: Mutex::default(),
            limits,
            buffered_bytes: Arc::default(),
            stores: SessionStores::default(),
            suffix: OnceLock::new(),
        }
    }

    /// Sets the suffix of the ids of new sessions, unless one is set.
    pub(super) fn set_suffix(&self, suffix: &str) {
        let _ = self.suffix.set(suffix.to_owned());
    }

    /// Returns a secret id for a new session.
    pub(super) fn new_id(&self) -> String {
        let id = ids::secret_id();
        match self.suffix.get() {
            Some(suffix) => format!("{id}.{suffix}"),
            None => id,
        }
    }

    /// Returns the number of open sessions.
    pub(crate) fn count(&self) -> usize {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.all.len()
    }

    /// Adds a session. At the limit, the session that was idle longest ends, the caller's own first. Returns `None` if
    /// all are busy.
    pub(crate) fn add(
        &self,
        caller: Caller,
        client: Arc<InitializedClient>,
    ) -> Option<Arc<HttpSession>> {
        self.insert((self.new_id(), caller, client), Instant::now(), 0)
    }

    /// Adds a session that an earlier process opened. If another request restored it meanwhile, returns that one.
    pub(super) fn add_restored(
        &self,
        session: (String, Caller, Arc<InitializedClient>),
        created: Instant,
        restores: u32,
    ) -> Option<Arc<HttpSession>> {
        let (id, caller) = (session.0.clone(), session.1.clone());
        let added = self.insert(session, created, restores);
        added.or_else(|| self.find(&id, &caller))
    }

    /// Adds a session. `None` if its id is known, or all sessions are busy.
    fn insert(
        &self,
        (id, caller, client): (String, Caller, Arc<InitializedClient>),
        created: Instant,
        restores: u32,
    ) -> Option<Arc<HttpSession>> {
        let now = Instant::now();
        let streams = ResumableStreams::new(self.limits.resume, self.buffered_bytes.clone())
            .with_event_store(self.stores.events_of(&id), restores);
        let session = Arc::new(HttpSession {
            id: id.into(),
            client,
            streams: Arc::new(streams),
            caller,
            number: ids::session_number(),
            created,
            last_used: Mutex::new(now),
            record: OnceLock::new(),
        });
        let mut open = self.table();
        if open.needs_sweep(now) || open.all.len() >= self.limits.max_sessions {
            drop(open);
            self.sweep();
            open = self.table();
        }
        if open.all.contains_key(&session.id) {
            return None;
        }
        if open.all.len() >= self.limits.max_sessions {
            let idle = find_evictable(&open.all, &session.caller)?;
            if let Some(idle) = open.all.remove(&idle) {
                idle.client.close();
            }
        }
        let ends = saturating_after(
            now,
            self.limits
                .session_idle_timeout
                .min(self.limits.max_session_age),
        );
        open.next_sweep = Some(open.next_sweep.map_or(ends, |due| due.min(ends)));
        open.all.insert(session.id.clone(), session.clone());
        Some(session)
    }

    /// Returns the session with this id if `caller` owns it. A session of another caller is not found.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let now = Instant::now();
        let mut open = self.table();
        if open.needs_sweep(now) {
            drop(open);
            self.sweep();
            open = self.table();
        }
        let found = open
            .all
            .get(id)
            .filter(|session| session.caller.same_principal(caller));
        let session = found.cloned()?;
        drop(open);
        if !session.is_alive(now, &self.limits) {
            self.end(&session);
            return None;
        }
        *session
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = now;
        Some(session)
    }

    pub(crate) fn end(&self, session: &HttpSession) {
        self.table().all.remove(&session.id);
        session.client.close();
        self.stores.remove(&session.id);
    }

    /// Ends sessions that are idle or too old.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        let mut due: Option<Instant> = None;
        let mut open = self.table();
        open.all.retain(|_, session| {
            let kept = session.is_alive(now, &self.limits);
            if kept {
                let ends = session
                    .expires_at(&self.limits)
                    .max(now + MIN_SWEEP_INTERVAL);
                due = Some(due.map_or(ends, |due| due.min(ends)));
            } else {
                ended.push(session.clone());
            }
            kept
        });
        open.next_sweep = due;
        drop(open);
        for session in ended {
            session.client.close();
            self.stores.remove(&session.id);
        }
    }

    /// Removes streams that no client resumed in time.
    pub(crate) fn sweep_streams(&self) {
        let all = self.all();
        all.iter().for_each(|session| session.streams.sweep());
    }

    /// Returns all open sessions.
    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.table().all.values().cloned().collect()
    }

    /// Ends all sessions of this process. They stay in the store, for the next process.
    pub(crate) fn close(&self) {
        let all: Vec<Arc<HttpSession>> = self
            .table()
            .all
            .drain()
            .map(|(_, session)| session)
            .collect();
        all.iter().for_each(|session| session.client.close());
    }

    fn table(&self) -> MutexGuard<'_, HttpSessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSessionTable {
    /// Returns whether a sweep is due.
    fn needs_sweep(&self, now: Instant) -> bool {
        self.next_sweep.is_some_and(|due| due <= now)
    }
}

/// Adds a duration to an instant; an overflow becomes one year.
fn saturating_after(at: Instant, time: Duration) -> Instant {
    let far = Duration::from_secs(365 * 24 * 3600);
    at.checked_add(time).unwrap_or(at + far)
}

/// Selects a session for eviction: the idle one that was unused longest, the caller's own first.
fn find_evictable(open: &HashMap<Arc<str>, Arc<HttpSession>>, caller: &Caller) -> Option<Arc<str>> {
    let idle = open.values().filter(|session| !session.client.is_busy());
    let spared = idle.min_by_key(|session| (session.caller != *caller, session.last_used()))?;
    Some(spared.id.clone())
}

impl HttpSession {
    /// Returns the sender of a message in this session.
    pub(crate) fn sender(
        &self,
        caller: &Caller,
        server: &ProtocolServer,
        parts: &Arc<HttpRequestParts>,
    ) -> MessageSender {
        MessageSender {
            caller: caller.clone().in_session(self.number),
            address: parts.address(),
            transport_parts: parts.in_session(server, &self.id),
            transport_trace: None,
        }
    }

    /// Returns whether its streams begin with an event without data, and a connection may end before its stream.
    pub(crate) fn has_priming_event(&self) -> bool {
        self.client.dialect().polled_streams
    }

    /// Keeps the stored state of a session for [`HttpSession::record`], unless it is long.
    pub(super) fn keep_record(&self, record: SessionRecord) {
        if record.is_short() {
            let _ = self.record.set(Box::new(record));
        }
    }

    /// Returns the stored state of a session.
    pub(super) fn record(&self) -> Option<&SessionRecord> {
        self.record.get().map(Box::as_ref)
    }

    fn last_used(&self) -> Instant {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time at which it ends unless it is used or busy.
    fn expires_at(&self, limits: &HttpLimits) -> Instant {
        saturating_after(self.last_used(), limits.session_idle_timeout)
            .min(saturating_after(self.created, limits.max_session_age))
    }

    fn is_alive(&self, now: Instant, limits: &HttpLimits) -> bool {
        let used = self.last_used();
        let idle = now.duration_since(used) > limits.session_idle_timeout && !self.client.is_busy();
        !idle
            && now.duration_since(self.created) <= limits.max_session_age
            && !self.client.is_gone()
    }
}

/// Limit on open streams, per caller and in total.
#[derive(Clone)]
pub(crate) struct StreamLimiter(Arc<Mutex<HashMap<Caller, usize>>>, usize, usize);

impl StreamLimiter {
    pub(crate) fn new(all: usize, per_caller: usize) -> StreamLimiter {
        StreamLimiter(Arc::default(), all, per_caller)
    }

    /// Returns a permit for one stream, or `None` at a limit.
    pub(crate) fn acquire(&self, caller: &Caller) -> Option<StreamPermit> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.get(caller).copied().unwrap_or(0);
        if all >= self.1 || own >= self.2 {
            return None;
        }
        counts.insert(caller.clone(), own + 1);
        Some(StreamPermit(self.0.clone(), caller.clone()))
    }
}

/// Permit for one open stream, released when dropped.
pub(crate) struct StreamPermit(Arc<Mutex<HashMap<Caller, usize>>>, Caller);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_protocol::json::Json;

    fn sessions(limits: HttpLimits) -> (HttpSessions, impl Fn(&HttpSessions) -> Arc<HttpSession>) {
        let server = crate::Server::new("s", "1").build().unwrap();
        let params = Json::from_value(&serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}));
        let open = move |sessions: &HttpSessions| {
            let caller = Caller::new("a");
            let opened = InitializedClient::initialize(
                server.clone(),
                caller.clone(),
                "http",
                None,
                Some(&params),
            );
            sessions.add(caller, opened.unwrap().0).unwrap()
        };
        (HttpSessions::new(limits), open)
    }

    #[tokio::test]
    async fn does_not_find_an_ended_session_before_a_sweep() {
        let (sessions, open) = sessions(HttpLimits {
            session_idle_timeout: Duration::ZERO,
            ..HttpLimits::default()
        });
        let one = open(&sessions);
        sessions.table().next_sweep = None;
        assert!(sessions.find(&one.id, &one.caller).is_none());
        assert!(sessions.table().all.is_empty());
    }

    #[tokio::test]
    async fn sweeps_when_a_session_can_have_ended() {
        let (sessions, open) = sessions(HttpLimits {
            session_idle_timeout: Duration::from_secs(60),
            max_session_age: Duration::MAX,
            ..HttpLimits::default()
        });
        let one = open(&sessions);
        let due = sessions.table().next_sweep.unwrap();
        assert_eq!(due, one.expires_at(&sessions.limits));
        let second = open(&sessions);
        assert_eq!(sessions.table().next_sweep, Some(due), "the first of them");
        sessions.end(&one);
        sessions.sweep();
        assert_eq!(
            sessions.table().next_sweep,
            Some(second.expires_at(&sessions.limits))
        );
        assert!(sessions.find(&second.id, &second.caller).is_some());
        // If it ended in the meantime, the next lookup removes it.
        *second.last_used.lock().unwrap() =
            second.created.checked_sub(Duration::from_secs(61)).unwrap();
        sessions.table().next_sweep = Some(Instant::now());
        assert!(sessions.find("none", &second.caller).is_none());
        assert!(sessions.table().all.is_empty() && sessions.table().next_sweep.is_none());
    }

    #[test]
    fn limits_streams_per_caller_and_in_total() {
        let streams = StreamLimiter::new(3, 2);
        let open = |who: &str| streams.acquire(&Caller::new(who));
        let mut held = vec![open("a").unwrap(), open("a").unwrap()];
        assert!(open("a").is_none(), "one over, of one caller");
        held.push(open("b").unwrap());
        assert!(open("b").is_none(), "one over, of all");
        held.remove(0);
        assert!(open("b").is_some());
    }
}
