//! The requests in flight with one server, and the two tasks that read and write.

use super::{
    lines::{Line, Lines},
    options::RemoteOptions,
    status::{Notes, Trouble},
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
use toolgate_core::{Reporter, Stale};
use toolgate_wire::{
    dialect::Dialect,
    json::Json,
    message::{self, Id, RpcError},
    method::{definition::ItemKind, notifications},
    session::Session,
};

/// Messages that wait for the server to read. A caller waits with its request where the queue is full.
const QUEUE: usize = 32;
/// Cancellations and answers that wait; they may overtake requests.
const URGENT: usize = 1024;
/// How long answers that are still in the pipe may come in after the server stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What both tasks and all calls share.
pub(super) struct Link {
    table: Mutex<Table>,
    out: mpsc::Sender<(Id, String)>,
    urgent: mpsc::Sender<String>,
    lost: watch::Sender<Option<String>>,
    pub(super) notes: Notes,
    pub(super) dialect: OnceLock<&'static Dialect>,
    /// Raised with each sign that a list is stale.
    pub(super) generation: AtomicU64,
    pub(super) changes: watch::Sender<Stale>,
}

struct Table {
    session: Session<Waiting, ()>,
    open: bool,
}

/// What waits for a reply.
pub(super) struct Waiting {
    reply: oneshot::Sender<Result<Json, Failure>>,
    pub(super) purpose: Purpose,
    /// Whether any byte of the request may have left.
    sent: AtomicBool,
}

/// What a request is for.
#[derive(Clone)]
pub(super) enum Purpose {
    /// To open the server. Never cancelled: an old server takes no notification before the handshake.
    Open,
    /// A list.
    List,
    /// A call, with a way back for its progress.
    Call(Reporter),
    /// A stream of change notifications.
    Listen,
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server says so.
    Rpc(RpcError),
    /// The reply is no reply.
    Malformed(&'static str),
    /// The server is gone; whether it can have seen the request.
    Lost {
        /// Whether any byte of the request may have left.
        sent: bool,
    },
}

/// The two tasks; dropping them ends the stream.
pub(super) struct Tasks([JoinHandle<()>; 2]);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Link {
    /// Starts to read and write.
    pub(super) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: &RemoteOptions,
    ) -> (Arc<Link>, Tasks) {
        let (out, requests) = mpsc::channel(QUEUE);
        let (urgent, first) = mpsc::channel(URGENT);
        let link = Arc::new(Link {
            table: Mutex::new(Table {
                session: Session::new(0),
                open: true,
            }),
            out,
            urgent,
            lost: watch::Sender::new(None),
            notes: Notes::default(),
            dialect: OnceLock::new(),
            generation: AtomicU64::new(0),
            changes: watch::Sender::new(Stale::default()),
        });
        let read = read(
            link.clone(),
            Lines::new(reader, options.line),
            options.json.clone(),
        );
        let write = write(link.clone(), writer, requests, first);
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge: one reader and one writer a server, ended with `Tasks`"
        )]
        let tasks = Tasks([tokio::spawn(read), tokio::spawn(write)]);
        (link, tasks)
    }

    /// Sends a request and waits for its reply. Dropping the future forgets the request, and cancels it
    /// at the server where it has left already.
    pub(super) async fn request(
        &self,
        method: &str,
        purpose: Purpose,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, Failure> {
        let (reply, answer) = oneshot::channel();
        let guard = self.enter(Waiting {
            reply,
            purpose,
            sent: AtomicBool::new(false),
        })?;
        let line = message::request(&guard.id, method, Some(&params(&guard.id)));
        if self.out.send((guard.id.clone(), line)).await.is_err() {
            return Err(Failure::Lost { sent: false });
        }
        answer.await.unwrap_or(Err(Failure::Lost { sent: true }))
    }

    /// Sends a notification, before all requests that wait.
    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        self.hurry(message::notification(method, params));
    }

    /// Sends a line before all requests that wait. Never waits: where even this queue is full, the line is lost.
    pub(super) fn hurry(&self, line: String) {
        if self.urgent.try_send(line).is_err() {
            self.notes.count(
                Trouble::Unsent,
                "the server does not read, so a message to it was dropped",
            );
        }
    }

    /// Sends a request whose answer nobody waits for.
    pub(super) fn ask_no_more(&self, method: &str, params: &Json) {
        let (reply, _) = oneshot::channel();
        let waiting = Waiting {
            reply,
            purpose: Purpose::List,
            sent: AtomicBool::new(true),
        };
        let id = self.table().session.open(waiting);
        self.hurry(message::request(&id, method, Some(params)));
    }

    /// A reply came.
    pub(super) fn settle(&self, id: Option<&Id>, answer: Result<Json, Failure>) {
        let waiting = id.and_then(|id| self.table().session.settle(id));
        match waiting {
            // Nobody there any more: the call was dropped a moment ago.
            Some(waiting) => drop(waiting.reply.send(answer)),
            None => self.notes.count(
                Trouble::StrayReply,
                "a reply came to a request that nobody waits for",
            ),
        }
    }

    /// What a request in flight is for.
    pub(super) fn purpose(&self, id: &Id) -> Option<Purpose> {
        self.table()
            .session
            .waiting(id)
            .map(|waiting| waiting.purpose.clone())
    }

    /// A list went stale.
    pub(super) fn stale(&self, kind: ItemKind) {
        self.generation.fetch_add(1, Relaxed);
        self.changes.send_modify(|stale| stale.list(kind));
    }

    /// A resource went stale.
    pub(super) fn updated(&self, uri: &str) {
        self.changes.send_modify(|stale| stale.update(uri));
    }

    /// The server is gone. All that waits ends.
    pub(super) fn lose(&self, reason: &str) {
        let waiting = {
            let mut table = self.table();
            table.open = false;
            table.session.lost()
        };
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert_with(|| reason.to_owned());
            first
        });
        for waiting in waiting {
            let sent = waiting.sent.load(Relaxed);
            drop(waiting.reply.send(Err(Failure::Lost { sent })));
        }
    }

    /// Why the server is gone, where it is.
    pub(super) fn lost(&self) -> watch::Receiver<Option<String>> {
        self.lost.subscribe()
    }

    fn enter(&self, waiting: Waiting) -> Result<Guard<'_>, Failure> {
        let mut table = self.table();
        if !table.open {
            return Err(Failure::Lost { sent: false });
        }
        let id = table.session.open(waiting);
        Ok(Guard { link: self, id })
    }

    /// Marks a request as sent; false where it was dropped before it left.
    fn leaves(&self, id: &Id) -> bool {
        let table = self.table();
        let waiting = table.session.waiting(id);
        waiting
            .inspect(|waiting| waiting.sent.store(true, Relaxed))
            .is_some()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight. Dropped before the reply, it tells the server.
struct Guard<'a> {
    link: &'a Link,
    id: Id,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Some(waiting) = self.link.table().session.settle(&self.id) else {
            return;
        };
        if waiting.sent.load(Relaxed) && !matches!(waiting.purpose, Purpose::Open) {
            let params = notifications::cancelled(&self.id, "no longer wanted");
            self.link.notify(notifications::CANCELLED, Some(&params));
        }
    }
}

async fn read(
    link: Arc<Link>,
    mut lines: Lines<impl AsyncRead + Unpin>,
    limits: toolgate_wire::json::Limits,
) {
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) => link.take(line, &limits),
            Ok(Some(Line::TooLong)) => link.notes.count(
                Trouble::LongLine,
                "a line was over the limit and was dropped",
            ),
            Ok(None) => return link.lose("it closed its output"),
            Err(error) => return link.lose(&format!("its output cannot be read: {error}")),
        }
    }
}

async fn write(
    link: Arc<Link>,
    mut to: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<(Id, String)>,
    mut urgent: mpsc::Receiver<String>,
) {
    let mut lost = link.lost();
    let work = async {
        loop {
            let line = tokio::select! {
                biased;
                Some(line) = urgent.recv() => line,
                Some((id, line)) = requests.recv() => if link.leaves(&id) { line } else { continue },
                else => return Ok(()),
            };
            put(&mut to, line).await?;
        }
    };
    let failed: std::io::Result<()> = tokio::select! {
        _ = lost.wait_for(Option::is_some) => Ok(()),
        failed = work => failed,
    };
    // Not all writers end with their drop: one half of a stream does not.
    let _ = to.shutdown().await;
    if let Err(error) = failed {
        // What the server wrote before it stopped reading is still worth having.
        let mut lost = link.lost();
        let _ = tokio::time::timeout(LAST_WORDS, lost.wait_for(Option::is_some)).await;
        link.lose(&format!("its input cannot be written: {error}"));
    }
}

async fn put(to: &mut (impl AsyncWrite + Unpin), mut line: String) -> std::io::Result<()> {
    line.push('\n');
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}
