//! Byte stream transport (stdio): one task reads the server's lines, one writes ours.

use super::{
    incoming::Carrier,
    lines::{Dropped, Line, Lines},
    link::{Failure, Link, Tasks},
    options::RemoteOptions,
    transport::{Outgoing, Transport},
    unusable::Unusable,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use toolgate_core::BoxFuture;
use toolgate_wire::{message::Id, room::Claim};

/// Capacity of the request queue, in messages. A caller waits while it is full.
const QUEUE: usize = 32;
/// Capacity of the priority queue for cancellations and answers, in messages.
const URGENT: usize = 1024;
/// Maximum size of a write that combines queued requests, in bytes; bounded so that priority messages do not wait long.
const TOGETHER: usize = 64 << 10;
/// Time for buffered answers to arrive after the server stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Queued request, with the memory permit of its parameters.
struct Request {
    id: Id,
    line: String,
    claim: Option<Arc<Claim>>,
}

/// Queues to the writer task.
struct Stream {
    out: mpsc::Sender<Request>,
    urgent: mpsc::Sender<String>,
}

/// Starts the reader and the writer task.
pub(super) fn start(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    options: &RemoteOptions,
) -> (Arc<Link>, Tasks) {
    let (out, requests) = mpsc::channel(QUEUE);
    let (urgent, first) = mpsc::channel(URGENT);
    let link = Link::over(Arc::new(Stream { out, urgent }), options);
    let lines = Lines::new(reader, options.line, options.account.clone());
    let read = read(link.clone(), lines, options.line);
    let write = write(link.clone(), writer, requests, first);
    #[allow(
        clippy::disallowed_methods,
        reason = "one reader and one writer per server; aborted on drop"
    )]
    let tasks = Tasks::Aborted([tokio::spawn(read), tokio::spawn(write)]);
    (link, tasks)
}

impl Transport for Stream {
    fn carry<'a>(
        &'a self,
        _link: &'a Link,
        request: &'a Outgoing<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async {
            let sent = self
                .out
                .send(Request {
                    id: request.id.clone(),
                    line: request.line(),
                    claim: request.params.claim(),
                })
                .await;
            sent.map_err(|_| Failure::Lost { sent: false })
        })
    }

    fn hurry(&self, line: String) -> bool {
        self.urgent.try_send(line).is_ok()
    }

    fn ready<'a>(&'a self, link: &'a Link, line: String) -> BoxFuture<'a, ()> {
        link.hurry(line);
        Box::pin(async {})
    }

    fn tells_cancel(&self, _stateless: bool) -> bool {
        true
    }

    fn is_http(&self) -> bool {
        false
    }

    fn keeps_session(&self) -> bool {
        true
    }
}

async fn read(link: Arc<Link>, mut lines: Lines<impl AsyncRead + Unpin>, limit: usize) {
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line, claim))) => link.take(line, claim),
            Ok(Some(Line::Dropped(why, unread))) => {
                let why = match why {
                    Dropped::NoRoom => Unusable::NoRoom,
                    Dropped::TooLong => Unusable::over("line_bytes", limit),
                };
                link.unread(why, unread, Carrier::Stream);
            }
            Ok(None) => return link.lose("it closed its output"),
            Err(error) => return link.lose(&format!("its output cannot be read: {error}")),
        }
    }
}

async fn write(
    link: Arc<Link>,
    mut to: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<Request>,
    mut urgent: mpsc::Receiver<String>,
) {
    let mut lost = link.lost();
    let work = async {
        loop {
            let request = tokio::select! {
                biased;
                Some(line) = urgent.recv() => {
                    put(&mut to, line).await?;
                    continue;
                }
                Some(request) = requests.recv() => request,
                else => return Ok(()),
            };
            let mut lines = Together::default();
            lines.add(&link, request);
            while lines.text.len() < TOGETHER
                && let Ok(request) = requests.try_recv()
            {
                lines.add(&link, request);
            }
            if !lines.text.is_empty() {
                put(&mut to, lines.text).await?;
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
        let mut lost = link.lost();
        let _ = tokio::time::timeout(LAST_WORDS, lost.wait_for(Option::is_some)).await;
        link.lose(&format!("its input cannot be written: {error}"));
    }
}

/// Requests combined in one write, with their memory permits.
#[derive(Default)]
struct Together {
    text: String,
    claims: Vec<Arc<Claim>>,
}

impl Together {
    /// Adds a request unless its caller gave up.
    fn add(&mut self, link: &Link, request: Request) {
        if !link.leaves(&request.id) {
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

async fn put(to: &mut (impl AsyncWrite + Unpin), mut line: String) -> std::io::Result<()> {
    line.push('\n');
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}
