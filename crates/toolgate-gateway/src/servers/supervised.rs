//! One server as a service, whatever state its child is in.

use super::{
    ServerSpec, ServerStatus, State,
    hearing::{Hearing, Told},
    tail::Tail,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use toolgate::{
    BoxFuture, Call, Catalog, Changed, Changes, Error, Interest, ItemKind, Kind, List, Outcome,
    Service, Stale,
    client::{LeftOut, Remote, harmless},
};

/// A restart that is due so soon is worth waiting for.
const SOON: Duration = Duration::from_secs(2);

/// One server. A call is never sent twice: one that was lost with a child fails.
pub(crate) struct Supervised {
    pub(super) spec: ServerSpec,
    pub(super) tail: Tail,
    seat: watch::Sender<Seat>,
    changes: watch::Sender<Stale>,
    /// Raised with everything that the console shows.
    shown: watch::Sender<u64>,
}

/// The child of the moment.
#[derive(Clone)]
pub(super) struct Seat {
    state: State,
    pub(super) remote: Option<Arc<Remote>>,
    restarts: u32,
    error: Option<String>,
    due: Option<Instant>,
    /// The last child did not come up: nobody waits for the next one.
    open: bool,
}

impl Supervised {
    pub(super) fn new(spec: ServerSpec, shown: watch::Sender<u64>) -> Supervised {
        let seat = Seat {
            state: State::Starting,
            remote: None,
            restarts: 0,
            error: None,
            due: None,
            open: false,
        };
        let (seat, changes) = (
            watch::Sender::new(seat),
            watch::Sender::new(Stale::default()),
        );
        Supervised {
            spec,
            tail: Tail::default(),
            seat,
            changes,
            shown,
        }
    }

    /// A line for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        let seat = self.seat.borrow().clone();
        let remote = seat.remote.as_ref().map(|remote| remote.status());
        let line = |out: &LeftOut| format!("{}: {}", out.tool, out.reason);
        let itself = remote.as_ref().and_then(|r| r.server.as_ref());
        ServerStatus {
            id: self.spec.id.to_string(),
            state: seat.state,
            restarts: seat.restarts,
            error: seat.error,
            stderr: self.tail.lines(),
            tools: remote.as_ref().and_then(|r| r.tools).unwrap_or(0),
            revision: remote.as_ref().map(|r| r.revision),
            server: itself.map(|s| harmless(&format!("{} {}", s.name, s.version), 100)),
            command: self.spec.shown(),
            left_out: remote
                .iter()
                .flat_map(|r| r.left_out.iter().map(line))
                .collect(),
            note: remote.and_then(|r| r.note),
        }
    }

    pub(super) fn starting(&self, again: bool) {
        self.sit(|seat| {
            seat.state = State::Starting;
            seat.due = None;
            seat.restarts += u32::from(again);
        });
    }

    pub(super) fn running(&self, remote: Arc<Remote>) {
        self.sit(|seat| {
            seat.state = State::Running;
            seat.open = false;
            seat.remote = Some(remote);
        });
        self.stale();
    }

    /// Its child is gone, for this reason; when the next one is due.
    pub(super) fn down(&self, state: State, error: Option<String>, due: Option<Instant>) {
        self.sit(|seat| {
            seat.open = matches!(seat.state, State::Starting | State::Failed);
            seat.state = state;
            seat.remote = None;
            seat.error = error;
            seat.due = due;
        });
        self.stale();
    }

    /// Ends its session, where it has one.
    pub(super) async fn end(&self) {
        let remote = self.seat.borrow().remote.clone();
        if let Some(remote) = remote {
            remote.end().await;
        }
    }

    /// Closes the stream to the child, so that the child sees the end of its input.
    pub(super) fn close(&self) {
        if let Some(remote) = &self.seat.borrow().remote {
            remote.close();
        }
    }

    /// All its lists went stale.
    pub(super) fn stale(&self) {
        let all = [ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
        self.tell(&Changed {
            lists: all.to_vec(),
            updated: Vec::new(),
        });
    }

    /// Something of it went stale.
    pub(super) fn tell(&self, changed: &Changed) {
        self.changes.send_modify(|stale| {
            changed.lists.iter().for_each(|kind| stale.list(*kind));
            changed.updated.iter().for_each(|uri| stale.update(uri));
        });
        self.show();
    }

    /// Something that the console shows is new.
    pub(super) fn show(&self) {
        self.shown.send_modify(|version| *version += 1);
    }

    fn sit(&self, change: impl FnOnce(&mut Seat)) {
        self.seat.send_modify(change);
        self.show();
    }

    /// The child, after a bounded wait where it starts or is started again soon.
    async fn remote(&self) -> Result<Arc<Remote>, Error> {
        let mut seats = self.seat.subscribe();
        let settled = seats.wait_for(|seat| !seat.may_come_soon());
        let seat = match timeout(self.spec.wait, settled).await {
            Ok(Ok(seat)) => seat.clone(),
            _ => self.seat.borrow().clone(),
        };
        seat.remote.clone().ok_or_else(|| self.is_down(&seat))
    }

    fn is_down(&self, seat: &Seat) -> Error {
        let id = &self.spec.id;
        let why = match (&seat.error, seat.state) {
            (_, State::Stopped) => "the gateway stops".to_owned(),
            (Some(error), _) => error.clone(),
            (None, _) => format!("it did not answer within {:?} so far", self.spec.wait),
        };
        let text = format!(
            "the server {id} is not running: {why}; its last lines are in the console, under Servers"
        );
        Error::new(Kind::Upstream, text)
    }
}

impl Seat {
    fn may_come_soon(&self) -> bool {
        let soon = |due: Instant| due.saturating_duration_since(Instant::now()) <= SOON;
        match self.state {
            _ if self.open => false,
            State::Starting => true,
            State::Backoff => self.due.is_some_and(soon),
            State::Running | State::Failed | State::Stopped => false,
        }
    }
}

impl Service for Supervised {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move { self.remote().await?.list(ask).await })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { self.remote().await?.call(call).await })
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move {
            let changes = Changes::new(self.changes.subscribe());
            if want.uris.is_empty() {
                return Ok(changes);
            }
            // A child that is down is asked once it is back.
            let told = match self.remote().await {
                Ok(remote) => Some(Told::by(remote, &want).await),
                Err(_) => None,
            };
            let (seats, to) = (self.seat.subscribe(), self.changes.clone());
            Ok(changes.holding(Hearing::start(seats, to, want, told)))
        })
    }
}
