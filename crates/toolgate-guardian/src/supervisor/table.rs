//! Table of the guardian's children, with condition variables for its threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::message::WireSteps;

use super::tree::{self, DescendantProcess};

pub(super) struct ChildTable {
    state: Mutex<ChildTableState>,
    /// Notified when a child is added or removed. Each child has its own `changed`.
    pub(super) changed: Condvar,
}

pub(super) struct ChildTableState {
    pub(super) entries: BTreeMap<u64, SupervisedChild>,
    /// True if this process has no children at all, including adopted ones.
    pub(super) childless: bool,
}

/// Child process: the leader of a process group, the group, and descendants that left it.
pub(super) struct SupervisedChild {
    pub(super) leader: Pid,
    /// True if the leader has not been reaped. Signals and reaping both happen under the lock, so that no signal
    /// reaches a reused process id.
    pub(super) running: bool,
    /// Exit status of the leader, if known.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// Requested shutdown with its timeouts.
    pub(super) requested_steps: Option<WireSteps>,
    /// Notified when this child changes. Only its own thread waits here, so that a change does not wake the threads of
    /// all children.
    pub(super) changed: Arc<Condvar>,
    /// True if no process is left and the gateway is about to be told. The entry no longer counts for the limit.
    pub(super) ended: bool,
    detached: Vec<DescendantProcess>,
}

impl Default for ChildTable {
    fn default() -> Self {
        let state = ChildTableState {
            entries: BTreeMap::new(),
            childless: true,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl ChildTableState {
    /// Returns the number of children as the gateway knows it: those whose end was not reported.
    pub(super) fn count(&self) -> usize {
        self.entries.values().filter(|entry| !entry.ended).count()
    }
}

impl ChildTable {
    pub(super) fn lock(&self) -> MutexGuard<'_, ChildTableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a condition holds, and returns the lock.
pub(super) fn wait<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, ChildTableState>,
    holds: impl Fn(&ChildTableState) -> bool,
) -> MutexGuard<'a, ChildTableState> {
    changed
        .wait_while(state, |state| !holds(state))
        .unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a condition holds or a timeout expires. Returns the lock and whether the condition holds.
pub(super) fn wait_for<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, ChildTableState>,
    at_most: Duration,
    holds: impl Fn(&ChildTableState) -> bool,
) -> (MutexGuard<'a, ChildTableState>, bool) {
    let (state, waited) = changed
        .wait_timeout_while(state, at_most, |state| !holds(state))
        .unwrap_or_else(PoisonError::into_inner);
    (state, !waited.timed_out())
}

impl SupervisedChild {
    pub(super) fn new(leader: Pid, changed: Arc<Condvar>) -> Self {
        Self {
            leader,
            running: true,
            code: None,
            signal: None,
            requested_steps: None,
            changed,
            ended: false,
            detached: Vec::new(),
        }
    }

    /// Returns whether no process of the child is left.
    pub(super) fn is_gone(&self) -> bool {
        !self.running
            && test_kill_process_group(self.leader).is_err()
            && !self.detached.iter().any(DescendantProcess::is_alive)
    }

    /// Records the descendants that left the group. Once their parents are gone, nothing shows whose descendants they
    /// are.
    pub(super) fn record_detached(&mut self) {
        let mut roots: Vec<Pid> = self.detached.iter().map(|stray| stray.pid).collect();
        if self.running {
            roots.push(self.leader);
        }
        self.detached.retain(DescendantProcess::is_alive);
        for found in tree::descendants(&roots) {
            if found.group != self.leader && !self.detached.contains(&found) {
                self.detached.push(found);
            }
        }
    }

    /// Signals the group and every descendant that left it. Skips exited ones.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.record_detached();
        self.signal_group(signal);
        for stray in &self.detached {
            stray.signal(signal);
        }
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }
}
