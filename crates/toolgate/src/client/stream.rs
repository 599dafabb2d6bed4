//! Byte stream transport (stdio): one task reads the server's lines, one writes ours.

use super::{
    connection::{ConnectionTasks, RequestFailure, ServerConnection},
    incoming::MessageSource,
    line_codec::{LineDropReason, LineReader, StreamLine},
    options::RemoteOptions,
    transport::{ClientTransport, OutgoingRequest},
    unusable_answer::UnusableAnswer,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use toolgate_core::BoxFuture;
use toolgate_protocol::{dialect::Dialect, memory_budget::MemoryPermit, message::Id};

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

/// Starts the reader and the writer task.
pub(super) fn start(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    options: &RemoteOptions,
) -> (Arc<ServerConnection>, ConnectionTasks) {
    let (out, requests) = mpsc::channel(REQUEST_QUEUE_LEN);
    let (urgent, first) = mpsc::channel(PRIORITY_QUEUE_LEN);
    let link = ServerConnection::over(Arc::new(StreamTransport { out, urgent }), options);
    let lines = LineReader::new(reader, options.max_line_bytes, options.budget_scope.clone());
    let read = read(link.clone(), lines, options.max_line_bytes);
    let write = write(link.clone(), writer, requests, first);
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

async fn write(
    link: Arc<ServerConnection>,
    mut to: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<QueuedRequest>,
    mut urgent: mpsc::Receiver<String>,
) {
    let mut lost = link.lost_reason();
    let work = async {
        loop {
            let request = tokio::select! {
                biased;
                Some(line) = urgent.recv() => {
                    write_line(&mut to, line).await?;
                    continue;
                }
                Some(request) = requests.recv() => request,
                else => return Ok(()),
            };
            let mut lines = RequestBatch::default();
            lines.add(&link, request);
            while lines.text.len() < MAX_BATCH_BYTES
                && let Ok(request) = requests.try_recv()
            {
                lines.add(&link, request);
            }
            if !lines.text.is_empty() {
                write_line(&mut to, lines.text).await?;
                drop(lines.claims);
            }
        }
    };
    let failed: std::io::Result<()> = tokio::select! {
        _ = lost.wait_for(Option::is_some) => Ok(()),
        failed = work => failed,
    };
    // Dropping is not enough for all writers: one half of a split stream does not close it.
    let _ = to.shutdown().await;
    if let Err(error) = failed {
        // Answers that the server wrote before it stopped reading are still useful.
        let mut lost = link.lost_reason();
        let _ = tokio::time::timeout(LAST_ANSWERS_WAIT, lost.wait_for(Option::is_some)).await;
        link.mark_lost(&format!("writing to it failed: {error}"));
    }
}

/// Requests combined in one write, with their memory permits.
#[derive(Default)]
struct RequestBatch {
    text: String,
    claims: Vec<Arc<MemoryPermit>>,
}

impl RequestBatch {
    /// Adds a request unless its caller gave up.
    fn add(&mut self, link: &ServerConnection, request: QueuedRequest) {
        if !link.mark_sent(&request.id) {
            return;
        }
        match self.text.is_empty() {
            true => self.text = request.line,
            false => {
                self.text.push('\n');
                self.text.push_str(&request.line);
            }
        }
        self.claims.extend(request.claim);
    }
}

async fn write_line(to: &mut (impl AsyncWrite + Unpin), mut line: String) -> std::io::Result<()> {
    line.push('\n');
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}
