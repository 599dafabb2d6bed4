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
    next_start: Option<Instant>,
    /// End of the last process or connection.
    ended_at: Option<Instant>,
    /// Number of failed starts so far.
    failed_starts: u64,
    /// True if the last start failed.
    last_start_failed: bool,
    /// True if a call asks for a start before it is due.
    start_requested: bool,
}

impl ConnectionState {
    pub(super) fn new() -> ConnectionState {
        ConnectionState {
            state: ServerState::Starting,
            remote: None,
            restarts: 0,
            error: None,
            next_start: None,
            ended_at: None,
            failed_starts: 0,
            last_start_failed: false,
            start_requested: false,
        }
    }

    pub(super) fn start(&mut self, again: bool) {
        self.state = ServerState::Starting;
        self.remote = None;
        self.next_start = None;
        self.start_requested = false;
        self.restarts += u32::from(again);
    }

    pub(super) fn run(&mut self, remote: Option<Arc<RemoteServer>>) {
        self.state = ServerState::Running;
        self.last_start_failed = false;
        self.remote = remote;
    }

    pub(super) fn end(
        &mut self,
        state: ServerState,
        error: Option<DownReason>,
        due: Option<Instant>,
    ) {
        self.last_start_failed = matches!(self.state, ServerState::Starting | ServerState::Failed);
        self.failed_starts += u64::from(self.last_start_failed);
        self.state = state;
        self.remote = None;
        self.error = error;
        self.next_start = due;
        self.ended_at = Some(Instant::now());
    }

    /// Returns whether it is expected to come up: it starts, or will restart, and the last start did not fail.
    pub(super) fn is_coming_up(&self) -> bool {
        !self.last_start_failed
            && matches!(self.state, ServerState::Starting | ServerState::Backoff)
    }

    /// Returns whether it is not running, and does not start for the first time or after a good run.
    pub(super) fn is_down(&self) -> bool {
        match self.state {
            ServerState::Running => false,
            ServerState::Starting => self.last_start_failed,
            _ => true,
        }
    }

    /// Returns whether it may come up without intervention.
    pub(super) fn may_come_up(&self) -> bool {
        self.state == ServerState::Starting || self.waits_for_restart()
    }

    /// Returns whether it comes up soon enough for a list to wait.
    fn is_coming_up_soon(&self) -> bool {
        let soon = |due: Instant| due.saturating_duration_since(Instant::now()) <= RESTART_GRACE;
        self.is_coming_up() && self.next_start.is_none_or(soon)
    }

    fn waits_for_restart(&self) -> bool {
        matches!(self.state, ServerState::Backoff | ServerState::Failed)
            && self.next_start.is_some()
    }

    fn just_failed(&self) -> bool {
        self.last_start_failed
            && self
                .ended_at
                .is_some_and(|ended| ended.elapsed() < RESTART_GRACE)
    }
}

/// Waits for a server on behalf of a list: only while it comes up soon, and until `deadline`.
pub(super) async fn wait_for_list(
    seats: &watch::Sender<ConnectionState>,
    deadline: Instant,
) -> ConnectionState {
    let mut changes = seats.subscribe();
    let settled = changes.wait_for(|seat| !seat.is_coming_up_soon());
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
            seat.start_requested = seat.waits_for_restart();
            seat.start_requested
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
pub(super) async fn wait_for_start_request(seats: &watch::Sender<ConnectionState>) {
    let mut changes = seats.subscribe();
    let seat = changes.wait_for(|seat| seat.start_requested).await;
    let ended = seat.ok().and_then(|seat| seat.ended_at);
    // It waits for a restart, so something ended.
    sleep_until(ended.unwrap_or_else(Instant::now) + RESTART_GRACE).await;
}
