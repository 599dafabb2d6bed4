//! Fair queue of calls that wait for a concurrency permit.
//!
//! Waiting callers stand in a ring. A free permit goes to the first caller in the ring with a call that fits, and that
//! caller moves to the end. Within a caller the first call that fits is next, so that a busy tool does not block
//! others. After every change, all calls that fit are admitted. A new call that fits therefore takes no permit from a
//! queued one.

use super::ConcurrencyLimits;
use foldhash::HashMap as FoldHashMap;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;
use toolgate_core::{Call, LimitSubject};

/// Limits that a call counts against: caller, tool and server.
#[derive(Clone)]
pub(super) struct ConcurrencyKeys {
    caller: LimitSubject,
    tool: Arc<str>,
    server: Arc<str>,
}

impl ConcurrencyKeys {
    pub(super) fn of(call: &Call) -> ConcurrencyKeys {
        let (tool, server) = match call.item() {
            Some(item) => (item.shared_name(), item.origin.server.clone()),
            None => (call.name().into(), "".into()),
        };
        ConcurrencyKeys {
            caller: call.caller.limit_subject(),
            tool,
            server,
        }
    }

    #[cfg(test)]
    pub(super) fn new(caller: &str, server: &str, tool: &str) -> ConcurrencyKeys {
        ConcurrencyKeys {
            caller: toolgate_core::Caller::new(caller).limit_subject(),
            tool: format!("{server}.{tool}").into(),
            server: server.into(),
        }
    }
}

/// Running and queued calls.
#[derive(Default)]
pub(super) struct PermitQueue(Mutex<PermitQueueState>);

#[derive(Default)]
struct PermitQueueState {
    callers: RunningCounts<LimitSubject>,
    tools: RunningCounts<Arc<str>>,
    servers: RunningCounts<Arc<str>>,
    running: usize,
    /// Queued calls by caller.
    queued: HashMap<LimitSubject, VecDeque<QueuedCall>>,
    /// Callers with queued calls, in round-robin order.
    ring: VecDeque<LimitSubject>,
    queued_count: usize,
    next: u64,
    /// Limits of the latest call; after a reload, the new ones.
    limits: Option<Arc<ConcurrencyLimits>>,
}

struct QueuedCall {
    number: u64,
    want: ConcurrencyKeys,
    admit: oneshot::Sender<()>,
}

/// Number of running calls by key.
///
/// Read on every call and never exposed, so the hash is a fast seeded one. Idle keys may stay for a while, as most
/// return immediately.
struct RunningCounts<K>(FoldHashMap<K, usize>);

/// Number of idle keys that may stay in the table.
const IDLE_KEYS_RETAINED: usize = 64;

impl<K> Default for RunningCounts<K> {
    fn default() -> RunningCounts<K> {
        RunningCounts(FoldHashMap::default())
    }
}

impl<K: Hash + Eq + Clone> RunningCounts<K> {
    fn of(&self, key: &K) -> usize {
        self.0.get(key).copied().unwrap_or(0)
    }

    #[cfg(test)]
    fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, key: &K) {
        match self.0.get_mut(key) {
            Some(count) => *count += 1,
            None => _ = self.0.insert(key.clone(), 1),
        }
    }

    fn remove(&mut self, key: &K, running: usize) {
        if let Some(count) = self.0.get_mut(key) {
            *count = count.saturating_sub(1);
        }
        // At most `running` keys are in use, so each pass removes nearly as many entries as it visits.
        if self.0.len() > IDLE_KEYS_RETAINED + 2 * running {
            self.0.retain(|_, count| *count > 0);
        }
    }
}

/// Limit that is reached.
#[derive(Debug)]
pub(super) enum ReachedLimit {
    Caller(usize),
    Tool(Arc<str>, usize),
    Server(Arc<str>, usize),
    All(usize),
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, of) = match self {
            ReachedLimit::Caller(count) => (count, " from this caller".to_owned()),
            ReachedLimit::Tool(tool, count) => (count, format!(" to {tool}")),
            ReachedLimit::Server(server, count) => (count, format!(" to the server {server}")),
            ReachedLimit::All(count) => (count, String::new()),
        };
        match count {
            1 => write!(f, "1 call{of} is already running"),
            _ => write!(f, "{count} calls{of} are already running"),
        }
    }
}

/// Result of entering the queue.
pub(super) enum QueueAdmission {
    /// A permit.
    Runs(ConcurrencyPermit),
    /// A queued turn.
    Waits(QueueTurn),
}

impl PermitQueue {
    /// Returns the numbers of running and of queued calls.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.running, state.queued_count)
    }

    /// Returns a permit or a queued turn.
    pub(super) fn enter(
        self: &Arc<Self>,
        want: ConcurrencyKeys,
        caps: &Arc<ConcurrencyLimits>,
    ) -> Result<QueueAdmission, ReachedLimit> {
        let mut state = self.state();
        if !state
            .limits
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, caps))
        {
            state.limits = Some(caps.clone());
            // The new limits may be higher.
            state.admit_fitting();
        }
        let Some(full) = state.reached_limit(&want, caps) else {
            state.start(&want);
            return Ok(QueueAdmission::Runs(ConcurrencyPermit(self.clone(), want)));
        };
        let own = state.queued.get(&want.caller).map_or(0, VecDeque::len);
        if own >= caps.max_queued_per_caller || state.queued_count >= caps.max_queued {
            return Err(full);
        }
        let (go, told) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        let waiter = QueuedCall {
            number,
            want: want.clone(),
            admit: go,
        };
        if own == 0 {
            state.ring.push_back(want.caller.clone());
        }
        state
            .queued
            .entry(want.caller.clone())
            .or_default()
            .push_back(waiter);
        state.queued_count += 1;
        let queue = self.clone();
        Ok(QueueAdmission::Waits(QueueTurn {
            queue,
            want: Some(want),
            number,
            admitted: told,
        }))
    }

    fn state(&self) -> MutexGuard<'_, PermitQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of entries in all tables.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        let state = self.state();
        state.callers.0.len() + state.tools.0.len() + state.servers.0.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state();
        let counts = state.callers.all() + state.tools.all() + state.servers.all();
        state.running + state.queued_count + counts + state.ring.len() + state.queued.len() == 0
    }
}

impl PermitQueueState {
    /// Returns the limit that keeps a call from running.
    fn reached_limit(
        &self,
        want: &ConcurrencyKeys,
        caps: &ConcurrencyLimits,
    ) -> Option<ReachedLimit> {
        let caller = self.callers.of(&want.caller);
        if caller >= caps.per_caller {
            return Some(ReachedLimit::Caller(caller));
        }
        let tool = self.tools.of(&want.tool);
        if tool >= caps.per_tool {
            return Some(ReachedLimit::Tool(want.tool.clone(), tool));
        }
        let server = self.servers.of(&want.server);
        if server >= caps.per_server.of(&want.server) {
            return Some(ReachedLimit::Server(want.server.clone(), server));
        }
        (self.running >= caps.total).then_some(ReachedLimit::All(self.running))
    }

    fn start(&mut self, want: &ConcurrencyKeys) {
        self.callers.add(&want.caller);
        self.tools.add(&want.tool);
        self.servers.add(&want.server);
        self.running += 1;
    }

    fn end(&mut self, want: &ConcurrencyKeys) {
        self.release(want);
        self.admit_fitting();
    }

    fn release(&mut self, want: &ConcurrencyKeys) {
        self.running = self.running.saturating_sub(1);
        self.callers.remove(&want.caller, self.running);
        self.tools.remove(&want.tool, self.running);
        self.servers.remove(&want.server, self.running);
    }

    /// Admits all queued calls that fit, caller by caller.
    fn admit_fitting(&mut self) {
        let Some(caps) = self.limits.clone() else {
            return;
        };
        let mut at = 0;
        while self.running < caps.total
            && let Some(caller) = self.ring.get(at).cloned()
        {
            if !self.admit_one(&caller, &caps) {
                // No call of this caller fits, so it keeps its position.
                at += 1;
                continue;
            }
            // The caller had its turn and moves to the end. Callers before it still do not fit: fewer permits are free
            // than before.
            self.ring.remove(at);
            if self.queued.contains_key(&caller) {
                self.ring.push_back(caller);
            }
        }
    }

    /// Admits the first call of a caller that fits.
    fn admit_one(&mut self, caller: &LimitSubject, caps: &ConcurrencyLimits) -> bool {
        // Under overload, this is the usual case. A search through the queue would find nothing, after each call.
        if self.callers.of(caller) >= caps.per_caller {
            return false;
        }
        let waiting = self.queued.get(caller);
        let fits = |waiter: &QueuedCall| self.reached_limit(&waiter.want, caps).is_none();
        let Some(at) = waiting.and_then(|all| all.iter().position(fits)) else {
            return false;
        };
        let Some(waiter) = self.remove(caller, |_, n| n == at) else {
            return false;
        };
        self.start(&waiter.want);
        if waiter.admit.send(()).is_err() {
            // The call gave up at this moment.
            self.release(&waiter.want);
        }
        true
    }

    /// Removes a call from the queue, without changing the position of its caller in the ring.
    fn remove(
        &mut self,
        caller: &LimitSubject,
        is: impl Fn(&QueuedCall, usize) -> bool,
    ) -> Option<QueuedCall> {
        let all = self.queued.get_mut(caller)?;
        let at = (0..all.len()).find(|at| all.get(*at).is_some_and(|waiter| is(waiter, *at)))?;
        let waiter = all.remove(at);
        if all.is_empty() {
            self.queued.remove(caller);
        }
        self.queued_count = self.queued_count.saturating_sub(1);
        waiter
    }
}

/// Permit of one running call, released on drop.
pub(super) struct ConcurrencyPermit(Arc<PermitQueue>, ConcurrencyKeys);

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.0.state().end(&self.1);
    }
}

/// Turn of one queued call, given up on drop.
pub(super) struct QueueTurn {
    queue: Arc<PermitQueue>,
    /// `None` once the permit was handed over.
    want: Option<ConcurrencyKeys>,
    number: u64,
    admitted: oneshot::Receiver<()>,
}

impl QueueTurn {
    /// Waits for the permit of this call.
    pub(super) async fn wait(&mut self) -> ConcurrencyPermit {
        match (&mut self.admitted).await {
            Ok(()) => match self.want.take() {
                Some(want) => ConcurrencyPermit(self.queue.clone(), want),
                None => std::future::pending().await,
            },
            // The queue never drops a waiter without admitting it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives up waiting. Returns the permit if it just arrived, else the limit that is reached.
    pub(super) fn give_up(mut self) -> Result<ConcurrencyPermit, ReachedLimit> {
        let Some(want) = self.want.take() else {
            return Err(ReachedLimit::All(0));
        };
        let mut state = self.queue.state();
        if state.dequeue(&want, self.number) {
            let caps = state.limits.clone();
            let full = caps.and_then(|caps| state.reached_limit(&want, &caps));
            return Err(full.unwrap_or(ReachedLimit::All(state.running)));
        }
        drop(state);
        Ok(ConcurrencyPermit(self.queue.clone(), want))
    }
}

impl PermitQueueState {
    /// Removes a queued call. Returns whether it was still queued.
    fn dequeue(&mut self, want: &ConcurrencyKeys, number: u64) -> bool {
        let waited = self.remove(&want.caller, |waiter, _| waiter.number == number);
        if waited.is_some() && !self.queued.contains_key(&want.caller) {
            self.ring.retain(|caller| *caller != want.caller);
        }
        waited.is_some()
    }
}

impl Drop for QueueTurn {
    fn drop(&mut self) {
        let Some(want) = self.want.take() else { return };
        let mut state = self.queue.state();
        if !state.dequeue(&want, self.number) {
            // It was already admitted.
            state.end(&want);
        }
    }
}
