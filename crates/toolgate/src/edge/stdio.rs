//! The stdio transport: a server on a pair of byte streams, one message a line, for all revisions.

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
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::oneshot,
};
use toolgate_core::{BoxFuture, Caller};
use toolgate_protocol::{
    json::{Json, ReadError},
    memory_budget::{BudgetExceeded, MemoryPermit},
    message::{Id, JsonRpcMessage, RpcError, code},
    method::{discover, initialize, meta::RequestMeta, notifications},
};

/// Name of this transport in the audit log.
const TRANSPORT_NAME: &str = "stdio";
/// Number of connections so far, from which each gets its number.
static CONNECTION_COUNT: AtomicU64 = AtomicU64::new(0);
/// Time limit for writing the queued messages after the client closed its end.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves one MCP client over a pair of byte streams until its input ends, which cancels its requests in flight. After
/// [`ProtocolServer::close`] new requests are rejected, and serving ends when the requests in flight have ended.
///
/// # Errors
/// An I/O error of either stream. End of file is not an error.
pub async fn serve(
    server: Arc<ProtocolServer>,
    caller: Caller,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    serve_until(server, caller, reader, writer, std::future::pending()).await
}

/// Serves one MCP client like [`serve`], and ends when `stop` completes: requests still in flight are cancelled, and
/// the responses that were already made are written. For a graceful shutdown, `stop` calls [`ProtocolServer::close`]
/// and then waits for as long as running calls may take.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use toolgate::{core::Caller, edge::{self, ProtocolServer}};
/// # async fn f(server: Arc<ProtocolServer>) -> std::io::Result<()> {
/// let closing = server.clone();
/// let stop = async move {
///     let _ = tokio::signal::ctrl_c().await;
///     closing.close(); // rejects new requests; serving ends as soon as no call is running
///     tokio::time::sleep(Duration::from_secs(5)).await;
/// };
/// let (input, output) = edge::standard::streams();
/// edge::stdio::serve_until(server, Caller::new("stdio"), input, output, stop).await
/// # }
/// ```
///
/// # Errors
/// An I/O error of either stream. End of file is not an error.
pub async fn serve_until(
    server: Arc<ProtocolServer>,
    caller: Caller,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (outlet, frames) = server.responder(&caller);
    let modern = Arc::new(StatelessRequestTable::new(server.limits.max_in_flight));
    let legacy = Arc::new(OnceLock::new());
    // In its own set, so that it is polled only when it is woken, not for each message.
    let drained = wait_until_drained(server.clone(), legacy.clone(), modern.clone());
    let mut over: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    over.push(Box::pin(drained));
    over.push(Box::pin(stop));
    let pings = server.limits.ping_interval.is_some();
    let opened = pings.then(|| {
        let (opened, open) = oneshot::channel();
        over.push(Box::pin(wait_for_missed_pings(open)));
        opened
    });
    let hush = outlet.wake_suppressor();
    let mut peer = StdioConnection {
        server,
        caller,
        connection: CONNECTION_COUNT.fetch_add(1, Ordering::Relaxed),
        received_lists: Arc::default(),
        outlet,
        initialized: legacy,
        on_initialized: opened,
        stateless_requests: modern,
    };
    let read = async {
        let result = tokio::select! {
            biased;
            result = peer.read(reader) => result,
            _ = over.next() => Ok(()),
        };
        // Drops the sender, so that the writer ends after the queued messages.
        drop(peer);
        result
    };
    let (mut read, mut writing) = (pin!(read), pin!(write_frames(frames, writer)));
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
    legacy: Arc<OnceLock<Arc<InitializedClient>>>,
    modern: Arc<StatelessRequestTable>,
) {
    server.closed().await;
    if let Some(legacy) = legacy.get() {
        legacy.wait_until_idle().await;
    }
    modern.wait_until_idle().await;
}

/// Waits until a client with a handshake missed its pings.
async fn wait_for_missed_pings(open: oneshot::Receiver<Arc<InitializedClient>>) {
    match open.await {
        Ok(legacy) => legacy.wait_until_gone().await,
        Err(_) => std::future::pending().await,
    }
}

/// Size of one write, in bytes, if several messages are queued.
const WRITE_CHUNK_BYTES: usize = 64 * 1024;

/// Writes all queued messages at once, then flushes.
async fn write_frames(
    mut frames: OutgoingFrames,
    mut writer: impl AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(first) = frames.recv().await {
        let mut next = Some(first);
        while let Some(frame) = next {
            let text = frame.text().as_bytes();
            if text.len() < WRITE_CHUNK_BYTES {
                buffer.extend_from_slice(text);
            } else {
                // Too long to copy into the buffer.
                writer.write_all(&buffer).await?;
                buffer.clear();
                writer.write_all(text).await?;
            }
            buffer.push(b'\n');
            next = (buffer.len() < WRITE_CHUNK_BYTES)
                .then(|| frames.try_recv())
                .flatten();
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        buffer.shrink_to(WRITE_CHUNK_BYTES);
    }
    Ok(())
}

struct StdioConnection {
    server: Arc<ProtocolServer>,
    caller: Caller,
    /// The number of this connection.
    connection: u64,
    /// The lists that its client received, without a session.
    received_lists: Arc<ReceivedLists>,
    outlet: Responder,
    /// The state of a client with a handshake, after `initialize`.
    initialized: Arc<OnceLock<Arc<InitializedClient>>>,
    /// Receives that state if pings are enabled.
    on_initialized: Option<oneshot::Sender<Arc<InitializedClient>>>,
    stateless_requests: Arc<StatelessRequestTable>,
}

/// Cancels the requests in flight however serving ends.
impl Drop for StdioConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl StdioConnection {
    async fn read(&mut self, reader: impl AsyncRead + Send + Unpin) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(64 * 1024, reader);
        loop {
            let limit = self.server.limits.json.bytes;
            let mut claim = self.server.budget_scope(&self.caller).permit();
            match read_line(&mut reader, limit, &mut claim).await? {
                StdioLine::End => return Ok(()),
                StdioLine::TooLong => {
                    let text =
                        format!("the message is longer than {limit} bytes, which is the limit");
                    self.reply(None, Err(RpcError::new(code::INVALID_REQUEST, text)))
                        .await;
                }
                StdioLine::OverBudget(full) => {
                    let error = RpcError::new(code::INTERNAL_ERROR, full.to_string());
                    self.reply(None, Err(error)).await;
                }
                StdioLine::Buffered(end) => {
                    let bytes = reader.buffer().get(..end).unwrap_or_default();
                    let read =
                        (!is_blank(bytes)).then(|| self.server.read_borrowed_message(bytes, claim));
                    reader.consume(end + 1);
                    self.handle_line(read).await;
                }
                StdioLine::Owned(bytes) => {
                    let read = (!is_blank(&bytes)).then(|| self.server.read_message(bytes, claim));
                    self.handle_line(read).await;
                }
            }
        }
    }

    /// Handles the content of a line; `None` for a blank line.
    async fn handle_line(&mut self, read: Option<Result<Json, ReadError>>) {
        let json = match read {
            None => return,
            Some(Ok(json)) => json,
            Some(Err(error)) => {
                return Box::pin(self.reply(None, Err(unreadable_error(&error)))).await;
            }
        };
        self.handle_message(&json).await;
    }

    /// Handles a message. Rare cases are boxed, so that the future of a call is small.
    async fn handle_message(&mut self, json: &Json) {
        let legacy = self.initialized.get();
        if let Some((legacy, batch)) =
            legacy.and_then(|l| Some((l, MessageBatch::read(json, l.dialect())?)))
        {
            return match batch {
                Ok(_) if self.server.is_closing() => {
                    Box::pin(self.reply(None, Err(shutting_down_error()))).await
                }
                Ok(batch) => {
                    let sender = self.caller.clone().into();
                    Box::pin(batch.receive(legacy, &sender, &self.outlet)).await
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
        if let Some(legacy) = self.initialized.get() {
            return legacy.receive(message, &self.outlet).await;
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
                        let work = self.run_stateless(context, id, method, params);
                        in_flight::start_work(Box::pin(Abortable::new(work, registration))).await;
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
            TRANSPORT_NAME,
            Some(self.connection),
            params,
        );
        let answer = opened.map(|(legacy, answer)| {
            legacy.start_notifications(self.outlet.clone());
            if let Some(opened) = self.on_initialized.take() {
                let _ = opened.send(legacy.clone());
            }
            // The caller checked that it is unset, and only this task sets it.
            let _ = self.initialized.set(legacy);
            answer
        });
        self.reply(Some(&id), answer).await;
    }

    /// Registers a stateless request.
    fn accept_stateless(
        &self,
        id: &Id,
        meta: &RequestMeta,
    ) -> Result<(RequestContext, AbortRegistration), RpcError> {
        let mut context =
            stateless::request_context(&self.server, self.caller.clone(), TRANSPORT_NAME, meta)?;
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
        context: RequestContext,
        id: Id,
        method: String,
        params: Option<Json>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (server, outlet) = (self.server.clone(), self.outlet.clone());
        let working = self.stateless_requests.clone();
        async move {
            let params = params.as_ref();
            let answer =
                stateless::handle_request(&server, &context, &id, &method, params, &outlet).await;
            if working.finish(&id) {
                let words = (context.dialect, &server.info_json);
                outlet
                    .send(response::result_frame(&id, answer, words))
                    .await;
            }
        }
    }

    /// Rejects a request that reached no layer, and reports it if it is a call.
    async fn reject(&self, id: &Id, method: &str, params: Option<&Json>, why: RpcError) {
        self.server
            .log_rejected_request(&self.caller, TRANSPORT_NAME, (method, params), &why)
            .await;
        self.reply(Some(id), Err(why)).await;
    }

    async fn reply(&self, id: Option<&Id>, answer: Result<Json, RpcError>) {
        self.outlet.send(response::reply_frame(id, &answer)).await;
    }

    fn close(&self) {
        if let Some(legacy) = self.initialized.get() {
            legacy.close();
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

enum StdioLine {
    /// A line in the buffer of the reader, up to this position.
    Buffered(usize),
    Owned(Vec<u8>),
    TooLong,
    OverBudget(BudgetExceeded),
    End,
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Reads one line without its line feed. A line that is too long, or beyond the memory budget, is skipped and never
/// buffered.
async fn read_line(
    reader: &mut (impl AsyncBufReadExt + Unpin),
    limit: usize,
    claim: &mut MemoryPermit,
) -> io::Result<StdioLine> {
    let mut bytes = Vec::new();
    let (mut over, mut full) = (false, None);
    loop {
        let part = reader.fill_buf().await?;
        if part.is_empty() {
            // A last line without a line feed is not a message.
            return Ok(StdioLine::End);
        }
        let end = memchr::memchr(b'\n', part);
        // Most lines are completely in the buffer.
        if let Some(end) = end
            && bytes.is_empty()
            && !over
            && full.is_none()
            && end <= limit
            && claim.cover_message(end as u64).is_ok()
        {
            return Ok(StdioLine::Buffered(end));
        }
        let taken = end.unwrap_or(part.len());
        over |= bytes.len() + taken > limit;
        let room = claim.cover_message((bytes.len() + taken) as u64);
        full = full.or(room.err().filter(|_| !over));
        if over || full.is_some() {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(part.get(..taken).unwrap_or_default());
        }
        let used = taken + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(match full {
                _ if over => StdioLine::TooLong,
                Some(full) => StdioLine::OverBudget(full),
                None => StdioLine::Owned(bytes),
            });
        }
    }
}
