//! One server as a service, whatever state its child is in.

use super::{
    Known, ServerSpec, ServerStatus, State,
    down_reason::DownReason,
    hearing::{Hearing, Told},
    per_caller::PerCaller,
    tail::Tail,
};
use crate::{door::Bearers, signing_in::Need};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};
use toolgate::{
    BoxFuture, Call, Catalog, Changed, Changes, DefinitionNote, Error, Interest, ItemKind, Kind,
    List, NotSent, NoteAction, Outcome, Service, Stale,
    client::{Remote, Status, harmless},
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
    /// Whether a person has to sign in at it.
    pub(super) need: Arc<Need>,
    /// Has it tried again at once.
    wake: Notify,
    /// Raised when what was granted for all its callers is taken back.
    taken_back: watch::Sender<u64>,
    /// What was stored of what it offers.
    known: Option<Arc<Known>>,
    /// The same, as it was looked up when a sign-in was needed.
    looked_up: Mutex<[Option<Catalog>; ItemKind::ALL.len()]>,
    /// The connections of callers, where each has one of its own.
    pub(super) callers: Option<PerCaller>,
    /// Whether it turned out to ask by results, which a session cannot carry.
    pub(super) asks_by_result: watch::Sender<bool>,
}

/// The child of the moment.
#[derive(Clone)]
pub(super) struct Seat {
    state: State,
    pub(super) remote: Option<Arc<Remote>>,
    restarts: u32,
    error: Option<DownReason>,
    due: Option<Instant>,
    /// The last child did not come up: nobody waits for the next one.
    open: bool,
}

impl Supervised {
    pub(super) fn new(
        spec: ServerSpec,
        shown: watch::Sender<u64>,
        known: Option<Arc<Known>>,
        bearers: &Arc<Bearers>,
    ) -> Supervised {
        let each = spec.address.as_ref().filter(|a| a.a_connection_each());
        let callers = each.map(|_| PerCaller::new(spec.callers, bearers.clone()));
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
            need: Arc::new(Need::new(shown.clone())),
            shown,
            wake: Notify::new(),
            taken_back: watch::Sender::new(0),
            known,
            looked_up: Mutex::default(),
            callers,
            asks_by_result: watch::Sender::new(false),
        }
    }

    /// A line for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        let seat = self.seat.borrow().clone();
        let remote = seat.remote.as_ref().map(|remote| remote.status());
        let need = self.need.words().filter(|_| seat.state != State::Stopped);
        let itself = remote.as_ref().and_then(|r| r.server.as_ref());
        ServerStatus {
            id: self.spec.id.to_string(),
            state: need.as_ref().map_or(seat.state, |_| State::SignIn),
            reached: self.callers.as_ref().is_none_or(PerCaller::was_reached),
            restarts: seat.restarts,
            error: match need {
                Some(words) => Some(words.to_string()),
                None => seat.error.map(|why| why.detail().for_operator().to_owned()),
            },
            stderr: self.tail.lines(),
            tools: match &self.callers {
                Some(callers) => callers.tools(),
                None => remote.as_ref().and_then(|r| r.tools).unwrap_or(0),
            },
            revision: remote.as_ref().map(|r| r.revision),
            server: itself.map(|s| harmless(&format!("{} {}", s.name, s.version), 100)),
            signs_in: self.spec.takes_sign_in(),
            signed_in: self.need.had(),
            own_sign_ins: self
                .callers
                .as_ref()
                .filter(|_| self.spec.a_grant_each())
                .map(PerCaller::own_sign_ins),
            command: self.spec.shown(),
            failed_lists: match &self.callers {
                Some(callers) => callers.failed_lists(),
                None => remote.iter().flat_map(failed_lists).collect(),
            },
            unusable: remote.as_ref().and_then(|r| r.unusable.clone()),
            note: remote.and_then(|r| r.note),
        }
    }

    pub(super) fn starting(&self, again: bool) {
        self.sit(|seat| {
            seat.state = State::Starting;
            seat.remote = None;
            seat.due = None;
            seat.restarts += u32::from(again);
        });
    }

    pub(super) fn running(&self, remote: Option<Arc<Remote>>) {
        self.sit(|seat| {
            seat.state = State::Running;
            seat.open = false;
            seat.remote = remote;
            if self.spec.address.is_some() {
                // What was wrong elsewhere, or wanted of a person, is over.
                seat.error = None;
            }
        });
        self.looked_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(None);
        self.stale();
    }

    /// Its child is gone, for this reason; when the next one is due.
    pub(super) fn down(&self, state: State, error: Option<DownReason>, due: Option<Instant>) {
        self.sit(|seat| {
            seat.open = matches!(seat.state, State::Starting | State::Failed);
            seat.state = state;
            seat.remote = None;
            seat.error = error;
            seat.due = due;
        });
        self.stale();
    }

    /// Has it tried again at once, where it waits for that, or a caller connected anew.
    pub(super) fn wake(&self, caller: Option<&str>) {
        if let Some(caller) = caller {
            self.forget(caller);
        }
        self.wake.notify_one();
    }

    /// Whether what it lists of a kind belongs to the account that is used, and not to the server: not to be told to
    /// others, where a person granted each caller an account.
    pub(super) fn is_of_accounts(&self, kind: ItemKind) -> bool {
        self.spec.a_grant_each() && !matches!(kind, ItemKind::Tool | ItemKind::Prompt)
    }

    /// Whether one caller of it has to sign in.
    pub(super) fn own_need(&self) -> Arc<Need> {
        Arc::new(Need::new(self.shown.clone()))
    }

    /// Has a caller connected anew.
    pub(super) fn forget(&self, caller: &str) {
        if let Some(callers) = &self.callers {
            callers.forget(caller);
            // What is shown of it is read anew.
            self.wake.notify_one();
        }
    }

    /// Ends the connections that use what was granted: for that caller, or for all.
    pub(super) fn signed_out(&self, caller: Option<&str>) {
        match (&self.callers, caller) {
            (Some(callers), Some(caller)) => {
                callers.end(caller);
                self.wake.notify_one();
            }
            (None, None) => {
                self.need.forget();
                self.taken_back.send_modify(|times| *times += 1);
            }
            _ => {}
        }
    }

    /// Ends when what was granted from now on is taken back.
    pub(super) fn taken_back(&self) -> impl Future<Output = ()> + use<> {
        let mut times = self.taken_back.subscribe();
        async move {
            // The sender lives as long as the server does.
            let _ = times.changed().await;
        }
    }

    /// Ends when somebody wants it to be tried again.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Ends when somebody signed in at a server that is open and takes no token of ours any more.
    pub(super) async fn signed_in(&self) {
        loop {
            self.woken().await;
            if self.need.words().is_some() {
                return;
            }
        }
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

    /// Is about to be opened again: calls wait for that.
    pub(super) fn reopens(&self) {
        match &self.callers {
            Some(callers) => callers.reconnect(),
            None => self.starting(false),
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
    pub(super) async fn remote(&self) -> Result<Arc<Remote>, Error> {
        let mut seats = self.seat.subscribe();
        let settled = seats.wait_for(|seat| !seat.may_come_soon());
        let seat = match timeout(self.spec.wait, settled).await {
            Ok(Ok(seat)) => seat.clone(),
            _ => self.seat.borrow().clone(),
        };
        seat.remote.clone().ok_or_else(|| self.is_down(&seat))
    }

    /// What it offered when it was last asked, by what is stored: a sign-in that is missing takes nothing off the lists.
    fn last_known(&self, kind: ItemKind) -> Option<Catalog> {
        let known = self.known.as_ref()?;
        let mut all = self
            .looked_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let catalog = all[kind as usize].get_or_insert_with(|| known(&self.spec, kind));
        (!catalog.items().is_empty()).then(|| catalog.clone())
    }

    /// The error, or that a person has to sign in, where that is why.
    pub(super) fn why(&self, error: Error) -> Error {
        self.need.why(&self.spec.id, error)
    }

    fn is_down(&self, seat: &Seat) -> Error {
        let id = &self.spec.id;
        let why = match (&seat.error, seat.state) {
            (_, State::Stopped) => "the gateway stops".to_owned(),
            (Some(error), _) => error.public().to_owned(),
            (None, _) => format!("it did not answer within {:?} so far", self.spec.wait),
        };
        let text = format!(
            "the server {id} is not running: {why}; its last lines are in the console, under Servers"
        );
        let error = Error::new(Kind::Upstream, text).because(NotSent);
        match (&seat.error, seat.state) {
            (_, State::Stopped) | (None, _) => error,
            (Some(reason), _) => error.with_detail(reason.detail().clone()),
        }
    }
}

/// The lists of a server that could not be read the last time.
pub(super) fn failed_lists(status: &Status) -> Vec<DefinitionNote> {
    let notes = status.definition_notes.iter();
    let failed = notes.filter(|note| note.note.action == NoteAction::ListFailed);
    failed.cloned().collect()
}

impl Seat {
    fn may_come_soon(&self) -> bool {
        let soon = |due: Instant| due.saturating_duration_since(Instant::now()) <= SOON;
        match self.state {
            _ if self.open => false,
            State::Starting => true,
            State::Backoff => self.due.is_some_and(soon),
            State::Running | State::SignIn | State::Failed | State::Stopped => false,
        }
    }
}

impl Service for Supervised {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            let kind = ask.kind;
            if let Some(callers) = &self.callers {
                let listed = callers.list(self, ask).await;
                if self.is_of_accounts(kind) {
                    return listed;
                }
                return listed.or_else(|error| self.last_known(kind).ok_or(error));
            }
            let listed = match self.remote().await {
                Ok(remote) => {
                    let listed = remote.list(ask).await;
                    if listed.is_err() {
                        self.show();
                    }
                    listed
                }
                Err(down) => Err(down),
            };
            match listed {
                Err(_) if self.need.words().is_some() => self
                    .last_known(kind)
                    .ok_or_else(|| self.why(Error::new(Kind::Upstream, "it cannot be asked"))),
                listed => listed,
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let again = call.clone();
            match self.called(call).await {
                Err(error) => match self.opened_by_result(&again, &error) {
                    // A server that has no newer revision would give the same again.
                    Some(true) if self.is_stateless().await => self.called(again).await,
                    Some(true) => Err(error),
                    Some(false) => Err(self.sent_once(error)),
                    None => Err(error),
                },
                done => done,
            }
        })
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move {
            let changes = Changes::new(self.changes.subscribe());
            // Which connection would tell of a resource is not said by who listens.
            if want.uris.is_empty() || self.callers.is_some() {
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
