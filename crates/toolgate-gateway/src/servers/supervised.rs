//! One server as a service, whatever state its process is in.

use super::{
    LastLists, ServerSpec, ServerState, ServerStatus,
    down_reason::DownReason,
    hearing::{ActiveSubscription, ResourceSubscription},
    lists::ServerLists,
    per_caller::CallerConnections,
    seat::{ConnectionState, wait_for_call, wait_for_list, wanted},
    tail::StderrTail,
};
use crate::{door::CallerTokens, signing_in::SignInNeed};
use std::sync::Arc;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use toolgate::{
    BoxFuture, Call, Catalog, ChangeCounters, ChangeFilter, ChangeSet, ChangeStream,
    DefinitionNote, Error, ErrorKind, ItemKind, ListRequest, NotSent, NoteAction, Outcome, Service,
    StartWait,
    client::{ConnectionStatus, RemoteServer, harmless},
};

/// One server. A call is never sent twice: a call that is lost with its process fails.
pub(crate) struct SupervisedServer {
    pub(super) spec: ServerSpec,
    pub(super) tail: StderrTail,
    pub(super) seat: watch::Sender<ConnectionState>,
    changes: watch::Sender<ChangeCounters>,
    /// Counter that is raised with each change that the console shows.
    shown: watch::Sender<u64>,
    /// Tracker of the need for a person to sign in.
    pub(super) need: Arc<SignInNeed>,
    /// Wakes the lifecycle loop for an immediate retry.
    wake: Notify,
    /// Counter that is raised when the credentials of all callers are revoked.
    taken_back: watch::Sender<u64>,
    /// Its lists, also while it is down.
    pub(super) lists: ServerLists,
    /// Connections of callers, if each has one of its own.
    pub(super) callers: Option<CallerConnections>,
    /// True if it sends input requests as results, which a session cannot carry.
    pub(super) asks_by_result: watch::Sender<bool>,
}

impl SupervisedServer {
    pub(super) fn new(
        spec: ServerSpec,
        shown: watch::Sender<u64>,
        last: Option<Arc<dyn LastLists>>,
        bearers: &Arc<CallerTokens>,
    ) -> SupervisedServer {
        let each = spec.address.as_ref().filter(|a| a.a_connection_each());
        let callers = each.map(|_| CallerConnections::new(spec.callers, bearers.clone()));
        let (seat, changes) = (
            watch::Sender::new(ConnectionState::new()),
            watch::Sender::new(ChangeCounters::default()),
        );
        SupervisedServer {
            spec,
            tail: StderrTail::default(),
            seat,
            changes,
            need: Arc::new(SignInNeed::new(shown.clone())),
            shown,
            wake: Notify::new(),
            taken_back: watch::Sender::new(0),
            lists: ServerLists::new(last),
            callers,
            asks_by_result: watch::Sender::new(false),
        }
    }

    /// Returns the status for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        let seat = self.seat.borrow().clone();
        let remote = seat.remote.as_ref().map(|remote| remote.status());
        let need = self
            .need
            .words()
            .filter(|_| seat.state != ServerState::Stopped);
        let itself = remote.as_ref().and_then(|r| r.server.as_ref());
        ServerStatus {
            id: self.spec.id.to_string(),
            state: need.as_ref().map_or(seat.state, |_| ServerState::SignIn),
            reached: self
                .callers
                .as_ref()
                .is_none_or(CallerConnections::was_reached),
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
                .map(CallerConnections::own_sign_ins),
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
        self.sit(|seat| seat.start(again));
    }

    pub(super) fn running(&self, remote: Option<Arc<RemoteServer>>) {
        self.sit(|seat| {
            seat.run(remote);
            if self.spec.address.is_some() {
                // An earlier connection error or a missing sign-in is over.
                seat.error = None;
            }
        });
        // Lists on behalf of callers are not stored here, so read the storage again.
        self.lists.begin(self.callers.is_some());
        self.stale();
    }

    /// Records that its process or connection is gone, with the reason and the time of the next start.
    pub(super) fn down(&self, state: ServerState, error: Option<DownReason>, due: Option<Instant>) {
        self.sit(|seat| seat.end(state, error, due));
        self.stale();
    }

    /// Retries a waiting server at once, or makes a caller connect again.
    pub(super) fn wake(&self, caller: Option<&str>) {
        if let Some(caller) = caller {
            self.forget(caller);
        }
        self.wake.notify_one();
    }

    /// Returns whether its items of a kind belong to the account in use. If each caller has an account of its own,
    /// they must not be listed to others.
    pub(super) fn is_of_accounts(&self, kind: ItemKind) -> bool {
        self.spec.a_grant_each() && !matches!(kind, ItemKind::Tool | ItemKind::Prompt)
    }

    /// Returns a tracker of whether one of its callers has to sign in.
    pub(super) fn own_need(&self) -> Arc<SignInNeed> {
        Arc::new(SignInNeed::new(self.shown.clone()))
    }

    /// Makes a caller connect again.
    pub(super) fn forget(&self, caller: &str) {
        if let Some(callers) = &self.callers {
            callers.forget(caller);
            // The loop then reads the shown sign-ins again.
            self.wake.notify_one();
        }
    }

    /// Closes the connections that use the credentials of one caller or of all.
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

    /// Resolves when credentials that are read from now on are revoked.
    pub(super) fn taken_back(&self) -> impl Future<Output = ()> + use<> {
        let mut times = self.taken_back.subscribe();
        async move {
            // The sender lives as long as the server.
            let _ = times.changed().await;
        }
    }

    /// Resolves when a retry is requested.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Resolves when a call asks for a start before it is due.
    pub(super) async fn wanted(&self) {
        wanted(&self.seat).await;
    }

    /// Resolves when a person signs in to a server that is open but rejects our token.
    pub(super) async fn signed_in(&self) {
        loop {
            self.woken().await;
            if self.need.words().is_some() {
                return;
            }
        }
    }

    /// Ends its session, if it has one.
    pub(super) async fn end(&self) {
        let remote = self.seat.borrow().remote.clone();
        if let Some(remote) = remote {
            remote.end().await;
        }
    }

    /// Closes the stream to the process, so that the process sees the end of its input.
    pub(super) fn close(&self) {
        if let Some(remote) = &self.seat.borrow().remote {
            remote.close();
        }
    }

    /// Marks it as about to be opened again; calls wait for that.
    pub(super) fn reopens(&self) {
        match &self.callers {
            Some(callers) => callers.reconnect(),
            None => self.starting(false),
        }
    }

    /// Reports all its lists as stale.
    pub(super) fn stale(&self) {
        let all = [ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
        self.tell(&ChangeSet {
            lists: all.to_vec(),
            updated: Vec::new(),
        });
    }

    /// Reports changed lists and resources.
    pub(super) fn tell(&self, changed: &ChangeSet) {
        self.changes.send_modify(|stale| {
            changed.lists.iter().for_each(|kind| stale.list(*kind));
            changed.updated.iter().for_each(|uri| stale.update(uri));
        });
        self.show();
    }

    /// Reports a change that the console shows.
    pub(super) fn show(&self) {
        self.shown.send_modify(|version| *version += 1);
    }

    fn sit(&self, change: impl FnOnce(&mut ConnectionState)) {
        self.seat.send_modify(change);
        self.show();
    }

    /// Returns its state once it is up or is not expected to come up, after a bounded wait.
    pub(super) async fn settled(&self, wait: StartWait, known: bool) -> ConnectionState {
        match wait {
            StartWait::Call => {
                let may_start = self.need.words().is_none();
                wait_for_call(&self.seat, self.spec.call_wait, may_start).await
            }
            StartWait::List if !known => {
                let deadline = self.lists.first_deadline(self.spec.list_wait);
                wait_for_list(&self.seat, deadline).await
            }
            StartWait::List | StartWait::None => self.seat.borrow().clone(),
        }
    }

    /// Returns the last known list, from this run or an earlier one. A server that is down keeps its items in the
    /// lists.
    pub(super) fn last_known(&self, kind: ItemKind) -> Option<Catalog> {
        self.lists.last_known(&self.spec, kind)
    }

    async fn list_shared(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let (kind, known) = (ask.kind, self.last_known(ask.kind));
        let seat = self.settled(ask.wait, known.is_some()).await;
        let (error, stands_in) = match &seat.remote {
            Some(remote) => match self.list_of(remote, ask).await {
                Ok(catalog) => return Ok(catalog),
                Err(error) => (error, self.lists.is_late(kind)),
            },
            None => (self.is_down(&seat), seat.comes_up()),
        };
        if self.need.words().is_some() {
            let cannot = || self.why(Error::new(ErrorKind::Upstream, "it cannot be asked"));
            return known
                .filter(|known| !known.items().is_empty())
                .ok_or_else(cannot);
        }
        known.filter(|_| stands_in).ok_or(error)
    }

    /// Lists a running server. A list that takes too long is waited for once, and then read in the background.
    async fn list_of(&self, remote: &RemoteServer, ask: ListRequest) -> Result<Catalog, Error> {
        let (kind, is_call) = (ask.kind, ask.wait == StartWait::Call);
        let listed = match is_call {
            true => Some(remote.list(ask).await),
            false => {
                self.lists
                    .in_time(kind, self.spec.list_wait, remote.list(ask))
                    .await
            }
        };
        let Some(listed) = listed else {
            let id = &self.spec.id;
            let text = format!(
                "the server {id} is running, but has not listed its {}s yet",
                kind.word()
            );
            return Err(Error::new(ErrorKind::Upstream, text).while_starting([id.clone()]));
        };
        // The console shows failed lists.
        let catalog = listed.inspect_err(|_| self.show())?;
        self.lists.remember(&self.spec, kind, &catalog).await;
        Ok(catalog)
    }

    pub(super) async fn call_shared(&self, call: Call) -> Result<Outcome, Error> {
        let is_up = self.seat.borrow().remote.is_some();
        let kind = call.item().map(|item| item.kind());
        let judged = kind
            .filter(|_| !is_up)
            .and_then(|kind| self.last_known(kind));
        let seat = self.settled(StartWait::Call, true).await;
        let remote = seat.remote.as_ref().ok_or_else(|| self.is_down(&seat))?;
        if let Some(judged) = judged {
            self.still_offers(remote, &call, &judged).await?;
        }
        remote.call(call).await
    }

    /// Checks that a server that came up while the call waited still offers the definition that the rules decided on.
    async fn still_offers(
        &self,
        remote: &RemoteServer,
        call: &Call,
        judged: &Catalog,
    ) -> Result<(), Error> {
        let Some(item) = call.item() else {
            return Ok(());
        };
        let (kind, name) = (item.kind(), item.given());
        if !matches!(kind, ItemKind::Tool | ItemKind::Prompt) {
            return Ok(());
        }
        let now = remote
            .list(ListRequest::one(call.caller.clone(), kind, name))
            .await?;
        let text = |list: &Catalog| list.find(name).map(|item| item.def.json().canonical());
        if text(&now) == text(judged) {
            return Ok(());
        }
        let (id, what) = (&self.spec.id, kind.word());
        let text = format!(
            "not called: the server {id} was still starting, and its {what} {name} differs from the one that was listed; list again"
        );
        Err(Error::new(ErrorKind::Upstream, text).because(NotSent))
    }

    /// Returns the error, or the need for a sign-in if that is the cause.
    pub(super) fn why(&self, error: Error) -> Error {
        self.need.why(&self.spec.id, error)
    }

    fn is_down(&self, seat: &ConnectionState) -> Error {
        let id = &self.spec.id;
        let why = match (&seat.error, seat.state) {
            (_, ServerState::Stopped) => "the gateway stops".to_owned(),
            (Some(error), _) => error.public().to_owned(),
            (None, _) => "it is still starting".to_owned(),
        };
        let text = format!(
            "the server {id} is not running: {why}; the last lines of its stderr are in the console, under Servers"
        );
        let error = Error::new(ErrorKind::Upstream, text).because(NotSent);
        let error = match (&seat.error, seat.state) {
            (_, ServerState::Stopped) | (None, _) => error,
            (Some(reason), _) => error.with_detail(reason.detail().clone()),
        };
        match seat.may_come_up() {
            true => error.while_starting([id.clone()]),
            false => error,
        }
    }
}

/// Returns the lists of a server that could not be read the last time.
pub(super) fn failed_lists(status: &ConnectionStatus) -> Vec<DefinitionNote> {
    let notes = status.definition_notes.iter();
    let failed = notes.filter(|note| note.note.action == NoteAction::ListFailed);
    failed.cloned().collect()
}

impl Service for SupervisedServer {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            let kind = ask.kind;
            if let Some(callers) = &self.callers {
                let listed = callers.list(self, ask).await;
                if self.is_of_accounts(kind) {
                    return listed;
                }
                let known = || {
                    self.last_known(kind)
                        .filter(|known| !known.items().is_empty())
                };
                return listed.or_else(|error| known().ok_or(error));
            }
            self.list_shared(ask).await
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let again = call.clone();
            match self.called(call).await {
                Err(error) => match self.opened_by_result(&again, &error) {
                    // A server without a newer revision would fail the same way.
                    Some(true) if self.is_stateless().await => self.called(again).await,
                    Some(true) => Err(error),
                    Some(false) => Err(self.sent_once(error)),
                    None => Err(error),
                },
                done => done,
            }
        })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async move {
            let changes = ChangeStream::new(self.changes.subscribe());
            // The listener's identity does not say which caller's connection would report a resource.
            if want.uris.is_empty() || self.callers.is_some() {
                return Ok(changes);
            }
            // A process that is down gets the subscription once it is back.
            let told = match self.settled(StartWait::List, false).await.remote {
                Some(remote) => Some(ActiveSubscription::by(remote, &want).await),
                None => None,
            };
            let (seats, to) = (self.seat.subscribe(), self.changes.clone());
            Ok(changes.holding(ResourceSubscription::start(seats, to, want, told)))
        })
    }
}
