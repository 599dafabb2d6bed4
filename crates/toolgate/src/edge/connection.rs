//! One connection to a client without HTTP: its messages in both eras, until it ends.

use super::{
    ProtocolServer,
    batch::MessageBatch,
    call::RequestContext,
    handshake::{self, InitializedClient},
    in_flight::{self, RequestWork, StatelessRequestTable},
    received_lists::ReceivedLists,
    responder::{OutgoingFrames, Responder},
    response, stateless,
};
use futures_util::{
    StreamExt,
    future::{AbortHandle, AbortRegistration, Abortable},
    stream::FuturesUnordered,
};
use std::{
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::sync::oneshot;
use toolgate_core::{BoxFuture, Caller};
use toolgate_protocol::{
    json::{Json, ReadError},
    memory_budget::{BudgetExceeded, MemoryPermit},
    message::{Id, JsonRpcMessage, RpcError, code},
    method::{discover, initialize, meta::RequestMeta, notifications},
};

/// Number of connections so far, from which each gets its number.
static CONNECTION_COUNT: AtomicU64 = AtomicU64::new(0);
/// Time limit for writing the queued messages after the client closed its end.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages of a client, within the limits of the server.
pub(super) trait MessageInput: Send {
    /// Returns the next message. A message beyond a limit is not kept.
    fn next(
        &mut self,
        server: &ProtocolServer,
        permit: MemoryPermit,
    ) -> impl Future<Output = io::Result<ReceivedMessage>> + Send;
}

/// Next part of the input.
pub(super) enum ReceivedMessage {
    End,
    /// Nothing but whitespace, which gets no reply.
    Blank,
    Rejected(RpcError),
    Json(Json),
}

impl ReceivedMessage {
    pub(super) fn too_long(limit: usize) -> ReceivedMessage {
        let text = format!("the message is longer than {limit} bytes, which is the limit");
        ReceivedMessage::Rejected(RpcError::new(code::INVALID_REQUEST, text))
    }

    pub(super) fn over_budget(full: &BudgetExceeded) -> ReceivedMessage {
        ReceivedMessage::Rejected(RpcError::new(code::INTERNAL_ERROR, full.to_string()))
    }
}

impl From<Result<Json, ReadError>> for ReceivedMessage {
    fn from(read: Result<Json, ReadError>) -> ReceivedMessage {
        match read {
            Ok(json) => ReceivedMessage::Json(json),
            Err(error) => ReceivedMessage::Rejected(unreadable_error(&error)),
        }
    }
}

/// Serves one client until its input ends or `stop` completes. `transport` is the name for the audit log, and `write`
/// writes the outgoing messages until there are no more.
///
/// # Errors
/// An I/O error of either direction.
pub(super) async fn serve<W: Future<Output = io::Result<()>> + Send>(
    server: Arc<ProtocolServer>,
    (caller, transport): (Caller, &'static str),
    input: impl MessageInput,
    write: impl FnOnce(OutgoingFrames) -> W,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (responder, frames) = server.responder(&caller);
    let modern = Arc::new(StatelessRequestTable::new(server.limits.max_in_flight));
    let client = Arc::new(OnceLock::new());
    // In its own set, so that it is polled only when it is woken, not for each message.
    let drained = wait_until_drained(server.clone(), client.clone(), modern.clone());
    let mut over: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    over.push(Box::pin(drained));
    over.push(Box::pin(stop));
    let pings = server.limits.ping_interval.is_some();
    let opened = pings.then(|| {
        let (opened, open) = oneshot::channel();
        over.push(Box::pin(wait_for_missed_pings(open)));
        opened
    });
    let hush = responder.wake_suppressor();
    let mut peer = ServedConnection {
        server,
        caller,
        transport,
        connection: CONNECTION_COUNT.fetch_add(1, Ordering::Relaxed),
        received_lists: Arc::default(),
        responder,
        initialized: client,
        on_initialized: opened,
        stateless_requests: modern,
    };
    let read = async {
        let result = tokio::select! {
            biased;
            result = peer.read(input) => result,
            _ = over.next() => Ok(()),
        };
        // Drops the sender, so that the writer ends after the queued messages.
        drop(peer);
        result
    };
    let (mut read, mut writing) = (pin!(read), pin!(write(frames)));
    // Reads all available input, then writes the replies in the same poll: no wake is needed.
    let read = poll_fn(|cx| {
        hush.suppress();
        let read = read.as_mut().poll(cx);
        let written = writing.as_mut().poll(cx);
        match (read, written) {
            (Poll::Ready(read), Poll::Pending) => Poll::Ready(Ok(read)),
            (Poll::Ready(read), Poll::Ready(written)) => Poll::Ready(Err(read.and(written))),
            // The output is closed: no reply can be sent, so nothing more is read.
            (Poll::Pending, Poll::Ready(written)) => Poll::Ready(Err(written)),
            (Poll::Pending, Poll::Pending) => Poll::Pending,
        }
    });
    let read = match read.await {
        Ok(read) => read,
        Err(ended) => return ended,
    };
    // A client that closed its end may not read the rest.
    let written = tokio::time::timeout(FINAL_WRITE_TIMEOUT, writing).await;
    read.and(written.unwrap_or(Ok(())))
}

/// Waits until the server stops and no request of the client is in flight.
async fn wait_until_drained(
    server: Arc<ProtocolServer>,
    client: Arc<OnceLock<Arc<InitializedClient>>>,
    modern: Arc<StatelessRequestTable>,
) {
    server.closed().await;
    if let Some(client) = client.get() {
        client.wait_until_idle().await;
    }
    modern.wait_until_idle().await;
}

/// Waits until a client with a handshake missed its pings.
async fn wait_for_missed_pings(open: oneshot::Receiver<Arc<InitializedClient>>) {
    match open.await {
        Ok(client) => client.wait_until_gone().await,
        Err(_) => std::future::pending().await,
    }
}

/// One connection and the state of its client.
struct ServedConnection {
    server: Arc<ProtocolServer>,
    caller: Caller,
    /// Name of the transport in the audit log.
    transport: &'static str,
    /// The number of this connection.
    connection: u64,
    /// The lists that its client received, without a session.
    received_lists: Arc<ReceivedLists>,
    responder: Responder,
    /// The state of a client with a handshake, after `initialize`.
    initialized: Arc<OnceLock<Arc<InitializedClient>>>,
    /// Receives that state if pings are enabled.
    on_initialized: Option<oneshot::Sender<Arc<InitializedClient>>>,
    stateless_requests: Arc<StatelessRequestTable>,
}

/// Cancels the requests in flight however serving ends.
impl Drop for ServedConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl ServedConnection {
    async fn read(&mut self, mut input: impl MessageInput) -> io::Result<()> {
        loop {
            let permit = self.server.budget_scope(&self.caller).permit();
            match input.next(&self.server, permit).await? {
                ReceivedMessage::End => return Ok(()),
                ReceivedMessage::Blank => {}
                ReceivedMessage::Rejected(error) => {
                    Box::pin(self.reply(None, Err(error))).await;
                }
                ReceivedMessage::Json(json) => self.handle_message(&json).await,
            }
        }
    }

    /// Handles a message. Rare cases are boxed, so that the future of a call is small.
    async fn handle_message(&mut self, json: &Json) {
        let client = self.initialized.get();
        if let Some((client, batch)) =
            client.and_then(|client| Some((client, MessageBatch::read(json, client.dialect())?)))
        {
            return match batch {
                Ok(_) if self.server.is_closing() => {
                    Box::pin(self.reply(None, Err(shutting_down_error()))).await
                }
                Ok(batch) => {
                    let sender = self.caller.clone().into();
                    Box::pin(batch.receive(client, &sender, &self.responder)).await
                }
                Err(wrong) => Box::pin(self.reply(None, Err(wrong))).await,
            };
        }
        let message = match JsonRpcMessage::read(json) {
            Ok(message) => message,
            // A reply or a notification gets no reply, even if it is invalid.
            Err(bad) if !bad.is_answered() => return,
            Err(bad) => {
                let why = RpcError::new(code::INVALID_REQUEST, bad.reason);
                return Box::pin(self.reply(bad.id.as_ref(), Err(why))).await;
            }
        };
        if let JsonRpcMessage::Request { id, method, params } = &message
            && self.server.is_closing()
        {
            return Box::pin(self.reject(id, method, params.as_ref(), shutting_down_error())).await;
        }
        if let Some(client) = self.initialized.get() {
            return client.receive(message, &self.responder).await;
        }
        match message {
            JsonRpcMessage::Request { id, method, params } if method == initialize::NAME => {
                Box::pin(self.initialize(id, params.as_ref())).await
            }
            JsonRpcMessage::Request { id, method, params } => {
                let meta = RequestMeta::of(params.as_ref());
                let begun = match meta.is_modern() || method == discover::NAME {
                    true => self.accept_stateless(&id, &meta),
                    false => Err(handshake::not_initialized_error()),
                };
                match begun {
                    Ok((context, registration)) => {
                        let work = Box::pin(self.run_stateless(context, id, method, params));
                        in_flight::start_work(Abortable::new(work, registration)).await;
                    }
                    Err(why) => {
                        Box::pin(self.reject(&id, &method, params.as_ref(), why)).await;
                    }
                }
            }
            JsonRpcMessage::Notification { method, params }
                if method == notifications::CANCELLED =>
            {
                if let Some(id) = notifications::cancelled_id(params.as_ref()) {
                    self.stateless_requests
                        .cancel(&id, in_flight::cancel_reason(params.as_ref()));
                }
            }
            // Notifications get no reply, and the server sent no request yet.
            JsonRpcMessage::Notification { .. } | JsonRpcMessage::Reply { .. } => {}
        }
    }

    async fn initialize(&mut self, id: Id, params: Option<&Json>) {
        let opened = InitializedClient::initialize(
            self.server.clone(),
            self.caller.clone(),
            self.transport,
            Some(self.connection),
            params,
        );
        let answer = opened.map(|(client, answer)| {
            client.start_notifications(self.responder.clone());
            if let Some(opened) = self.on_initialized.take() {
                let _ = opened.send(client.clone());
            }
            // The caller checked that it is unset, and only this task sets it.
            let _ = self.initialized.set(client);
            answer
        });
        self.reply(Some(&id), answer).await;
    }

    /// Registers a stateless request.
    fn accept_stateless(
        &self,
        id: &Id,
        meta: &RequestMeta,
    ) -> Result<(Box<RequestContext>, AbortRegistration), RpcError> {
        let mut context =
            stateless::request_context(&self.server, self.caller.clone(), self.transport, meta)?;
        context.connection = Some(self.connection);
        context.received_lists = Some(self.received_lists.clone());
        let (handle, registration) = AbortHandle::new_pair();
        let work = RequestWork::new(handle, context.decision_log.clone());
        self.stateless_requests
            .accept(id, work)
            .map_err(handshake::not_accepted_error)?;
        Ok((context, registration))
    }

    fn run_stateless(
        &self,
        context: Box<RequestContext>,
        id: Id,
        method: String,
        params: Option<Json>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (server, responder) = (self.server.clone(), self.responder.clone());
        let working = self.stateless_requests.clone();
        async move {
            let params = params.as_ref();
            let answer =
                stateless::handle_request(&server, &context, &id, &method, params, &responder)
                    .await;
            if working.finish(&id) {
                let words = (context.dialect, &server.info_json);
                responder
                    .send(response::result_frame(&id, answer, words))
                    .await;
            }
        }
    }

    /// Rejects a request that reached no layer, and reports it if it is a call.
    async fn reject(&self, id: &Id, method: &str, params: Option<&Json>, why: RpcError) {
        self.server
            .log_rejected_request(&self.caller, self.transport, (method, params), &why)
            .await;
        self.reply(Some(id), Err(why)).await;
    }

    async fn reply(&self, id: Option<&Id>, answer: Result<Json, RpcError>) {
        self.responder
            .send(response::reply_frame(id, &answer))
            .await;
    }

    fn close(&self) {
        if let Some(client) = self.initialized.get() {
            client.close();
        }
        self.stateless_requests
            .cancel_all(&self.server.cancel_reason());
        self.server.tasks.cancel_of_connection(self.connection);
    }
}

/// Returns the error for a message during shutdown.
fn shutting_down_error() -> RpcError {
    RpcError::new(
        code::INTERNAL_ERROR,
        "this server is shutting down and rejects new requests; start it again",
    )
}

/// Returns the error for bytes that the strict reader rejected, without any of the bytes.
pub(crate) fn unreadable_error(error: &ReadError) -> RpcError {
    let code = if error.is_syntax() {
        code::PARSE_ERROR
    } else {
        code::INVALID_REQUEST
    };
    RpcError::new(code, error.to_string())
}
