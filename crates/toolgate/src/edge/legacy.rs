//! A client of the revisions with a handshake, on any transport.

use super::{
    MissedPings, ProtocolServer,
    answer::{self, RequestResult},
    ask::InputRequester,
    call::{self, RequestContext},
    changes, lists,
    outlet::{OutgoingFrame, OutgoingFrames, Responder, level},
    pinging::ServerKeepaliveTask,
    tasks,
    telling::ChangeNotifier,
    working::{self, RequestWork},
};
use futures_util::future::{AbortHandle, Abortable};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::timeout,
};
use toolgate_core::{BoxFuture, Caller, DecisionLog, Error, ErrorKind, ItemKind};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::{Json, ObjectWriter},
    message::{self, Id, JsonRpcMessage, RpcError, code},
    method::{
        self, initialize, meta::RequestMeta, notifications, resources_read, trace::TraceContext,
        usage,
    },
    session::{RequestTable, RequestTableError},
};

type ClientResponseSender = oneshot::Sender<Result<Json, RpcError>>;

/// The state of one client after `initialize`.
pub(crate) struct InitializedClient {
    server: Arc<ProtocolServer>,
    context: RequestContext,
    level: Mutex<Option<u8>>,
    table: Mutex<RequestTable<ClientResponseSender, RequestWork>>,
    /// Sends change notifications until the client is gone.
    telling: Arc<ChangeNotifier>,
    /// Notified when the work on a request ends.
    ended: Notify,
    /// True once the client sent `notifications/initialized`. Before that, the server sends it no requests.
    ready: watch::Sender<bool>,
    /// The keepalive pings, while a notification stream is open.
    pinging: Mutex<Option<ServerKeepaliveTask>>,
    /// True once the client missed its pings.
    gone: watch::Sender<bool>,
}

/// Time that a request to the client waits for `notifications/initialized`: some clients send calls before it.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

impl InitializedClient {
    /// Handles `initialize`: returns the client's state and the result.
    pub(crate) fn open(
        server: Arc<ProtocolServer>,
        caller: Caller,
        transport: &'static str,
        link: Option<u64>,
        params: Option<&Json>,
    ) -> Result<(Arc<InitializedClient>, Json), RpcError> {
        let wrong = || {
            answer::bad_params(
                "initialize needs \"protocolVersion\", \"capabilities\" and \"clientInfo\"",
            )
        };
        let params = initialize::InitializeParams::read(params).ok_or_else(wrong)?;
        // A supported version is accepted. For any other version, and for a stateless one, the newest revision with a
        // handshake is offered.
        let dialect = dialect::find(&params.version)
            .filter(|d| !d.stateless)
            .unwrap_or(dialect::LEGACY);
        let telling = ChangeNotifier::new(server.clone(), caller.clone(), dialect);
        let context = RequestContext {
            caller,
            transport,
            dialect,
            abilities: call::abilities(&params.capabilities, dialect),
            client: params
                .client
                .map(|c| format!("{} {}", c.name, c.version).into()),
            log_level: None,
            progress: None,
            trace: TraceContext::default(),
            link,
            session: telling.tasks.clone(),
            trail: DecisionLog::default(),
        };
        let answer = initialize::InitializeResult {
            version: dialect.revision.to_owned(),
            capabilities: server.capabilities(dialect, link.is_some()),
            server: dialect.implementation(server.info.clone()),
            instructions: server.instructions(&context.caller),
        };
        let table = Mutex::new(RequestTable::new(server.limits.in_flight));
        let level = Mutex::new(level("info"));
        let legacy = InitializedClient {
            server,
            context,
            level,
            table,
            telling,
            ended: Notify::new(),
            ready: watch::Sender::new(false),
            pinging: Mutex::default(),
            gone: watch::Sender::new(false),
        };
        Ok((Arc::new(legacy), answer.json()))
    }

    /// Returns the negotiated revision.
    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.context.dialect
    }

    /// Handles a message of the client. Replies and events go to `outlet`; this never waits for a call to end.
    pub(crate) async fn receive(self: &Arc<Self>, message: JsonRpcMessage, outlet: &Responder) {
        let caller = self.context.caller.clone();
        self.receive_of(caller, message, outlet).await;
    }

    /// Handles a message of the same caller with its own token, which determines the current permissions.
    pub(crate) async fn receive_of(
        self: &Arc<Self>,
        caller: Caller,
        message: JsonRpcMessage,
        outlet: &Responder,
    ) {
        match message {
            JsonRpcMessage::Request { id, method, params } => {
                self.request(caller, id, method, params, outlet).await
            }
            JsonRpcMessage::Notification { method, params } => {
                self.notified(&method, params.as_ref())
            }
            JsonRpcMessage::Reply { id, answer } => self.replied(id, answer),
        }
    }

    async fn request(
        self: &Arc<Self>,
        caller: Caller,
        id: Id,
        method: String,
        params: Option<Json>,
        outlet: &Responder,
    ) {
        let (handle, registration) = AbortHandle::new_pair();
        // Added to the table before the work can end.
        let trail = DecisionLog::default();
        let work = RequestWork::new(handle, trail.clone());
        let accepted = self.table().accept(&id, work);
        if let Err(refusal) = accepted {
            // Rare cases are boxed, so that the future of a request is small.
            let method = (method.as_str(), params.as_ref());
            return Box::pin(self.refuse(&id, method, refusal, outlet)).await;
        }
        let work = self
            .clone()
            .work((caller, trail), id, method, params, outlet.clone());
        working::begin(Box::pin(Abortable::new(work, registration))).await;
    }

    async fn refuse(
        &self,
        id: &Id,
        request: (&str, Option<&Json>),
        refusal: RequestTableError,
        outlet: &Responder,
    ) {
        let why = refused(refusal);
        let (caller, transport) = (&self.context.caller, self.context.transport);
        let recorded = self
            .server
            .refused_request(caller, transport, request, &why);
        recorded.await;
        outlet.send(answer::frame(Some(id), &Err(why))).await;
    }

    async fn work(
        self: Arc<Self>,
        from: (Caller, DecisionLog),
        id: Id,
        method: String,
        params: Option<Json>,
        outlet: Responder,
    ) {
        let answer = self
            .answer(from, &id, &method, params.as_ref(), &outlet)
            .await;
        // A cancelled request gets no reply.
        if self.table().finish(&id).is_some() {
            let words = (self.context.dialect, &self.server.signature);
            outlet.send(answer::reply(&id, answer, words)).await;
        }
        if let Some(tasks) = &self.context.session {
            tasks.answered();
        }
        self.ended.notify_waiters();
    }

    async fn answer(
        &self,
        (caller, trail): (Caller, DecisionLog),
        id: &Id,
        method: &str,
        params: Option<&Json>,
        outlet: &Responder,
    ) -> Result<RequestResult, RpcError> {
        let dialect = self.context.dialect;
        match method {
            method::PING => Ok(dialect.empty(&self.server.info).into()),
            method::SET_LEVEL => self.set_level(params).map(RequestResult::Made),
            resources_read::SUBSCRIBE => {
                let done = Box::pin(self.subscribe(params, true)).await;
                done.map(RequestResult::Made)
            }
            resources_read::UNSUBSCRIBE => {
                let done = Box::pin(self.subscribe(params, false)).await;
                done.map(RequestResult::Made)
            }
            used if usage::is_usage(used) => {
                let mut context = self.context.clone();
                context.caller = caller;
                context.trail = trail;
                context.log_level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
                let meta = RequestMeta::of(params);
                context.trace = meta.trace();
                context.progress = meta.progress;
                let asker = InlineRequester {
                    legacy: self,
                    outlet,
                };
                call::run(
                    &self.server,
                    &context,
                    id,
                    used,
                    params,
                    outlet,
                    Some(&asker),
                )
                .await
            }
            used if tasks::is_method(&self.server, &self.context, used) => {
                let asker = InlineRequester {
                    legacy: self,
                    outlet,
                };
                let context = RequestContext {
                    caller,
                    ..self.context.clone()
                };
                let answer = tasks::answer(&self.server, &context, used, params, Some(&asker));
                Box::pin(answer).await.map(RequestResult::Made)
            }
            initialize::NAME => Err(RpcError::new(
                code::INVALID_REQUEST,
                "initialize is allowed only once, and was already sent",
            )),
            // Skills exist only in 2026-07-28 and later.
            other => match ItemKind::listed_by(other).filter(|kind| *kind != ItemKind::Skill) {
                Some(kind) => {
                    let page = lists::page(
                        &self.server,
                        dialect,
                        &caller,
                        (kind, params),
                        Some(&self.telling.given),
                    );
                    Box::pin(page).await.map(RequestResult::Made)
                }
                None => Err(answer::no_method(other)),
            },
        }
    }

    fn set_level(&self, params: Option<&Json>) -> Result<Json, RpcError> {
        let word = params.and_then(|p| p.get("level")).and_then(|l| l.string());
        let Some(rank) = word.as_deref().and_then(level) else {
            return Err(answer::bad_params(
                "\"level\" must be one of debug, info, notice, warning, error, critical, alert, emergency",
            ));
        };
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(rank);
        Ok(self.context.dialect.empty(&self.server.info))
    }

    fn notified(&self, method: &str, params: Option<&Json>) {
        match method {
            initialize::INITIALIZED => drop(self.ready.send_replace(true)),
            notifications::CANCELLED => self.cancelled(params),
            _ => {}
        }
    }

    fn cancelled(&self, params: Option<&Json>) {
        let work = notifications::cancelled_id(params).and_then(|id| self.table().cancel(&id));
        if let Some(work) = work {
            work.end(working::cancelled(params));
            self.ended.notify_waiters();
        }
    }

    fn replied(&self, id: Option<Id>, answer: Result<Json, RpcError>) {
        let waiting = id.and_then(|id| self.table().settle(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Returns a separate outgoing queue for one request or stream.
    pub(crate) fn outlet(&self) -> (Responder, OutgoingFrames) {
        self.server.outlet(&self.context.caller)
    }

    /// Sends change notifications and keepalive pings on `outlet` until it is closed. A second stream replaces the
    /// first.
    pub(crate) fn tell_changes(self: &Arc<Self>, outlet: Responder) {
        let pinging = self.server.limits.ping;
        let pinging = pinging.map(|every| ServerKeepaliveTask::start(self, outlet.clone(), every));
        *self.pinging() = pinging;
        self.telling.start(outlet);
    }

    /// Sends a request to the client on this stream and waits for the response; returns `None` if the client is gone.
    /// Dropping the future cancels the request.
    pub(super) async fn asked(
        &self,
        outlet: &Responder,
        asked: ServerRequest<'_>,
    ) -> Option<Result<Json, RpcError>> {
        let (tx, rx) = oneshot::channel();
        let id = self.table().open(tx);
        let mut open = CancelRequestOnDrop {
            legacy: self,
            outlet,
            id: Some(id.clone()),
            why: asked.taken_back,
        };
        let text = message::request(&id, asked.method, asked.params.as_ref());
        outlet.send(OutgoingFrame::Before(text.into())).await;
        let answer = rx.await;
        open.id = None;
        answer.ok()
    }

    /// Returns whether the client has a request of the server to answer.
    pub(super) fn is_asked(&self) -> bool {
        self.table().all_waiting().next().is_some()
    }

    /// Records missed pings, and closes the connection if they end it.
    pub(super) fn unheard(&self, unheard: MissedPings) {
        if let Some(witness) = &self.server.witness {
            let RequestContext {
                caller, transport, ..
            } = &self.context;
            witness.unheard(caller, transport, unheard);
        }
        if unheard.ends {
            self.gone.send_replace(true);
            self.close();
        }
    }

    /// Returns whether the client counts as gone after missed pings.
    pub(crate) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Waits until the client counts as gone after missed pings.
    pub(crate) async fn gone(&self) {
        // The sender is part of `self`, so the channel never closes.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }

    fn pinging(&self) -> MutexGuard<'_, Option<ServerKeepaliveTask>> {
        self.pinging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles `resources/subscribe` and `resources/unsubscribe`.
    async fn subscribe(&self, params: Option<&Json>, wanted: bool) -> Result<Json, RpcError> {
        let Some(uri) = params.and_then(|p| p.get("uri")).and_then(|u| u.string()) else {
            return Err(answer::bad_params("\"params.uri\" must be a string"));
        };
        if wanted {
            changes::visible(&self.server, &self.context, &uri).await?;
            self.telling.hear(uri).await?;
        } else {
            self.telling.forget(&uri).await?;
        }
        Ok(self.context.dialect.empty(&self.server.info))
    }

    /// Cancels all requests in flight and ends the streams of this client.
    pub(crate) fn close(&self) {
        let why = self.server.why_it_ends();
        let all = self.table().stop();
        all.into_iter().for_each(|work| work.end(why.clone()));
        self.ended.notify_waiters();
        self.telling.close();
        *self.pinging() = None;
    }

    /// Returns whether a request of the client is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.table().working() > 0
    }

    /// Waits until no request of the client is in flight.
    pub(crate) async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Register before the check, or a request that ends in between would be missed.
            ended.as_mut().enable();
            if !self.is_busy() {
                return;
            }
            ended.await;
        }
    }

    /// Waits up to [`READY_TIMEOUT`] for the end of the handshake.
    async fn can_be_asked(&self) -> Result<(), Error> {
        let mut ready = self.ready.subscribe();
        match timeout(READY_TIMEOUT, ready.wait_for(|ready| *ready)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Upstream,
                "the client cannot receive requests: it has not sent notifications/initialized",
            )),
        }
    }

    fn table(&self) -> MutexGuard<'_, RequestTable<ClientResponseSender, RequestWork>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error for a request that the table does not accept.
pub(crate) fn refused(refusal: RequestTableError) -> RpcError {
    match refusal {
        RequestTableError::Duplicate => RpcError::new(
            code::INVALID_REQUEST,
            "a request with this id is in flight already",
        ),
        RequestTableError::TooMany => RpcError::new(
            code::INTERNAL_ERROR,
            "too many requests at once; wait for some of them to end",
        ),
    }
}

/// Sends requests to the client in the middle of one of its calls, on the stream of that call.
struct InlineRequester<'a> {
    legacy: &'a InitializedClient,
    outlet: &'a Responder,
}

impl InputRequester for InlineRequester<'_> {
    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>> {
        Box::pin(async move {
            self.legacy.can_be_asked().await?;
            let asked = ServerRequest {
                method,
                params,
                taken_back: "the input request was settled elsewhere",
            };
            match self.legacy.asked(self.outlet, asked).await {
                Some(Ok(answer)) => Ok(answer),
                Some(Err(_)) => Err(Error::new(
                    ErrorKind::Upstream,
                    "the client answered the input request with an error",
                )),
                None => Err(Error::new(
                    ErrorKind::Cancelled,
                    "the client disconnected before it answered the input request",
                )),
            }
        })
    }
}

/// A request to the client.
pub(super) struct ServerRequest<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<Json>,
    /// The reason in `notifications/cancelled` if the response is no longer needed.
    pub(super) taken_back: &'static str,
}

/// Cancels a request to the client when dropped before the response.
struct CancelRequestOnDrop<'a> {
    legacy: &'a InitializedClient,
    outlet: &'a Responder,
    id: Option<Id>,
    why: &'static str,
}

impl Drop for CancelRequestOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.legacy.table().settle(&id);
            let params = notifications::cancelled(&id, self.why);
            self.outlet.offer(message::notification(
                notifications::CANCELLED,
                Some(&params),
            ));
        }
    }
}

/// Returns the error for a request before `initialize`.
pub(crate) fn not_open() -> RpcError {
    let mut data = ObjectWriter::new();
    data.array("supported", |a| {
        dialect::ALL.iter().for_each(|d| a.str(d.revision))
    });
    let text = "this connection is not initialized: send initialize first, or the metadata of revision 2026-07-28 with each request";
    RpcError::new(code::INVALID_PARAMS, text).with(data.finish())
}
