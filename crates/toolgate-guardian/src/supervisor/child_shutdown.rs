//! Shutdown of one child in steps, on a thread of its own: end of standard input, then SIGTERM, then SIGKILL.

use std::io;
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::ChildSupervisor;
use super::table::{ChildTableState, SupervisedChild, wait, wait_for};
use crate::message::{GuardianEvent, WireSteps};

/// Time after SIGTERM for the rest of a process group whose leader exited by itself.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// Interval at which SIGKILL is repeated.
const SIGKILL_REPEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of SIGKILLs before giving up on a process that does not die (its file system hangs, or it belongs to
/// another user now).
const MAX_SIGKILLS: u32 = 10;

/// Starts the thread of a child that is about to be entered in the table, so that its shutdown never fails for want of
/// a thread. Call it under the lock; without an entry the thread ends at once.
pub(super) fn watch(keeper: &Arc<ChildSupervisor>, id: u64) -> io::Result<Arc<Condvar>> {
    let changed = Arc::new(Condvar::new());
    let watch = ChildWatch {
        keeper: Arc::clone(keeper),
        changed: Arc::clone(&changed),
        id,
        reported: false,
    };
    let thread = thread::Builder::new()
        .name(format!("child {id}"))
        .stack_size(256 << 10);
    thread.spawn(move || watch.run()).map(|_| changed)
}

/// Requests the end of a child. The first request sets the timeouts.
pub(super) fn request(keeper: &ChildSupervisor, id: u64, steps: WireSteps) {
    let mut state = keeper.table.lock();
    if let Some(entry) = state.entries.get_mut(&id) {
        entry.record_detached();
        entry.requested_steps.get_or_insert(steps);
        entry.changed.notify_all();
    }
    drop(state);
    keeper.send_event(&GuardianEvent::Ending { id }, &[]);
}

struct ChildWatch {
    keeper: Arc<ChildSupervisor>,
    changed: Arc<Condvar>,
    id: u64,
    reported: bool,
}

impl ChildWatch {
    fn run(mut self) {
        let Some(order) = self.until_order_or_exit() else {
            return;
        };
        if let Some(steps) = order {
            // After the exit of the leader nothing uses the rest of the group, so there is no wait.
            self.until_exit(steps.stdin());
        }
        self.report();
        let mut gone = self.signal(Signal::TERM, order.map_or(LEFTOVER_GRACE, WireSteps::term));
        for _ in 0..MAX_SIGKILLS {
            gone = gone || self.signal(Signal::KILL, SIGKILL_REPEAT_INTERVAL);
        }
        // The order matters: the slot is free when the end is reported, and once the table is empty, everything has
        // been reported.
        if let Some(entry) = self.keeper.table.lock().entries.get_mut(&self.id) {
            entry.ended = true;
        }
        self.keeper
            .send_event(&GuardianEvent::Ended { id: self.id }, &[]);
        self.keeper.table.lock().entries.remove(&self.id);
        self.keeper.table.changed.notify_all();
    }

    /// Waits for a request to end the child, or for its exit (`Some(None)`). `None` without an entry.
    fn until_order_or_exit(&self) -> Option<Option<WireSteps>> {
        let table = &self.keeper.table;
        let waits = |entry: &SupervisedChild| entry.running && entry.requested_steps.is_none();
        let state = wait(&self.changed, table.lock(), |state| {
            !self.entry(state).is_some_and(waits)
        });
        let entry = self.entry(&state)?;
        Some(entry.requested_steps.filter(|_| entry.running))
    }

    fn until_exit(&self, at_most: Duration) {
        let table = &self.keeper.table;
        drop(wait_for(&self.changed, table.lock(), at_most, |state| {
            !self.is_running(state)
        }));
    }

    /// Signals all remaining processes and waits for their death. Returns whether none is left.
    fn signal(&mut self, signal: Signal, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let keeper = Arc::clone(&self.keeper);
        let mut state = keeper.table.lock();
        match state.entries.get_mut(&self.id) {
            Some(entry) if !entry.is_gone() => entry.signal(signal),
            _ => return true,
        }
        drop(wait_for(&self.changed, state, at_most, |state| {
            !self.is_running(state)
        }));
        self.report();
        let left = end.saturating_duration_since(Instant::now());
        wait_for(&self.changed, keeper.table.lock(), left, |state| {
            self.is_gone(state)
        })
        .1
    }

    /// Reports the exit of the leader to the gateway, once.
    fn report(&mut self) {
        let state = self.keeper.table.lock();
        let Some(entry) = self
            .entry(&state)
            .filter(|entry| !entry.running && !self.reported)
        else {
            return;
        };
        let (code, signal) = (entry.code, entry.signal);
        drop(state);
        self.reported = true;
        self.keeper.send_event(
            &GuardianEvent::Exited {
                id: self.id,
                code,
                signal,
            },
            &[],
        );
    }

    fn entry<'a>(&self, state: &'a ChildTableState) -> Option<&'a SupervisedChild> {
        state.entries.get(&self.id)
    }

    fn is_running(&self, state: &ChildTableState) -> bool {
        self.entry(state).is_some_and(|entry| entry.running)
    }

    fn is_gone(&self, state: &ChildTableState) -> bool {
        self.entry(state).is_none_or(SupervisedChild::is_gone)
    }
}
