//! A client of the revisions with a handshake, on any transport.

use super::{
    MissedPings, ProtocolServer, TaskOffer,
    call::{self, MessageSender, RequestContext},
    changes,
    client_context::ClientContext,
    in_flight::{self, RequestWork},
    input_rounds::InputRequester,
    keepalive::ServerKeepaliveTask,
    lists,
    notifications::ChangeNotifier,
    operation::{ObservedOperation, ObservedSession},
    responder::{OutgoingFrame, OutgoingFrames, Responder, log_level_rank},
    response::{self, RequestResult},
    tasks,
};
use futures_util::future::{AbortHandle, Abortable};
use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, SetOnce, oneshot},
    time::timeout,
};
use toolgate_core::{BoxFuture, Caller, DecisionLog, Error, ErrorKind, ItemKind};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, ObjectWriter},
    message::{self, Id, JsonRpcMessage, RpcError, code},
    method::{
        self, initialize, meta::RequestMeta, notifications, operation, resources_read,
        tasks::TaskForm, trace::TraceContext,
    },
    request_table::{RequestTable, RequestTableError},
};

type ClientResponseSender = oneshot::Sender<Result<Json, RpcError>>;

/// State of one client after the handshake (`initialize`).
pub(crate) struct InitializedClient {
    server: Arc<ProtocolServer>,
    context: Arc<ClientContext>,
    min_log_level: Mutex<Option<u8>>,
    requests: Mutex<RequestTable<ClientResponseSender, RequestWork>>,
    /// Sends change notifications until the client is gone.
    notifier: Arc<ChangeNotifier>,
    /// Notified when the work on a request ends.
    request_ended: Notify,
    /// Set once the client sent `notifications/initialized`. Before that, the server sends it no requests.
    ready: SetOnce<()>,
    /// The keepalive pings, while a notification stream is open.
    keepalive: Mutex<Option<ServerKeepaliveTask>>,
    /// Set once the client missed its pings.
    gone: SetOnce<()>,
    /// Reports the end of the session.
    _observed: ObservedSession,
}

/// Time that a request to the client waits for `notifications/initialized`: some clients send calls before it.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the trace context and the progress token of a request.
fn trace_and_progress(params: Option<&Json>) -> (TraceContext, Option<Json>) {
    let meta = RequestMeta::of(params);
    (meta.trace(), meta.progress)
}

impl InitializedClient {
    /// Handles `initialize`: returns the client's state and the result.
    pub(crate) fn initialize(
        server: Arc<ProtocolServer>,
        caller: Caller,
        transport: &'static str,
        link: Option<u64>,
        params: Option<&Json>,
    ) -> Result<(Arc<InitializedClient>, Json), RpcError> {
        let wrong = || {
            response::invalid_params(
                "initialize needs \"protocolVersion\", \"capabilities\" and \"clientInfo\"",
            )
        };
        let params = initialize::InitializeParams::read(params).ok_or_else(wrong)?;
        let dialect = dialect::for_handshake(&params.version);
        let has_tasks = server.offered.tasks != TaskOffer::None && dialect.tasks == TaskForm::Core;
        let context = Arc::new(ClientContext {
            caller,
            transport,
            dialect,
            capabilities: call::client_capabilities(&params.capabilities, dialect),
            client: params
                .client
                .map(|c| format!("{} {}", c.name, c.version).into()),
            connection: link,
            session_tasks: tasks::SessionTasks::new(has_tasks),
        });
        let answer = initialize::InitializeResult {
            version: dialect.revision.to_owned(),
            capabilities: server.capabilities(dialect, link.is_some()),
            server: dialect.implementation(server.info.clone()),
            instructions: server.instructions(&context.caller),
        };
        let table = Mutex::new(RequestTable::new(server.limits.max_in_flight));
        let level = Mutex::new(log_level_rank("info"));
        let is_http = transport == "http";
        let observed = ObservedSession::begin(server.clone(), dialect.revision, is_http);
        let answer = answer.json();
        if server.operation_observer.is_some() {
            let context = context.for_request(context.caller.clone(), DecisionLog::default());
            let opening = ObservedOperation::begin(&server, &context, None, initialize::NAME);
            if let Some(opening) = opening {
                opening.end(&Ok(RequestResult::Json(answer.clone())));
            }
        }
        let notifier = ChangeNotifier::new(server.clone(), context.clone());
        let client = InitializedClient {
            server,
            context,
            min_log_level: level,
            requests: table,
            notifier,
            request_ended: Notify::new(),
            ready: SetOnce::new(),
            keepalive: Mutex::default(),
            gone: SetOnce::new(),
            _observed: observed,
        };
        Ok((Arc::new(client), answer))
    }

    /// Marks the handshake as complete: after `notifications/initialized`, or in a session that an earlier process opened.
    pub(crate) fn set_ready(&self) {
        // A client may send `notifications/initialized` again.
        let _ = self.ready.set(());
    }

    /// Returns the negotiated revision.
    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.context.dialect
    }

    /// Handles a message of the client. Replies and events go to `responder`; this never waits for a call to end.
    pub(crate) async fn receive(self: &Arc<Self>, message: JsonRpcMessage, responder: &Responder) {
        let sender = self.context.caller.clone().into();
        self.receive_as(sender, message, responder).await;
    }

    /// Handles a message of the same caller with its own token, which determines the current permissions. The future
    /// starts the work on a request. All else is done at once, so that the future is small.
    pub(crate) fn receive_as<'a>(
        self: &'a Arc<Self>,
        sender: MessageSender,
        message: JsonRpcMessage,
        responder: &'a Responder,
    ) -> BoxFuture<'a, ()> {
        match message {
            JsonRpcMessage::Request { id, method, params } => {
                return self.accept_request(sender, id, method, params, responder);
            }
            JsonRpcMessage::Notification { method, params } => {
                self.handle_notification(&method, params.as_ref())
            }
            JsonRpcMessage::Reply { id, answer } => self.handle_reply(id, answer),
        }
        Box::pin(ready(()))
    }

    fn accept_request<'a>(
        self: &'a Arc<Self>,
        sender: MessageSender,
        id: Id,
        method: String,
        params: Option<Json>,
        responder: &'a Responder,
    ) -> BoxFuture<'a, ()> {
        let (handle, registration) = AbortHandle::new_pair();
        // Added to the table before the work can end.
        let trail = DecisionLog::default();
        let work = RequestWork::new(handle, trail.clone());
        let accepted = self.requests().accept(&id, work);
        if let Err(refusal) = accepted {
            return Box::pin(async move {
                let request = (method.as_str(), params.as_ref());
                self.reject(&id, request, refusal, responder).await;
            });
        }
        let work = self
            .clone()
            .run_request((sender, trail), id, method, params, responder.clone());
        Box::pin(in_flight::start_work(Abortable::new(
            Box::pin(work),
            registration,
        )))
    }

    async fn reject(
        &self,
        id: &Id,
        request: (&str, Option<&Json>),
        refusal: RequestTableError,
        responder: &Responder,
    ) {
        let why = not_accepted_error(refusal);
        let (caller, transport) = (&self.context.caller, self.context.transport);
        let recorded = self
            .server
            .log_rejected_request(caller, transport, request, &why);
        recorded.await;
        responder
            .send(response::reply_frame(Some(id), &Err(why)))
            .await;
    }

    async fn run_request(
        self: Arc<Self>,
        from: (MessageSender, DecisionLog),
        id: Id,
        method: String,
        params: Option<Json>,
        responder: Responder,
    ) {
        let answer = self
            .handle_request(from, &id, &method, params.as_ref(), &responder)
            .await;
        // A cancelled request gets no reply.
        if self.requests().finish(&id).is_some() {
            let words = (self.context.dialect, &self.server.info_json);
            responder
                .send(response::result_frame(&id, answer, words))
                .await;
        }
        if let Some(tasks) = &self.context.session_tasks {
            tasks.reply_sent();
        }
        self.request_ended.notify_waiters();
    }

    async fn handle_request(
        &self,
        (sender, trail): (MessageSender, DecisionLog),
        id: &Id,
        method: &str,
        params: Option<&Json>,
        responder: &Responder,
    ) -> Result<RequestResult, RpcError> {
        if operation::is_operation(method) {
            let context = self.operation_context(sender, trail, params);
            return self
                .handle_operation(context, id, method, params, responder)
                .await;
        }
        let context = self.server.operation_observer.is_some().then(|| {
            let caller = self.context.caller.clone();
            Box::new(self.context.for_request(caller, trail))
        });
        let observed = context
            .as_deref()
            .and_then(|context| ObservedOperation::begin(&self.server, context, Some(id), method));
        let answer = self
            .handle_other(sender.caller, method, params, responder)
            .await;
        if let Some(observed) = observed {
            observed.end(&answer);
        }
        answer
    }

    /// Returns the context of an operation. It is boxed, because the future of the request is moved as it is made.
    fn operation_context(
        &self,
        sender: MessageSender,
        trail: DecisionLog,
        params: Option<&Json>,
    ) -> Box<RequestContext> {
        let mut context = Box::new(self.context.for_request(sender.caller, trail));
        context.address = sender.address;
        context.transport_parts = sender.transport_parts;
        context.log_level = *self
            .min_log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (context.trace, context.progress_token) = trace_and_progress(params);
        context.continue_transport_trace(sender.transport_trace);
        context
    }

    async fn handle_operation(
        &self,
        context: Box<RequestContext>,
        id: &Id,
        method: &str,
        params: Option<&Json>,
        responder: &Responder,
    ) -> Result<RequestResult, RpcError> {
        let requester = InlineRequester {
            client: self,
            responder,
        };
        let observed = ObservedOperation::begin(&self.server, &context, Some(id), method);
        if let Some(observed) = &observed {
            observed.attach_span();
        }
        let answer = call::handle_operation(
            &self.server,
            &context,
            id,
            method,
            params,
            responder,
            Some(&requester),
        )
        .await;
        if let Some(observed) = observed {
            observed.end(&answer);
        }
        answer
    }

    async fn handle_other(
        &self,
        caller: Caller,
        method: &str,
        params: Option<&Json>,
        responder: &Responder,
    ) -> Result<RequestResult, RpcError> {
        let dialect = self.context.dialect;
        match method {
            method::PING => Ok(dialect.empty(&self.server.info).into()),
            method::SET_LEVEL => self.set_level(params).map(RequestResult::Json),
            resources_read::SUBSCRIBE => {
                let done = Box::pin(self.subscribe(params, true)).await;
                done.map(RequestResult::Json)
            }
            resources_read::UNSUBSCRIBE => {
                let done = Box::pin(self.subscribe(params, false)).await;
                done.map(RequestResult::Json)
            }
            used if tasks::is_method(&self.server, dialect, self.context.connection, used) => {
                let requester = InlineRequester {
                    client: self,
                    responder,
                };
                let context = self.context.for_request(caller, DecisionLog::default());
                let answer =
                    tasks::handle_method(&self.server, &context, used, params, Some(&requester));
                Box::pin(answer).await.map(RequestResult::Json)
            }
            initialize::NAME => Err(RpcError::new(
                code::INVALID_REQUEST,
                "initialize is allowed only once, and was already sent",
            )),
            // Skills exist only in 2026-07-28 and later.
            other => match ItemKind::listed_by(other).filter(|kind| *kind != ItemKind::Skill) {
                Some(kind) => {
                    let page = lists::list_page(
                        &self.server,
                        dialect,
                        &caller,
                        (kind, params),
                        Some(&self.notifier.received_lists),
                    );
                    Box::pin(page).await.map(RequestResult::Json)
                }
                None => Err(response::method_not_found(other)),
            },
        }
    }

    fn set_level(&self, params: Option<&Json>) -> Result<Json, RpcError> {
        let word = params.and_then(|p| p.get("level")).and_then(|l| l.string());
        let Some(rank) = word.as_deref().and_then(log_level_rank) else {
            return Err(response::invalid_params(
                "\"level\" must be one of debug, info, notice, warning, error, critical, alert, emergency",
            ));
        };
        *self
            .min_log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(rank);
        Ok(self.context.dialect.empty(&self.server.info))
    }

    fn handle_notification(&self, method: &str, params: Option<&Json>) {
        match method {
            initialize::INITIALIZED => self.set_ready(),
            notifications::CANCELLED => self.handle_cancelled(params),
            _ => {}
        }
    }

    /// Handles a cancellation by the client (`notifications/cancelled`).
    fn handle_cancelled(&self, params: Option<&Json>) {
        let work = notifications::cancelled_id(params).and_then(|id| self.requests().cancel(&id));
        if let Some(work) = work {
            work.abort(in_flight::cancel_reason(params));
            self.request_ended.notify_waiters();
        }
    }

    fn handle_reply(&self, id: Option<Id>, answer: Result<Json, RpcError>) {
        let waiting = id.and_then(|id| self.requests().take_waiter(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Returns a separate outgoing queue for one request or stream.
    pub(crate) fn responder(&self) -> (Responder, OutgoingFrames) {
        self.server.responder(&self.context.caller)
    }

    /// Sends change notifications and keepalive pings on `responder` until it is closed. A second stream replaces the
    /// first.
    pub(crate) fn start_notifications(self: &Arc<Self>, responder: Responder) {
        let pinging = self.server.limits.ping_interval;
        let pinging =
            pinging.map(|every| ServerKeepaliveTask::start(self, responder.clone(), every));
        *self.keepalive() = pinging;
        self.notifier.start(responder);
    }

    /// Sends a request to the client on this stream and waits for the response; returns `None` if the client is gone.
    /// Dropping the future cancels the request.
    pub(super) async fn request_client(
        &self,
        responder: &Responder,
        asked: ServerRequest<'_>,
    ) -> Option<Result<Json, RpcError>> {
        let (tx, rx) = oneshot::channel();
        let id = self.requests().register(tx);
        let mut open = CancelRequestOnDrop {
            client: self,
            responder,
            id: Some(id.clone()),
            reason: asked.cancel_reason,
        };
        let text = message::request(&id, asked.method, asked.params.as_ref());
        responder
            .send(OutgoingFrame::BeforeReply(text.into()))
            .await;
        let answer = rx.await;
        open.id = None;
        answer.ok()
    }

    /// Returns whether the client has a request of the server to answer.
    pub(super) fn has_open_requests(&self) -> bool {
        self.requests().waiters().next().is_some()
    }

    /// Records missed pings, and closes the connection if they end it.
    pub(super) fn handle_missed_pings(&self, unheard: MissedPings) {
        if let Some(log) = &self.server.rejection_log {
            let ClientContext {
                caller, transport, ..
            } = &*self.context;
            log.missed_pings(caller, transport, unheard);
        }
        if unheard.disconnects {
            let _ = self.gone.set(());
            self.close();
        }
    }

    /// Returns whether the client counts as gone after missed pings.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.initialized()
    }

    /// Waits until the client counts as gone after missed pings.
    pub(crate) async fn wait_until_gone(&self) {
        self.gone.wait().await;
    }

    fn keepalive(&self) -> MutexGuard<'_, Option<ServerKeepaliveTask>> {
        self.keepalive
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles `resources/subscribe` and `resources/unsubscribe`.
    async fn subscribe(&self, params: Option<&Json>, wanted: bool) -> Result<Json, RpcError> {
        let Some(uri) = params.and_then(|p| p.get("uri")).and_then(|u| u.string()) else {
            return Err(response::invalid_params("\"params.uri\" must be a string"));
        };
        if wanted {
            let ClientContext {
                caller, dialect, ..
            } = &*self.context;
            changes::check_visible(&self.server, caller, dialect, &uri).await?;
            self.notifier.subscribe(uri).await?;
        } else {
            self.notifier.unsubscribe(&uri).await?;
        }
        Ok(self.context.dialect.empty(&self.server.info))
    }

    /// Cancels all requests in flight and ends the streams of this client.
    pub(crate) fn close(&self) {
        let why = self.server.cancel_reason();
        let all = self.requests().drain_workers();
        all.into_iter().for_each(|work| work.abort(why.clone()));
        self.request_ended.notify_waiters();
        self.notifier.close();
        *self.keepalive() = None;
    }

    /// Returns whether a request of the client is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests().received_count() > 0
    }

    /// Waits until no request of the client is in flight.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.request_ended.notified());
            // Register before the check, or a request that ends in between would be missed.
            ended.as_mut().enable();
            if !self.is_busy() {
                return;
            }
            ended.await;
        }
    }

    /// Waits up to [`READY_TIMEOUT`] for the end of the handshake.
    async fn wait_until_ready(&self) -> Result<(), Error> {
        let waited = timeout(READY_TIMEOUT, self.ready.wait()).await;
        waited.copied().map_err(|_| {
            Error::new(
                ErrorKind::Upstream,
                "the client cannot receive requests: it has not sent notifications/initialized",
            )
        })
    }

    fn requests(&self) -> MutexGuard<'_, RequestTable<ClientResponseSender, RequestWork>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error for a request that the table does not accept.
pub(crate) fn not_accepted_error(refusal: RequestTableError) -> RpcError {
    match refusal {
        RequestTableError::Duplicate => RpcError::new(
            code::INVALID_REQUEST,
            "a request with this id is in flight already; use another id",
        ),
        RequestTableError::TooMany => RpcError::new(
            code::INTERNAL_ERROR,
            "too many requests at once; wait for some of them to end",
        ),
    }
}

/// Sends requests to the client in the middle of one of its calls, on the stream of that call.
struct InlineRequester<'a> {
    client: &'a InitializedClient,
    responder: &'a Responder,
}

impl InputRequester for InlineRequester<'_> {
    fn send_request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>> {
        Box::pin(async move {
            self.client.wait_until_ready().await?;
            let asked = ServerRequest {
                method,
                params,
                cancel_reason: "the input request was answered elsewhere",
            };
            match self.client.request_client(self.responder, asked).await {
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
    pub(super) cancel_reason: &'static str,
}

/// Cancels a request to the client when dropped before the response.
struct CancelRequestOnDrop<'a> {
    client: &'a InitializedClient,
    responder: &'a Responder,
    id: Option<Id>,
    reason: &'static str,
}

impl Drop for CancelRequestOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.client.requests().take_waiter(&id);
            let params = notifications::cancelled(&id, self.reason);
            self.responder.try_send(message::notification(
                notifications::CANCELLED,
                Some(&params),
            ));
        }
    }
}

/// Returns the error for a request before `initialize`.
pub(crate) fn not_initialized_error() -> RpcError {
    let mut data = ObjectWriter::new();
    data.array("supported", |a| {
        dialect::ALL.iter().for_each(|d| a.str(d.revision))
    });
    let text = "this connection is not initialized: send initialize first, or the metadata of revision 2026-07-28 with each request";
    RpcError::new(code::INVALID_PARAMS, text).with_data(data.finish())
}
