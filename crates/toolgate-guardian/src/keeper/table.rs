//! The children that the guardian keeps, and how its threads wait for a change of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::message::WireSteps;

use super::tree::{self, Process};

pub(super) struct Table {
    state: Mutex<State>,
    /// A child came or went. What happens to one child its own `changed` tells.
    pub(super) changed: Condvar,
}

pub(super) struct State {
    pub(super) entries: BTreeMap<u64, Entry>,
    /// This process has no child at all, adopted ones included.
    pub(super) childless: bool,
}

/// One child: the leader of a process group, the group, and descendants that left it.
pub(super) struct Entry {
    pub(super) leader: Pid,
    /// The leader has not been reaped. A signal goes out under the lock only, and a leader is
    /// reaped under the lock only, so no signal meets a number that was given out again.
    pub(super) running: bool,
    /// How the leader exited, as far as known.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// The child shall end, in these steps.
    pub(super) order: Option<WireSteps>,
    /// Something happened to this child; its thread alone waits here, so that with many children
    /// not all of them wake for one.
    pub(super) changed: Arc<Condvar>,
    /// Nothing of it is left; the gateway is about to hear so. It counts for the limit no more.
    pub(super) ended: bool,
    strays: Vec<Process>,
}

impl Default for Table {
    fn default() -> Self {
        let state = State {
            entries: BTreeMap::new(),
            childless: true,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl State {
    /// How many children there are, as the gateway knows it: one of which it was told the end is none.
    pub(super) fn count(&self) -> usize {
        self.entries.values().filter(|entry| !entry.ended).count()
    }
}

impl Table {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until something holds; gives the lock back.
pub(super) fn wait<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, State>,
    holds: impl Fn(&State) -> bool,
) -> MutexGuard<'a, State> {
    changed
        .wait_while(state, |state| !holds(state))
        .unwrap_or_else(PoisonError::into_inner)
}

/// Waits until something holds, at most so long; gives the lock back with the answer.
pub(super) fn wait_for<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, State>,
    at_most: Duration,
    holds: impl Fn(&State) -> bool,
) -> (MutexGuard<'a, State>, bool) {
    let (state, waited) = changed
        .wait_timeout_while(state, at_most, |state| !holds(state))
        .unwrap_or_else(PoisonError::into_inner);
    (state, !waited.timed_out())
}

impl Entry {
    pub(super) fn new(leader: Pid, changed: Arc<Condvar>) -> Self {
        Self {
            leader,
            running: true,
            code: None,
            signal: None,
            order: None,
            changed,
            ended: false,
            strays: Vec::new(),
        }
    }

    /// Nothing of the child is left.
    pub(super) fn is_gone(&self) -> bool {
        !self.running
            && test_kill_process_group(self.leader).is_err()
            && !self.strays.iter().any(Process::is_alive)
    }

    /// Remembers the descendants that left the group; once their parents are gone, nothing
    /// would show whose they are.
    pub(super) fn note_strays(&mut self) {
        let mut roots: Vec<Pid> = self.strays.iter().map(|stray| stray.pid).collect();
        if self.running {
            roots.push(self.leader);
        }
        self.strays.retain(Process::is_alive);
        for found in tree::descendants(&roots) {
            if found.group != self.leader && !self.strays.contains(&found) {
                self.strays.push(found);
            }
        }
    }

    /// Signals the group and every descendant that left it. Those gone already are passed over.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.note_strays();
        self.signal_group(signal);
        for stray in &self.strays {
            stray.signal(signal);
        }
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }
}
