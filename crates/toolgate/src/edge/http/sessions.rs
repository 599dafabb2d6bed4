//! Streamable HTTP sessions of the 2025 revisions, limited by count, idle time and age.

use super::{HttpLimits, resume::ResumableStreams};
use crate::{edge::legacy::InitializedClient, ids};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    time::{Duration, Instant},
};
use toolgate_core::Caller;

/// One open session. Its id does not authenticate: the caller must be the one that opened it.
pub(crate) struct HttpSession {
    pub(crate) id: String,
    pub(crate) legacy: Arc<InitializedClient>,
    /// Its resumable streams.
    pub(crate) kept: Arc<ResumableStreams>,
    caller: Caller,
    number: u64,
    born: Instant,
    used: Mutex<Instant>,
}

pub(crate) struct HttpSessions {
    open: Mutex<HttpSessionTable>,
    limits: HttpLimits,
    /// Buffered bytes of the streams of all sessions.
    kept: Arc<AtomicUsize>,
}

/// The open sessions by id, and the time of the next sweep.
#[derive(Default)]
struct HttpSessionTable {
    all: HashMap<String, Arc<HttpSession>>,
    /// Time before which no session can be idle or old enough to end; `None` if there are none. Without it, each
    /// request would check every session.
    due: Option<Instant>,
}

/// Shortest interval between sweeps, if a due session is still busy.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl HttpSessions {
    pub(crate) fn new(limits: HttpLimits) -> HttpSessions {
        HttpSessions {
            open: Mutex::default(),
            limits,
            kept: Arc::default(),
        }
    }

    /// Adds a session. At the limit, the session that was idle longest ends, the caller's own first. Returns `None` if
    /// all are busy.
    pub(crate) fn add(
        &self,
        caller: Caller,
        legacy: Arc<InitializedClient>,
    ) -> Option<Arc<HttpSession>> {
        let now = Instant::now();
        let session = Arc::new(HttpSession {
            id: ids::secret(),
            legacy,
            kept: ResumableStreams::new(self.limits.resume, self.kept.clone()),
            caller,
            number: ids::session_number(),
            born: now,
            used: Mutex::new(now),
        });
        let mut open = self.open();
        if open.is_due(now) || open.all.len() >= self.limits.sessions {
            drop(open);
            self.sweep();
            open = self.open();
        }
        if open.all.len() >= self.limits.sessions {
            let idle = longest_idle(&open.all, &session.caller)?;
            if let Some(idle) = open.all.remove(&idle) {
                idle.legacy.close();
            }
        }
        let ends = after(now, self.limits.session_idle.min(self.limits.session_age));
        open.due = Some(open.due.map_or(ends, |due| due.min(ends)));
        open.all.insert(session.id.clone(), session.clone());
        Some(session)
    }

    /// Returns the session with this id if `caller` owns it. A session of another caller is not found.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let now = Instant::now();
        let mut open = self.open();
        if open.is_due(now) {
            drop(open);
            self.sweep();
            open = self.open();
        }
        let found = open
            .all
            .get(id)
            .filter(|session| session.caller.is_still(caller));
        let session = found.cloned()?;
        drop(open);
        if !session.is_good(now, &self.limits) {
            self.end(&session);
            return None;
        }
        *session.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Some(session)
    }

    pub(crate) fn end(&self, session: &HttpSession) {
        self.open().all.remove(&session.id);
        session.legacy.close();
    }

    /// Ends sessions that are idle or too old.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        let mut due: Option<Instant> = None;
        let mut open = self.open();
        open.all.retain(|_, session| {
            let kept = session.is_good(now, &self.limits);
            if kept {
                let ends = session.ends(&self.limits).max(now + MIN_SWEEP_INTERVAL);
                due = Some(due.map_or(ends, |due| due.min(ends)));
            } else {
                ended.push(session.clone());
            }
            kept
        });
        open.due = due;
        drop(open);
        ended.iter().for_each(|session| session.legacy.close());
    }

    /// Removes streams that no client resumed in time.
    pub(crate) fn sweep_streams(&self) {
        let all: Vec<Arc<HttpSession>> = self.open().all.values().cloned().collect();
        all.iter().for_each(|session| session.kept.sweep());
    }

    pub(crate) fn close(&self) {
        let all: Vec<Arc<HttpSession>> = self
            .open()
            .all
            .drain()
            .map(|(_, session)| session)
            .collect();
        all.iter().for_each(|session| session.legacy.close());
    }

    fn open(&self) -> MutexGuard<'_, HttpSessionTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSessionTable {
    /// Returns whether a sweep is due.
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// Adds a duration to an instant; an overflow becomes one year.
fn after(at: Instant, time: Duration) -> Instant {
    let far = Duration::from_secs(365 * 24 * 3600);
    at.checked_add(time).unwrap_or(at + far)
}

/// Returns the session to evict: the idle one that was unused longest, the caller's own first.
fn longest_idle(open: &HashMap<String, Arc<HttpSession>>, caller: &Caller) -> Option<String> {
    let idle = open.values().filter(|session| !session.legacy.is_busy());
    let spared = idle.min_by_key(|session| (session.caller != *caller, session.used()))?;
    Some(spared.id.clone())
}

impl HttpSession {
    /// Returns the caller of a message in this session.
    pub(crate) fn caller(&self, caller: &Caller) -> Caller {
        caller.clone().in_session(self.number)
    }

    /// Returns whether its streams begin with an event without data, and a connection may end before its stream.
    pub(crate) fn primes(&self) -> bool {
        self.legacy.dialect().polled_streams
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time at which it ends unless it is used or busy.
    fn ends(&self, limits: &HttpLimits) -> Instant {
        after(self.used(), limits.session_idle).min(after(self.born, limits.session_age))
    }

    fn is_good(&self, now: Instant, limits: &HttpLimits) -> bool {
        let used = self.used();
        let idle = now.duration_since(used) > limits.session_idle && !self.legacy.is_busy();
        !idle && now.duration_since(self.born) <= limits.session_age && !self.legacy.is_gone()
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
    pub(crate) fn open(&self, caller: &Caller) -> Option<StreamPermit> {
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
    use toolgate_wire::json::Json;

    fn sessions(limits: HttpLimits) -> (HttpSessions, impl Fn(&HttpSessions) -> Arc<HttpSession>) {
        let server = crate::Server::new("s", "1").build().unwrap();
        let params = Json::from_value(&serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}));
        let open = move |sessions: &HttpSessions| {
            let caller = Caller::new("a");
            let opened = InitializedClient::open(
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
    async fn one_that_ended_is_not_found_though_nobody_looked_at_all_of_them() {
        let (sessions, open) = sessions(HttpLimits {
            session_idle: Duration::ZERO,
            ..HttpLimits::default()
        });
        let one = open(&sessions);
        sessions.open().due = None;
        assert!(sessions.find(&one.id, &one.caller).is_none());
        assert!(sessions.open().all.is_empty());
    }

    #[tokio::test]
    async fn all_are_looked_at_as_soon_as_one_can_have_ended() {
        let (sessions, open) = sessions(HttpLimits {
            session_idle: Duration::from_secs(60),
            session_age: Duration::MAX,
            ..HttpLimits::default()
        });
        let one = open(&sessions);
        let due = sessions.open().due.unwrap();
        assert_eq!(due, one.ends(&sessions.limits));
        let second = open(&sessions);
        assert_eq!(sessions.open().due, Some(due), "the first of them");
        sessions.end(&one);
        sessions.sweep();
        assert_eq!(sessions.open().due, Some(second.ends(&sessions.limits)));
        assert!(sessions.find(&second.id, &second.caller).is_some());
        // If it ended in the meantime, the next lookup removes it.
        *second.used.lock().unwrap() = second.born.checked_sub(Duration::from_secs(61)).unwrap();
        sessions.open().due = Some(Instant::now());
        assert!(sessions.find("none", &second.caller).is_none());
        assert!(sessions.open().all.is_empty() && sessions.open().due.is_none());
    }

    #[test]
    fn so_many_streams_of_one_caller_and_of_all() {
        let streams = StreamLimiter::new(3, 2);
        let open = |who: &str| streams.open(&Caller::new(who));
        let mut held = vec![open("a").unwrap(), open("a").unwrap()];
        assert!(open("a").is_none(), "one over, of one caller");
        held.push(open("b").unwrap());
        assert!(open("b").is_none(), "one over, of all");
        held.remove(0);
        assert!(open("b").is_some());
    }
}
