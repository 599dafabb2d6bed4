//! The end of the guardian: the gateway is gone, and so shall be everything below us.
//!
//! All of it together takes less than two seconds.

use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};

use super::table::{State, Table, wait_for};
use super::tree;

/// For a child that leaves by itself at the end of its standard input.
const GRACE: Duration = Duration::from_millis(300);
/// After SIGTERM.
const TERM: Duration = Duration::from_millis(500);
/// After the first SIGKILL; reached only by a process that hangs in the kernel.
const KILL: Duration = Duration::from_millis(900);
/// Between two rounds of SIGKILL, each of which may meet processes started since the last.
const ROUND: Duration = Duration::from_millis(20);

/// Ends every child and every descendant.
pub(super) fn all(table: &Table) {
    let (state, empty) = wait_for(&table.changed, table.lock(), GRACE, is_empty);
    if empty {
        return;
    }
    signal(&state, Signal::TERM);
    let (mut state, mut empty) = wait_for(&table.changed, state, TERM, is_empty);
    let last = Instant::now() + KILL;
    while !empty && Instant::now() < last {
        signal(&state, Signal::KILL);
        (state, empty) = wait_for(&table.changed, state, ROUND, is_empty);
    }
}

/// On Linux every descendant ends up as our child, so to have none says it all. An empty table
/// means besides that the gateway, if it still listens, was told of every end.
fn is_empty(state: &State) -> bool {
    state.childless && state.entries.is_empty()
}

fn signal(state: &State, signal: Signal) {
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
