//! The sessions of the 2025 revisions, bounded by count, idle time and age.

use super::{HttpLimits, resume::Kept};
use crate::{edge::legacy::Legacy, ids};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    time::Instant,
};
use toolgate_core::Caller;

/// One open session. Its id is no proof of who calls: the caller must be the one that opened it.
pub(crate) struct Open {
    pub(crate) id: String,
    pub(crate) legacy: Arc<Legacy>,
    /// Its streams, for a client that comes back to one.
    pub(crate) kept: Arc<Kept>,
    caller: Caller,
    born: Instant,
    used: Mutex<Instant>,
}

pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Open>>>,
    limits: HttpLimits,
    /// The bytes that are kept of the streams of all of them.
    kept: Arc<AtomicUsize>,
}

impl Sessions {
    pub(crate) fn new(limits: HttpLimits) -> Sessions {
        Sessions {
            open: Mutex::default(),
            limits,
            kept: Arc::default(),
        }
    }

    /// A new session. At the limit the one that lay idle longest ends for it, the caller's own first; `None` when all
    /// are busy.
    pub(crate) fn add(&self, caller: Caller, legacy: Arc<Legacy>) -> Option<Arc<Open>> {
        self.sweep();
        let now = Instant::now();
        let session = Arc::new(Open {
            id: ids::secret(),
            legacy,
            kept: Kept::new(self.limits.resume, self.kept.clone()),
            caller,
            born: now,
            used: Mutex::new(now),
        });
        let mut open = self.open();
        if open.len() >= self.limits.sessions {
            let idle = longest_idle(&open, &session.caller)?;
            if let Some(idle) = open.remove(&idle) {
                idle.legacy.close();
            }
        }
        open.insert(session.id.clone(), session.clone());
        Some(session)
    }

    /// The session of that id and caller. Another caller's is not there.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<Open>> {
        self.sweep();
        let session = self
            .open()
            .get(id)
            .filter(|s| s.caller == *caller)
            .cloned()?;
        *session.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Some(session)
    }

    pub(crate) fn end(&self, session: &Open) {
        self.open().remove(&session.id);
        session.legacy.close();
    }

    /// Ends what is idle or too old.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.open().retain(|_, session| {
            let kept = session.is_good(now, &self.limits);
            if !kept {
                ended.push(session.clone());
            }
            kept
        });
        ended.iter().for_each(|session| session.legacy.close());
    }

    /// Forgets streams that nobody came back to.
    pub(crate) fn sweep_streams(&self) {
        let all: Vec<Arc<Open>> = self.open().values().cloned().collect();
        all.iter().for_each(|session| session.kept.sweep());
    }

    pub(crate) fn close(&self) {
        let all: Vec<Arc<Open>> = self.open().drain().map(|(_, session)| session).collect();
        all.iter().for_each(|session| session.legacy.close());
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that can best be spared.
fn longest_idle(open: &HashMap<String, Arc<Open>>, caller: &Caller) -> Option<String> {
    let idle = open.values().filter(|session| !session.legacy.is_busy());
    let spared = idle.min_by_key(|session| (session.caller != *caller, session.used()))?;
    Some(spared.id.clone())
}

impl Open {
    /// Whether its streams begin with an event, and a connection may end before its stream does.
    pub(crate) fn primes(&self) -> bool {
        self.legacy.dialect().polled_streams
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_good(&self, now: Instant, limits: &HttpLimits) -> bool {
        let used = self.used();
        let idle = now.duration_since(used) > limits.session_idle && !self.legacy.is_busy();
        !idle && now.duration_since(self.born) <= limits.session_age
    }
}

/// Counts the open streams, of each caller and in all.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Mutex<HashMap<Caller, usize>>>, usize, usize);

impl Streams {
    pub(crate) fn new(all: usize, per_caller: usize) -> Streams {
        Streams(Arc::default(), all, per_caller)
    }

    /// A place for one stream; `None` when there are too many.
    pub(crate) fn open(&self, caller: &Caller) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.get(caller).copied().unwrap_or(0);
        if all >= self.1 || own >= self.2 {
            return None;
        }
        counts.insert(caller.clone(), own + 1);
        Some(Place(self.0.clone(), caller.clone()))
    }
}

/// The place of one stream; free again when it is dropped.
pub(crate) struct Place(Arc<Mutex<HashMap<Caller, usize>>>, Caller);

impl Drop for Place {
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

    #[test]
    fn so_many_streams_of_one_caller_and_of_all() {
        let streams = Streams::new(3, 2);
        let open = |who: &str| streams.open(&Caller::new(who));
        let mut held = vec![open("a").unwrap(), open("a").unwrap()];
        assert!(open("a").is_none(), "one over, of one caller");
        held.push(open("b").unwrap());
        assert!(open("b").is_none(), "one over, of all");
        held.remove(0);
        assert!(open("b").is_some());
    }
}
