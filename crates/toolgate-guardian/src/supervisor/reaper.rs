//! Reaper of exited processes: the children, and on Linux also adopted orphans.

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid};

use super::table::{self, ChildTable, ChildTableState};

/// Runs forever. Waits without reaping, because reaping happens under the lock.
pub(super) fn run(table: &ChildTable) {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => reap(table),
            Err(Errno::INTR) => {}
            Err(_) => sleep_without_children(table),
        }
    }
}

fn reap(table: &ChildTable) {
    let mut state = table.lock();
    reap_under_lock(&mut state);
    table.changed.notify_all();
}

fn reap_under_lock(state: &mut ChildTableState) -> Option<Errno> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => exited(state, pid, status),
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

/// Sleeps while there is no child.
fn sleep_without_children(table: &ChildTable) {
    let mut state = table.lock();
    // Checked again under the lock: a child may just have been started.
    if reap_under_lock(&mut state) == Some(Errno::CHILD) {
        // Leaders that another party reaped, which should not happen: their status is unknown.
        for entry in state.entries.values_mut() {
            entry.running = false;
            entry.changed.notify_all();
        }
        state.childless = true;
    }
    table.changed.notify_all();
    drop(table::wait(&table.changed, state, |state| !state.childless));
}

fn exited(state: &mut ChildTableState, pid: Pid, status: WaitStatus) {
    let leader = state
        .entries
        .values_mut()
        .find(|entry| entry.running && entry.leader == pid);
    if let Some(entry) = leader {
        entry.running = false;
        entry.code = status.exit_status();
        entry.signal = status.terminating_signal();
        entry.changed.notify_all();
        return;
    }
    // An adopted orphan: a shutdown may have waited for it.
    for entry in state.entries.values().filter(|entry| !entry.running) {
        entry.changed.notify_all();
    }
}
