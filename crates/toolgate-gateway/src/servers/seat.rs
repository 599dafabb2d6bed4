//! State of one server's process or connection, and waiting until it is usable.

use super::{ServerState, down_reason::DownReason};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use toolgate::client::RemoteServer;

/// Maximum delay of a restart for which lists wait, and minimum time from the end of one attempt to the next one that
/// a call triggers.
///
/// It keeps a model that repeats a call from starting a broken program endlessly.
const RESTART_GRACE: Duration = Duration::from_secs(2);

/// State of one server's process or connection.
#[derive(Clone)]
pub(super) struct ConnectionState {
    pub(super) state: ServerState,
    pub(super) remote: Option<Arc<RemoteServer>>,
    pub(super) restarts: u32,
    pub(super) error: Option<DownReason>,
    /// Time of the next start.
    due: Option<Instant>,
    /// End of the last process or connection.
    ended: Option<Instant>,
    /// Number of failed starts so far.
    failed_starts: u64,
    /// True if the last start failed.
    fails: bool,
    /// True if a call asks for a start before it is due.
    wanted: bool,
}

impl ConnectionState {
    pub(super) fn new() -> ConnectionState {
        ConnectionState {
            state: ServerState::Starting,
            remote: None,
            restarts: 0,
            error: None,
            due: None,
            ended: None,
            failed_starts: 0,
            fails: false,
            wanted: false,
        }
    }

    pub(super) fn start(&mut self, again: bool) {
        self.state = ServerState::Starting;
        self.remote = None;
        self.due = None;
        self.wanted = false;
        self.restarts += u32::from(again);
    }

    pub(super) fn run(&mut self, remote: Option<Arc<RemoteServer>>) {
        self.state = ServerState::Running;
        self.fails = false;
        self.remote = remote;
    }

    pub(super) fn end(
        &mut self,
        state: ServerState,
        error: Option<DownReason>,
        due: Option<Instant>,
    ) {
        self.fails = matches!(self.state, ServerState::Starting | ServerState::Failed);
        self.failed_starts += u64::from(self.fails);
        self.state = state;
        self.remote = None;
        self.error = error;
        self.due = due;
        self.ended = Some(Instant::now());
    }

    /// Returns whether it is expected to come up: it starts, or will restart, and the last start did not fail.
    pub(super) fn comes_up(&self) -> bool {
        !self.fails && matches!(self.state, ServerState::Starting | ServerState::Backoff)
    }

    /// Returns whether it may come up without intervention.
    pub(super) fn may_come_up(&self) -> bool {
        self.state == ServerState::Starting || self.waits_for_restart()
    }

    /// Returns whether it comes up soon enough for a list to wait.
    fn comes_up_soon(&self) -> bool {
        let soon = |due: Instant| due.saturating_duration_since(Instant::now()) <= RESTART_GRACE;
        self.comes_up() && self.due.is_none_or(soon)
    }

    fn waits_for_restart(&self) -> bool {
        matches!(self.state, ServerState::Backoff | ServerState::Failed) && self.due.is_some()
    }

    fn just_failed(&self) -> bool {
        self.fails
            && self
                .ended
                .is_some_and(|ended| ended.elapsed() < RESTART_GRACE)
    }
}

/// Waits for a server on behalf of a list: only while it comes up soon, and until `deadline`.
pub(super) async fn wait_for_list(
    seats: &watch::Sender<ConnectionState>,
    deadline: Instant,
) -> ConnectionState {
    let mut changes = seats.subscribe();
    let settled = changes.wait_for(|seat| !seat.comes_up_soon());
    match timeout_at(deadline, settled).await {
        Ok(Ok(seat)) => seat.clone(),
        _ => seats.borrow().clone(),
    }
}

/// Waits for a server on behalf of a call, until it is up or a start failed. A server that waits for its restart is
/// started at once if `may_start`.
pub(super) async fn wait_for_call(
    seats: &watch::Sender<ConnectionState>,
    within: Duration,
    may_start: bool,
) -> ConnectionState {
    let mut changes = seats.subscribe();
    let before = changes.borrow_and_update().clone();
    if before.waits_for_restart() {
        if !may_start || before.just_failed() {
            return before;
        }
        seats.send_if_modified(|seat| {
            seat.wanted = seat.waits_for_restart();
            seat.wanted
        });
    }
    let settled =
        changes.wait_for(|seat| !seat.may_come_up() || seat.failed_starts != before.failed_starts);
    match timeout(within, settled).await {
        Ok(Ok(seat)) => seat.clone(),
        _ => seats.borrow().clone(),
    }
}

/// Resolves when a call asks for a server that waits for its restart.
pub(super) async fn wanted(seats: &watch::Sender<ConnectionState>) {
    let mut changes = seats.subscribe();
    let seat = changes.wait_for(|seat| seat.wanted).await;
    let ended = seat.ok().and_then(|seat| seat.ended);
    // It waits for a restart, so something ended.
    sleep_until(ended.unwrap_or_else(Instant::now) + RESTART_GRACE).await;
}
