//! Transports other than HTTP: byte streams (stdio) and message transports. One task reads the server's messages, one
//! writes ours.

use super::{
    connection::{ConnectionTasks, RequestFailure, ServerConnection},
    incoming::MessageSource,
    line_codec::{LineDropReason, LineReader, StreamLine},
    options::RemoteOptions,
    transport::{ClientTransport, OutgoingRequest},
    unusable_answer::UnusableAnswer,
};
use crate::transport::MessageTransport;
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use toolgate_core::BoxFuture;
use toolgate_protocol::{
    dialect::Dialect,
    memory_budget::{BudgetScope, MemoryPermit},
    message::Id,
    unreadable::UnreadableText,
};

/// Capacity of the request queue, in messages. A caller waits while it is full.
const REQUEST_QUEUE_LEN: usize = 32;
/// Capacity of the priority queue for cancellations and answers, in messages.
const PRIORITY_QUEUE_LEN: usize = 1024;
/// Maximum size of a write that combines queued requests, in bytes; bounded so that priority messages do not wait long.
const MAX_BATCH_BYTES: usize = 64 << 10;
/// Time for buffered answers to arrive after the server stopped reading.
const LAST_ANSWERS_WAIT: Duration = Duration::from_secs(2);

/// Queued request, with the memory permit of its parameters.
struct QueuedRequest {
    id: Id,
    line: String,
    claim: Option<Arc<MemoryPermit>>,
}

/// Queues to the writer task.
struct StreamTransport {
    out: mpsc::Sender<QueuedRequest>,
    urgent: mpsc::Sender<String>,
}

/// Starts the reader and the writer task over a pair of byte streams.
pub(super) fn start(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    options: &RemoteOptions,
) -> (Arc<ServerConnection>, ConnectionTasks) {
    let lines = LineReader::new(reader, options.max_line_bytes, options.budget_scope.clone());
    let output = LineOutput {
        writer,
        text: String::new(),
    };
    let limit = options.max_line_bytes;
    start_tasks(|link| read(link, lines, limit), output, options)
}

/// Starts the reader and the writer task over a message transport.
pub(super) fn start_transport(
    transport: impl MessageTransport,
    options: &RemoteOptions,
) -> (Arc<ServerConnection>, ConnectionTasks) {
    let (sink, messages) = Box::pin(transport).split();
    let output = SinkOutput {
        sink,
        messages: Vec::new(),
    };
    let (limit, account) = (options.max_line_bytes, options.budget_scope.clone());
    let read = |link| read_messages(link, messages, limit, account);
    start_tasks(read, output, options)
}

fn start_tasks<R: Future<Output = ()> + Send + 'static>(
    read: impl FnOnce(Arc<ServerConnection>) -> R,
    output: impl MessageOutput,
    options: &RemoteOptions,
) -> (Arc<ServerConnection>, ConnectionTasks) {
    let (out, requests) = mpsc::channel(REQUEST_QUEUE_LEN);
    let (urgent, first) = mpsc::channel(PRIORITY_QUEUE_LEN);
    let link = ServerConnection::over(Arc::new(StreamTransport { out, urgent }), options);
    let read = read(link.clone());
    let write = write(link.clone(), output, requests, first);
    #[allow(
        clippy::disallowed_methods,
        reason = "one reader and one writer per server; aborted on drop"
    )]
    let tasks = ConnectionTasks::Aborted([tokio::spawn(read), tokio::spawn(write)]);
    (link, tasks)
}

impl ClientTransport for StreamTransport {
    fn send<'a>(
        &'a self,
        _link: &'a ServerConnection,
        request: &'a OutgoingRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RequestFailure>> {
        Box::pin(async {
            let sent = self
                .out
                .send(QueuedRequest {
                    id: request.id.clone(),
                    line: request.message(),
                    claim: request.params.permit(),
                })
                .await;
            sent.map_err(|_| RequestFailure::ConnectionLost { sent: false })
        })
    }

    fn send_priority(&self, line: String) -> bool {
        self.urgent.try_send(line).is_ok()
    }

    fn send_initialized<'a>(
        &'a self,
        link: &'a ServerConnection,
        line: String,
    ) -> BoxFuture<'a, ()> {
        link.send_priority(line);
        Box::pin(async {})
    }

    fn cancels_by_notification(&self, _: &Dialect) -> bool {
        true
    }

    fn is_http(&self) -> bool {
        false
    }

    fn keeps_session(&self) -> bool {
        true
    }
}

async fn read(
    link: Arc<ServerConnection>,
    mut lines: LineReader<impl AsyncRead + Unpin>,
    limit: usize,
) {
    loop {
        match lines.next().await {
            Ok(Some(StreamLine::Text(line, claim))) => link.receive_line(line, claim),
            Ok(Some(StreamLine::Dropped(why, unread))) => {
                let why = match why {
                    LineDropReason::BudgetExceeded => UnusableAnswer::BudgetExceeded,
                    LineDropReason::TooLong => UnusableAnswer::limit_exceeded("line_bytes", limit),
                };
                link.fail_unusable(why, unread, MessageSource::Stream);
            }
            Ok(None) => return link.mark_lost("it closed its output"),
            Err(error) => return link.mark_lost(&format!("reading its output failed: {error}")),
        }
    }
}

/// Reads the messages of a transport. Their size is checked here, whatever the transport checked.
async fn read_messages(
    link: Arc<ServerConnection>,
    mut messages: impl Stream<Item = io::Result<Bytes>> + Unpin,
    limit: usize,
    account: BudgetScope,
) {
    loop {
        let message = match messages.next().await {
            Some(Ok(message)) => message,
            None => return link.mark_lost("it closed the connection"),
            Some(Err(error)) => return link.mark_lost(&format!("the connection failed: {error}")),
        };
        let mut permit = account.permit();
        let why = if message.len() > limit {
            UnusableAnswer::limit_exceeded("line_bytes", limit)
        } else if permit.cover_message(message.len() as u64).is_err() {
            UnusableAnswer::BudgetExceeded
        } else {
            link.receive_line(message.into(), permit);
            continue;
        };
        link.fail_unusable(why, UnreadableText::of(&message), MessageSource::Stream);
    }
}

/// Direction to the server: messages are added, then written together.
trait MessageOutput: Send + 'static {
    fn add(&mut self, message: String);

    /// Returns the size of the added messages, in bytes.
    fn len(&self) -> usize;

    /// Writes the added messages.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Lines of a byte stream.
struct LineOutput<W> {
    writer: W,
    text: String,
}

impl<W: AsyncWrite + Send + Unpin + 'static> MessageOutput for LineOutput<W> {
    fn add(&mut self, message: String) {
        match self.text.is_empty() {
            true => self.text = message,
            false => {
                self.text.push('\n');
                self.text.push_str(&message);
            }
        }
    }

    fn len(&self) -> usize {
        self.text.len()
    }

    async fn flush(&mut self) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.push('\n');
        self.writer.write_all(text.as_bytes()).await?;
        self.writer.flush().await
    }

    /// Dropping is not enough for all writers: one half of a split stream does not close it.
    async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}

/// Messages of a transport.
struct SinkOutput<S> {
    sink: S,
    messages: Vec<String>,
}

impl<S: Sink<String, Error = io::Error> + Send + Unpin + 'static> MessageOutput for SinkOutput<S> {
    fn add(&mut self, message: String) {
        self.messages.push(message);
    }

    fn len(&self) -> usize {
        self.messages.iter().map(String::len).sum()
    }

    async fn flush(&mut self) -> io::Result<()> {
        for message in std::mem::take(&mut self.messages) {
            self.sink.feed(message).await?;
        }
        self.sink.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.close().await
    }
}

async fn write(
    link: Arc<ServerConnection>,
    mut to: impl MessageOutput,
    mut requests: mpsc::Receiver<QueuedRequest>,
    mut urgent: mpsc::Receiver<String>,
) {
    let mut lost = link.lost_reason();
    let work = async {
        loop {
            let request = tokio::select! {
                biased;
                Some(line) = urgent.recv() => {
                    to.add(line);
                    to.flush().await?;
                    continue;
                }
                Some(request) = requests.recv() => request,
                else => return Ok(()),
            };
            // Held until the requests are written.
            let mut permits = Vec::new();
            add(&link, request, &mut to, &mut permits);
            while to.len() < MAX_BATCH_BYTES
                && let Ok(request) = requests.try_recv()
            {
                add(&link, request, &mut to, &mut permits);
            }
            if to.len() > 0 {
                to.flush().await?;
            }
        }
    };
    let failed: io::Result<()> = tokio::select! {
        _ = lost.wait_for(Option::is_some) => Ok(()),
        failed = work => failed,
    };
    let _ = to.close().await;
    if let Err(error) = failed {
        // Answers that the server wrote before it stopped reading are still useful.
        let mut lost = link.lost_reason();
        let _ = tokio::time::timeout(LAST_ANSWERS_WAIT, lost.wait_for(Option::is_some)).await;
        link.mark_lost(&format!("writing to it failed: {error}"));
    }
}

/// Adds a request to the output unless its caller gave up.
fn add(
    link: &ServerConnection,
    request: QueuedRequest,
    to: &mut impl MessageOutput,
    permits: &mut Vec<Arc<MemoryPermit>>,
) {
    if link.mark_sent(&request.id) {
        to.add(request.line);
        permits.extend(request.claim);
    }
}
