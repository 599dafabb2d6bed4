//! Remote server as a service.

use super::{
    call,
    era::{self, EraRefusal},
    hearing::{Heard, Renewal},
    http::{self, HttpOptions},
    link::{Failure, Link, Tasks},
    lists::Lists,
    open::{self, OpenError, Peer},
    options::RemoteOptions,
    parked::Parked,
    pinging::Pinging,
    status::{Status, harmless},
    stream,
    subscription::Subscription,
};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_core::{
    Abilities, BoxFuture, Call, Catalog, Changes, Error, Interest, Kind, List, Op, Outcome, Service,
};
use toolgate_wire::{
    message::{RpcError, code},
    method::{content::Content, definition::ItemKind, output::Output},
};

/// Remote server. Dropping it closes the stream, or ends the HTTP session.
pub struct Remote {
    pub(super) link: Arc<Link>,
    pub(super) peer: Arc<Peer>,
    pub(super) options: Arc<RemoteOptions>,
    /// Calls whose server waits for input.
    pub(super) parked: Arc<Parked>,
    pub(super) lists: Lists,
    pub(super) heard: Heard,
    tasks: Tasks,
    subscription: Option<Subscription>,
    _renewal: Option<Renewal>,
    _pinging: Option<Pinging>,
}

impl Remote {
    /// Opens a server on a pair of byte streams: negotiates the revision and performs the handshake if needed.
    ///
    /// # Errors
    /// [`OpenError`]. After [`OpenError::ClosedDuringProbe`], restart the server and open it without a probe.
    pub async fn open(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: RemoteOptions,
    ) -> Result<Remote, OpenError> {
        let (link, tasks) = stream::start(reader, writer, &options);
        Remote::over(link, tasks, options).await
    }

    /// Opens a server over HTTP: Streamable HTTP in all revisions, or the deprecated HTTP+SSE transport if it supports
    /// nothing newer.
    ///
    /// The server does not depend on a single connection: if one fails, its requests fail, and later ones may succeed.
    /// Only the end of the SSE stream of 2024-11-05 is the end of the server. Dropping the value, or [`Remote::close`],
    /// ends the session, as long as the runtime lives.
    ///
    /// # Errors
    /// [`OpenError`]. [`OpenError::Unusable`] means that the URL is at fault.
    pub async fn connect(
        url: &str,
        mut options: RemoteOptions,
        http: HttpOptions,
    ) -> Result<Remote, OpenError> {
        if http.may_wait() {
            // A slow first request then says nothing about the server's revisions.
            options.probe_wait = options.start;
        }
        let (link, tasks) = http::start(url, &options, http)?;
        Remote::over(link, tasks, options).await
    }

    async fn over(
        link: Arc<Link>,
        tasks: Tasks,
        options: RemoteOptions,
    ) -> Result<Remote, OpenError> {
        let peer = open::open(&link, &options).await?;
        let mut told = vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
        told.retain(|kind| peer.tells_changes(*kind));
        let listens = peer.dialect.stateless && !told.is_empty();
        let subscription = listens
            .then(|| Subscription::start(link.clone(), peer.dialect, &options, told, Vec::new()));
        let heard = Heard::default();
        let renews = !peer.dialect.stateless && link.is_http() && peer.tells_updates();
        let renewal = renews.then(|| Renewal::start(link.clone(), heard.clone(), options.list));
        let pings = options.ping.filter(|_| !peer.dialect.stateless);
        let pinging = pings.map(|every| Pinging::start(link.clone(), every));
        Ok(Remote {
            link,
            peer: Arc::new(peer),
            options: Arc::new(options),
            parked: Arc::default(),
            lists: Lists::default(),
            heard,
            tasks,
            subscription,
            _renewal: renewal,
            _pinging: pinging,
        })
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> &'static str {
        self.peer.dialect.revision
    }

    /// Returns the state of the server, with counters.
    pub fn status(&self) -> Status {
        Status {
            revision: self.revision(),
            server: self.peer.server.clone(),
            tools: self.lists.of(ItemKind::Tool).count(),
            definition_notes: self.definition_notes(),
            counters: self.link.notes.counters(),
            note: self.link.notes.last(),
            unusable: self.link.notes.alerted(),
            parked: self.parked.count(),
            lost: self.link.lost().borrow().clone(),
        }
    }

    /// Waits until the connection is lost, and returns the reason.
    pub async fn closed(&self) -> String {
        let mut lost = self.link.lost();
        let lost = lost.wait_for(Option::is_some).await;
        lost.ok()
            .and_then(|reason| reason.clone())
            .unwrap_or_else(|| "the connection is closed".to_owned())
    }

    /// Closes the connection: the server sees the end of its input, and all calls in flight fail.
    pub fn close(&self) {
        self.link.lose("it was closed by this client");
    }

    /// Closes the connection and waits until the HTTP session is ended, at most 3 s.
    pub async fn end(&self) {
        self.close();
        self.tasks.over().await;
    }

    /// Returns the configured server id.
    pub(super) fn name(&self) -> &str {
        &self.options.origin.server
    }

    /// Returns an error of the server, as [`Kind::Upstream`].
    pub(super) fn upstream(&self, words: impl std::fmt::Display) -> Error {
        Error::new(
            Kind::Upstream,
            format!("the server {} {words}", self.name()),
        )
    }

    /// Returns an error for an unusable answer, as [`Kind::BadAnswer`].
    fn bad_answer(&self, words: impl std::fmt::Display) -> Error {
        Error::new(
            Kind::BadAnswer,
            format!("the server {} {words}", self.name()),
        )
    }

    /// Returns the caller's error for a failed request.
    pub(super) fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Rpc(error) => call::refused(&error),
            Failure::Unsent(error) => error,
            Failure::Malformed(reason) => self.bad_answer(format_args!(
                "sent a malformed reply: {reason}; the call may have taken effect"
            )),
            Failure::Unusable(reason) => self.bad_answer(format_args!(
                "sent an unusable answer, which {reason}; the call may have taken effect"
            )),
            Failure::NoRoom => Error::new(
                Kind::Busy(None),
                format!(
                    "the server {} answered, but the memory budget for messages in flight is exhausted; the call may have taken effect; if a repetition does no harm, try again when other calls have ended",
                    self.name()
                ),
            ),
            Failure::Lost { sent: true } => {
                self.upstream("stopped during the call; it is not known whether it took effect")
            }
            Failure::Lost { sent: false } => {
                self.upstream("stopped before the call was sent; nothing was done")
            }
            Failure::Http {
                words, sent: true, ..
            } => self.upstream(format_args!(
                "{words}; it is not known whether the call took effect"
            )),
            Failure::Http {
                words,
                status: None,
                ..
            } => self.upstream(format_args!("{words}; nothing was done")),
            Failure::Http {
                words, no_token, ..
            } => {
                let error = self.upstream(words);
                match no_token {
                    Some(why) => match why.detail().cloned() {
                        Some(detail) => error.with_detail(detail).because(why),
                        None => error.because(why),
                    },
                    None => error,
                }
            }
        }
    }

    /// As [`Remote::failed`], with advice if the server needs another kind of connection for this call.
    pub(super) fn call_failed(&self, op: Op, failure: Failure) -> Error {
        let refusal = match &failure {
            Failure::Rpc(error) if !self.peer.sessions_only => {
                EraRefusal::of_error(self.peer.dialect, error)
            }
            _ => None,
        };
        // Servers of every revision send this code; since 2026-07-28 they should not.
        let missing = op == Op::Resource
            && matches!(&failure, Failure::Rpc(error) if error.code == code::RESOURCE_NOT_FOUND);
        let error = match self.failed(failure) {
            error if missing => Error::new(Kind::NotFound, error.public().to_owned()),
            error => error,
        };
        match refusal {
            Some(refusal) => refusal.explain(error, &self.options),
            None => error,
        }
    }

    /// Adds advice to a tool error that says that the tool cannot request input over this connection.
    pub(super) fn advise(&self, outcome: &mut Outcome, granted: &Abilities) {
        if !self.peer.dialect.stateless || !era::asks_anything(granted) {
            return;
        }
        if let Outcome::Done(Output::Tool(result)) = outcome
            && result.is_error
            && let Some(refusal) = result.content.iter().find_map(|block| {
                let text = block.json.get("text").and_then(|text| text.string());
                EraRefusal::of_text(&text?)
            })
        {
            let advice = refusal.advice(&self.options);
            result.content.push(Content::text(&advice));
        }
    }

    async fn used(&self, call: Call) -> Result<Outcome, Error> {
        if matches!(call.op, Op::Complete(_)) && !self.peer.completes() {
            let words = format!("the server {} does not support completion", self.name());
            return Err(call::refused(&RpcError::new(code::METHOD_NOT_FOUND, words)));
        }
        if let Some(outcome) = self.resume(&call).await {
            return outcome;
        }
        if call.under_way.is_some() {
            return Err(call.lost());
        }
        let granted = call::granted(&call, &self.peer, &self.options);
        if self.may_ask(&granted) && !self.asks_for_task(&call) {
            return self.asked_in(&call, &granted).await;
        }
        let answer = self.sent(&call).await;
        let result = answer.map_err(|failure| self.call_failed(call.op, failure))?;
        if let Some(task) = self.task_of(&call, &result)? {
            return self.follow(call, task).await;
        }
        self.outcome(&call, &result, &granted)
    }

    /// Returns the error for a result that cannot be read.
    pub(super) fn invalid(&self, reason: &str) -> Error {
        self.bad_answer(format_args!(
            "sent an invalid result: {}",
            harmless(reason, 200)
        ))
    }
}

impl Service for Remote {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(self.list_for(ask))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.used(call))
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move {
            let changes = Changes::new(self.link.changes.subscribe());
            if let Some(lists) = self
                .subscription
                .as_ref()
                .filter(|_| !want.lists.is_empty())
            {
                lists.answered(self.options.list).await;
            }
            if want.uris.is_empty() || !self.peer.tells_updates() {
                return Ok(changes);
            }
            Ok(changes.holding(self.hear_of(want.uris).await))
        })
    }
}
