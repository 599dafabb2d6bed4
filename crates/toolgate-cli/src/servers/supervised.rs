//! One server as a service, whatever state its process is in.

use super::{
    LastLists, ServerEvent, ServerOutputs, ServerSpec, ServerState, ServerStatus,
    connection_state::{ConnectionState, wait_for_call, wait_for_list, wait_for_start_request},
    down_reason::DownReason,
    lists::ServerLists,
    per_caller::CallerConnections,
    stderr_tail::StderrTail,
    subscriptions::{ActiveSubscription, ResourceSubscription},
};
use crate::{authentication::CallerTokens, oauth::SignInNeed};
use std::sync::Arc;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use toolgate::client::{ConnectionStatus, RemoteServer, sanitize_line};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeCounters, ChangeFilter, ChangeSet, ChangeStream,
    DefinitionNote, Error, ErrorKind, ItemKind, ListRequest, NotSent, NoteAction, Outcome, Service,
    StartWait,
};

/// One server. A call is never sent twice: a call that is lost with its process fails.
pub(crate) struct SupervisedServer {
    pub(super) spec: ServerSpec,
    pub(super) stderr_tail: StderrTail,
    pub(super) connection: watch::Sender<ConnectionState>,
    changes: watch::Sender<ChangeCounters>,
    /// Counter that is raised with each change that the console shows.
    console_version: watch::Sender<u64>,
    /// Tracker of the need for a person to sign in.
    pub(super) sign_in_need: Arc<SignInNeed>,
    /// Wakes the lifecycle loop for an immediate retry.
    wake: Notify,
    /// Counter that is raised when the credentials of all callers are revoked.
    revocations: watch::Sender<u64>,
    /// Counter that is raised when an operator restarts it.
    restarts: watch::Sender<u64>,
    /// Its lists, also while it is down.
    pub(super) lists: ServerLists,
    /// Connections of callers, if each has one of its own.
    pub(super) caller_connections: Option<CallerConnections>,
    /// True if it sends input requests as results, which a session cannot carry.
    pub(super) input_by_result: watch::Sender<bool>,
    /// Receivers of what it reports.
    pub(super) outputs: ServerOutputs,
}

impl SupervisedServer {
    pub(super) fn new(
        spec: ServerSpec,
        shown: watch::Sender<u64>,
        last: Option<Arc<dyn LastLists>>,
        bearers: &Arc<CallerTokens>,
        outputs: ServerOutputs,
    ) -> SupervisedServer {
        let each = spec.address.as_ref().filter(|a| a.has_caller_connections());
        let callers = each.map(|_| CallerConnections::new(spec.max_callers, bearers.clone()));
        let (seat, changes) = (
            watch::Sender::new(ConnectionState::new()),
            watch::Sender::new(ChangeCounters::default()),
        );
        SupervisedServer {
            stderr_tail: StderrTail::new(outputs.stderr_files.clone(), &spec.id),
            spec,
            connection: seat,
            changes,
            sign_in_need: Arc::new(SignInNeed::new(shown.clone())),
            console_version: shown,
            wake: Notify::new(),
            revocations: watch::Sender::new(0),
            restarts: watch::Sender::new(0),
            lists: ServerLists::new(last),
            caller_connections: callers,
            input_by_result: watch::Sender::new(false),
            outputs,
        }
    }

    /// Returns the status for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        let seat = self.connection.borrow().clone();
        let remote = seat.remote.as_ref().map(|remote| remote.status());
        let need = self
            .sign_in_need
            .message()
            .filter(|_| seat.state != ServerState::Stopped);
        let itself = remote.as_ref().and_then(|r| r.server.as_ref());
        ServerStatus {
            id: self.spec.id.to_string(),
            state: need.as_ref().map_or(seat.state, |_| ServerState::SignIn),
            down: need.is_some() || seat.is_down(),
            reached: self
                .caller_connections
                .as_ref()
                .is_none_or(CallerConnections::was_reached),
            restarts: seat.restarts,
            error: match need {
                Some(words) => Some(words.to_string()),
                None => seat.error.map(|why| why.detail().for_operator().to_owned()),
            },
            stderr: self.stderr_tail.lines(),
            failure_stderr: self.stderr_tail.failure_lines(),
            tools: match &self.caller_connections {
                Some(callers) => callers.tools(),
                None => remote.as_ref().and_then(|r| r.tool_count).unwrap_or(0),
            },
            revision: remote.as_ref().map(|r| r.revision),
            server: itself.map(|s| sanitize_line(&format!("{} {}", s.name, s.version), 100)),
            signs_in: self.spec.has_shared_sign_in(),
            signed_in: self.sign_in_need.had_token(),
            own_sign_ins: self
                .caller_connections
                .as_ref()
                .filter(|_| self.spec.has_caller_credentials())
                .map(CallerConnections::own_sign_ins),
            command: self.spec.display_origin(),
            failed_lists: match &self.caller_connections {
                Some(callers) => callers.failed_lists(),
                None => remote.iter().flat_map(failed_lists).collect(),
            },
            unusable: remote.as_ref().and_then(|r| r.last_alert.clone()),
            note: remote.and_then(|r| r.last_problem),
        }
    }

    pub(super) fn starting(&self, again: bool) {
        self.stderr_tail.begin_run();
        self.update_connection(|seat| seat.start(again));
        if again {
            let restarts = self.connection.borrow().restarts;
            self.report(ServerEvent::Restarting { restarts });
        }
    }

    pub(super) fn running(&self, remote: Option<Arc<RemoteServer>>) {
        let revision = remote.as_ref().map(|remote| remote.status().revision);
        self.update_connection(|seat| {
            seat.run(remote);
            if self.spec.address.is_some() {
                // An earlier connection error or a missing sign-in is over.
                seat.error = None;
            }
        });
        // Lists on behalf of callers are not stored here, so read the storage again.
        self.lists.reset(self.caller_connections.is_some());
        self.mark_all_stale();
        let restarts = self.connection.borrow().restarts;
        self.report(ServerEvent::Started { revision, restarts });
    }

    /// Records that its process or connection is gone, with the reason and the time of the next start.
    pub(super) fn down(&self, state: ServerState, error: Option<DownReason>, due: Option<Instant>) {
        let why = match (self.sign_in_need.message(), &error) {
            (Some(need), _) => need.to_string(),
            (None, Some(error)) => error.detail().for_operator().to_owned(),
            (None, None) => String::new(),
        };
        self.update_connection(|seat| seat.end(state, error, due));
        self.mark_all_stale();
        self.report(match state {
            ServerState::Stopped => ServerEvent::Stopped,
            _ => ServerEvent::Failed {
                why,
                retry: due.map(|due| due.saturating_duration_since(Instant::now())),
                stderr: self.stderr_tail.end_run(),
            },
        });
    }

    fn report(&self, event: ServerEvent) {
        if let Some(observer) = &self.outputs.observer {
            observer(&self.spec.id, event);
        }
    }

    /// Retries a waiting server at once, or makes a caller connect again.
    pub(super) fn retry(&self, caller: Option<&str>) {
        if let Some(caller) = caller {
            self.reconnect_caller(caller);
        }
        self.wake.notify_one();
    }

    /// Restarts it: ends its process or connection, or ends the wait for the next start.
    pub(super) fn restart(&self) {
        self.restarts.send_modify(|times| *times += 1);
        self.wake.notify_one();
    }

    /// Resolves when an operator restarts it from now on.
    pub(super) fn wait_for_restart(&self) -> impl Future<Output = ()> + use<> {
        let mut times = self.restarts.subscribe();
        async move {
            // The sender lives as long as the server.
            let _ = times.changed().await;
        }
    }

    /// Returns whether its items of a kind belong to the account in use. If each caller has an account of its own,
    /// they must not be listed to others.
    pub(super) fn is_account_specific(&self, kind: ItemKind) -> bool {
        self.spec.has_caller_credentials() && !matches!(kind, ItemKind::Tool | ItemKind::Prompt)
    }

    /// Returns a tracker of whether one of its callers has to sign in.
    pub(super) fn caller_sign_in_need(&self) -> Arc<SignInNeed> {
        Arc::new(SignInNeed::new(self.console_version.clone()))
    }

    /// Makes a caller connect again.
    pub(super) fn reconnect_caller(&self, caller: &str) {
        if let Some(callers) = &self.caller_connections {
            callers.drop_connection(caller);
            // The loop then reads the shown sign-ins again.
            self.wake.notify_one();
        }
    }

    /// Closes the connections that use the credentials of one caller or of all.
    pub(super) fn drop_credentials(&self, caller: Option<&str>) {
        match (&self.caller_connections, caller) {
            (Some(callers), Some(caller)) => {
                callers.close_connection(caller);
                self.wake.notify_one();
            }
            (None, None) => {
                self.sign_in_need.forget_token();
                self.revocations.send_modify(|times| *times += 1);
            }
            _ => {}
        }
    }

    /// Resolves when credentials that are read from now on are revoked.
    pub(super) fn wait_for_revocation(&self) -> impl Future<Output = ()> + use<> {
        let mut times = self.revocations.subscribe();
        async move {
            // The sender lives as long as the server.
            let _ = times.changed().await;
        }
    }

    /// Resolves when a retry is requested.
    pub(super) async fn wait_for_retry(&self) {
        self.wake.notified().await;
    }

    /// Resolves when a call asks for a start before it is due.
    pub(super) async fn wait_for_start_request(&self) {
        wait_for_start_request(&self.connection).await;
    }

    /// Resolves when a person signs in to a server that is open but rejects our token.
    pub(super) async fn wait_for_sign_in(&self) {
        loop {
            self.wait_for_retry().await;
            if self.sign_in_need.message().is_some() {
                return;
            }
        }
    }

    /// Ends its session, if it has one.
    pub(super) async fn end_session(&self) {
        let remote = self.connection.borrow().remote.clone();
        if let Some(remote) = remote {
            remote.close_and_wait().await;
        }
    }

    /// Closes the stream to the process, so that the process sees the end of its input.
    pub(super) fn close(&self) {
        if let Some(remote) = &self.connection.borrow().remote {
            remote.close();
        }
    }

    /// Marks it as about to be opened again; calls wait for that.
    pub(super) fn mark_reopening(&self) {
        match &self.caller_connections {
            Some(callers) => callers.reconnect(),
            None => self.starting(false),
        }
    }

    /// Reports all its lists as stale.
    pub(super) fn mark_all_stale(&self) {
        let all = [ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
        self.mark_stale(&ChangeSet::of_lists(all.to_vec()));
    }

    /// Reports changed lists and resources.
    pub(super) fn mark_stale(&self, changed: &ChangeSet) {
        self.changes.send_modify(|stale| {
            changed
                .lists
                .iter()
                .for_each(|kind| stale.count_list_change(*kind));
            changed
                .updated
                .iter()
                .for_each(|uri| stale.count_update(uri));
        });
        self.notify_console();
    }

    /// Reports a change that the console shows.
    pub(super) fn notify_console(&self) {
        self.console_version.send_modify(|version| *version += 1);
    }

    fn update_connection(&self, change: impl FnOnce(&mut ConnectionState)) {
        self.connection.send_modify(change);
        self.notify_console();
    }

    /// Returns its state once it is up or is not expected to come up, after a bounded wait.
    pub(super) async fn wait_until_settled(&self, wait: StartWait, known: bool) -> ConnectionState {
        match wait {
            StartWait::Call => {
                let may_start = self.sign_in_need.message().is_none();
                wait_for_call(&self.connection, self.spec.call_start_wait, may_start).await
            }
            StartWait::List if !known => {
                let deadline = self.lists.first_deadline(self.spec.list_start_wait);
                wait_for_list(&self.connection, deadline).await
            }
            _ => self.connection.borrow().clone(),
        }
    }

    /// Returns the last known list, from this run or an earlier one. A server that is down keeps its items in the
    /// lists.
    pub(super) fn last_known(&self, kind: ItemKind) -> Option<Catalog> {
        self.lists.last_known(&self.spec, kind)
    }

    async fn list_shared(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let (kind, known) = (ask.kind, self.last_known(ask.kind));
        let seat = self
            .wait_until_settled(ask.start_wait, known.is_some())
            .await;
        let (error, stands_in) = match &seat.remote {
            Some(remote) => match self.list_running(remote, ask).await {
                Ok(catalog) => return Ok(catalog),
                Err(error) => (error, self.lists.is_late(kind)),
            },
            None => (self.down_error(&seat), seat.is_coming_up()),
        };
        if self.sign_in_need.message().is_some() {
            let cannot =
                || self.explain_error(Error::new(ErrorKind::Upstream, "it needs a sign-in first"));
            return known
                .filter(|known| !known.items().is_empty())
                .ok_or_else(cannot);
        }
        known.filter(|_| stands_in).ok_or(error)
    }

    /// Lists a running server. A list that takes too long is waited for once, and then read in the background.
    async fn list_running(
        &self,
        remote: &RemoteServer,
        ask: ListRequest,
    ) -> Result<Catalog, Error> {
        let (kind, is_call) = (ask.kind, ask.start_wait == StartWait::Call);
        let listed = match is_call {
            true => Some(remote.list(ask).await),
            false => {
                self.lists
                    .within(kind, self.spec.list_start_wait, remote.list(ask))
                    .await
            }
        };
        let Some(listed) = listed else {
            let id = &self.spec.id;
            let text = format!(
                "the server {id} is running, but has not listed its {}s yet; try again in a moment",
                kind.as_str()
            );
            return Err(Error::new(ErrorKind::Upstream, text).caused_by_starting([id.clone()]));
        };
        // The console shows failed lists.
        let catalog = listed.inspect_err(|_| self.notify_console())?;
        self.lists.store(&self.spec, kind, &catalog).await;
        Ok(catalog)
    }

    pub(super) async fn call_shared(&self, call: Call) -> Result<Outcome, Error> {
        let is_up = self.connection.borrow().remote.is_some();
        let kind = call.item().map(|item| item.kind());
        let judged = kind
            .filter(|_| !is_up)
            .and_then(|kind| self.last_known(kind));
        let seat = self.wait_until_settled(StartWait::Call, true).await;
        let remote = seat.remote.as_ref().ok_or_else(|| self.down_error(&seat))?;
        if let Some(judged) = judged {
            Box::pin(self.check_still_offered(remote, &call, &judged)).await?;
        }
        remote.call(call).await
    }

    /// Checks that a server that came up while the call waited still offers the definition that the rules decided on.
    async fn check_still_offered(
        &self,
        remote: &RemoteServer,
        call: &Call,
        judged: &Catalog,
    ) -> Result<(), Error> {
        let Some(item) = call.item() else {
            return Ok(());
        };
        let (kind, name) = (item.kind(), item.upstream_name());
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
        let (id, what) = (&self.spec.id, kind.as_str());
        let text = format!(
            "not called: the server {id} was still starting, and its {what} {name} differs from the one that was listed; list again"
        );
        Err(Error::new(ErrorKind::Upstream, text).with_source(NotSent))
    }

    /// Returns the error, or the need for a sign-in if that is the cause.
    pub(super) fn explain_error(&self, error: Error) -> Error {
        self.sign_in_need.explain_error(&self.spec.id, error)
    }

    fn down_error(&self, seat: &ConnectionState) -> Error {
        let id = &self.spec.id;
        let why = match (&seat.error, seat.state) {
            (_, ServerState::Stopped) => "the gateway is stopping".to_owned(),
            (Some(error), _) => error.public().to_owned(),
            (None, _) => "it is still starting".to_owned(),
        };
        let failed = seat.error.is_some() && seat.state != ServerState::Stopped;
        let hint = match failed && self.spec.address.is_none() {
            true => "; the console shows the last lines of its stderr under Servers",
            false => "",
        };
        let text = format!("the server {id} is not running: {why}{hint}");
        let error = Error::new(ErrorKind::Upstream, text).with_source(NotSent);
        let error = match (&seat.error, seat.state) {
            (_, ServerState::Stopped) | (None, _) => error,
            (Some(reason), _) => error.with_detail(reason.detail().clone()),
        };
        match seat.may_come_up() {
            true => error.caused_by_starting([id.clone()]),
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
            if let Some(callers) = &self.caller_connections {
                // Boxed, because it may connect: the future of a shared connection stays small.
                let listed = Box::pin(callers.list(self, ask)).await;
                if self.is_account_specific(kind) {
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
            match self.send_call(call).await {
                Err(error) => match self.reopen_for_input(&again, &error) {
                    // A server without a newer revision would fail the same way.
                    Some(true) if Box::pin(self.carries_input_by_result()).await => {
                        Box::pin(self.send_call(again)).await
                    }
                    Some(true) => Err(error),
                    Some(false) => Err(self.not_resent_error(error)),
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
            if want.uris.is_empty() || self.caller_connections.is_some() {
                return Ok(changes);
            }
            // A process that is down gets the subscription once it is back.
            let told = match self.wait_until_settled(StartWait::List, false).await.remote {
                Some(remote) => Some(ActiveSubscription::subscribe(remote, &want).await),
                None => None,
            };
            let (seats, to) = (self.connection.subscribe(), self.changes.clone());
            Ok(changes.keep_alive(ResourceSubscription::start(seats, to, want, told)))
        })
    }
}
