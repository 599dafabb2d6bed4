//! Shutdown of the guardian: the gateway is gone, so all descendants are ended.
//!
//! The whole shutdown takes less than two seconds.

use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};

use super::table::{ChildTable, ChildTableState, wait_for};
use super::tree;

/// Time for children to exit at the end of their standard input.
const STDIN_GRACE: Duration = Duration::from_millis(300);
/// Time after SIGTERM.
const SIGTERM_GRACE: Duration = Duration::from_millis(500);
/// Time after the first SIGKILL; only a process that hangs in the kernel reaches it.
const SIGKILL_TIMEOUT: Duration = Duration::from_millis(900);
/// Interval of SIGKILL rounds; each round catches processes started since the previous one.
const SIGKILL_INTERVAL: Duration = Duration::from_millis(20);

/// Ends every child and every descendant.
pub(super) fn end_all(table: &ChildTable) {
    let (state, empty) = wait_for(&table.changed, table.lock(), STDIN_GRACE, is_empty);
    if empty {
        return;
    }
    signal(&state, Signal::TERM);
    let (mut state, mut empty) = wait_for(&table.changed, state, SIGTERM_GRACE, is_empty);
    let last = Instant::now() + SIGKILL_TIMEOUT;
    while !empty && Instant::now() < last {
        signal(&state, Signal::KILL);
        (state, empty) = wait_for(&table.changed, state, SIGKILL_INTERVAL, is_empty);
    }
}

/// Returns whether all descendants are gone. On Linux every descendant becomes a child of this process, so the absence
/// of children suffices. An empty table also means that the gateway, if it still listens, was told of every end.
fn is_empty(state: &ChildTableState) -> bool {
    state.childless && state.entries.is_empty()
}

fn signal(state: &ChildTableState, signal: Signal) {
    for entry in state.entries.values() {
        entry.signal_group(signal);
    }
    let leaders: Vec<_> = state.entries.values().map(|entry| entry.leader).collect();
    for process in tree::descendants(&[getpid()]) {
        if !leaders.contains(&process.group) {
            process.signal(signal);
        }
    }
}
