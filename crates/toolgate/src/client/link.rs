//! The requests in flight with one server, whatever carries them.

use super::{
    answerer::{self, Answers},
    logs::GaveUp,
    options::RemoteOptions,
    parked::Asking,
    status::{Notes, Trouble},
    transport::{Mirrored, Outgoing, Transport},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};
use tokio::{
    sync::{Notify, oneshot, watch},
    task::{AbortHandle, JoinHandle},
};
use toolgate_auth::client::AuthError;
use toolgate_core::{Caller, Error, Reporter, Stale, Trail};
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, Limits},
    message::{self, Id, RpcError},
    method::{definition::ItemKind, notifications},
    session::Session,
};

/// What the transport and all calls share.
pub(super) struct Link {
    table: Mutex<Table>,
    /// How many requests for lists are in flight.
    listing: AtomicUsize,
    transport: Arc<dyn Transport>,
    pub(super) limits: Limits,
    lost: watch::Sender<Option<String>>,
    pub(super) notes: Notes,
    pub(super) dialect: OnceLock<&'static Dialect>,
    /// Raised with each sign that a list is stale.
    pub(super) generation: AtomicU64,
    pub(super) changes: watch::Sender<Stale>,
    /// Counts the sessions after the first: what was asked of the one before is asked again.
    pub(super) renewed: watch::Sender<u64>,
    pub(super) gave_up: GaveUp,
    /// Whether the answer to a list had a key that no object may have: its items are read once more, one by one.
    pub(super) apart: AtomicBool,
    /// Whether a line came already.
    pub(super) begun: AtomicBool,
    /// Whether no stream is open on which a server with a handshake could tell changes.
    pub(super) deaf: AtomicBool,
    /// Who answers the server, where one application uses it alone.
    pub(super) answerer: Answers,
    /// For what outlives the reading of a line.
    pub(super) me: Weak<Link>,
}

pub(super) struct Table {
    pub(super) session: Session<Waiting, AbortHandle>,
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
    /// A call, with a way back for its events, whose it is, where questions in its middle go, and what says why it ends.
    Call(Reporter, Caller, Option<Asking>, Trail),
    /// A stream of change notifications; told once the server acknowledges it.
    Listen(Arc<Listening>),
}

/// What a stream of change notifications waits for.
#[derive(Default)]
pub(super) struct Listening {
    acknowledged: Notify,
    filter: Mutex<Option<Json>>,
}

impl Listening {
    /// The server acknowledges the stream: of these things it will tell.
    pub(super) fn acknowledge(&self, filter: Option<Json>) {
        *self.filter.lock().unwrap_or_else(PoisonError::into_inner) = filter;
        self.acknowledged.notify_one();
    }

    /// Ends once the server acknowledged it; of what it will tell.
    pub(super) async fn acknowledged(&self) -> Option<Json> {
        self.acknowledged.notified().await;
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        filter.take()
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server says so.
    Rpc(RpcError),
    /// It was refused here, before anything was sent; why.
    Unsent(Error),
    /// There was no room for the reply.
    NoRoom,
    /// The reply exceeds a limit or cannot be read; why, with the answer as its subject.
    Unusable(String),
    /// The reply is no reply.
    Malformed(&'static str),
    /// The server is gone; whether it can have seen the request.
    Lost {
        /// Whether any byte of the request may have left.
        sent: bool,
    },
    /// HTTP says no, or there is no HTTP server.
    Http {
        /// What happened, with the server as its subject.
        words: String,
        /// The status, where there is one.
        status: Option<u16>,
        /// Whether the server may have acted on the request.
        sent: bool,
        /// Why there was no token to send, where that is it.
        no_token: Option<AuthError>,
    },
}

/// What works for a link; dropping it ends the work.
pub(super) enum Tasks {
    /// Ended at once.
    Aborted([JoinHandle<()>; 2]),
    /// It ends by itself once the link is lost: it has a goodbye to say.
    Told(Arc<Link>, watch::Receiver<()>),
}

impl Tasks {
    /// Waits until goodbye is said, where there is one to say.
    pub(super) async fn over(&self) {
        if let Tasks::Told(_, working) = self {
            let _ = working.clone().changed().await;
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        match self {
            Tasks::Aborted(tasks) => tasks.iter().for_each(JoinHandle::abort),
            Tasks::Told(link, _) => link.lose("it is no longer used"),
        }
    }
}

impl Link {
    /// A link over a transport.
    pub(super) fn over(transport: Arc<dyn Transport>, options: &RemoteOptions) -> Arc<Link> {
        Arc::new_cyclic(|me| Link {
            table: Mutex::new(Table {
                session: Session::new(answerer::AT_ONCE),
                open: true,
            }),
            listing: AtomicUsize::new(0),
            transport,
            limits: options.json.clone(),
            lost: watch::Sender::new(None),
            notes: Notes::default(),
            dialect: OnceLock::new(),
            generation: AtomicU64::new(0),
            changes: watch::Sender::new(Stale::default()),
            renewed: watch::Sender::new(0),
            gave_up: GaveUp::default(),
            apart: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
            answerer: options.answerer.clone(),
            me: me.clone(),
        })
    }

    /// Sends a request and waits for its reply. Dropping the future forgets the request, and cancels it
    /// at the server where it has left already.
    pub(super) async fn request(
        &self,
        method: &str,
        purpose: Purpose,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, Failure> {
        self.request_with(method, purpose, &Mirrored::default(), params)
            .await
    }

    /// The same, with headers for a transport that has them.
    pub(super) async fn request_with(
        &self,
        method: &str,
        purpose: Purpose,
        mirrored: &Mirrored,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, Failure> {
        let (reply, mut answer) = oneshot::channel();
        let guard = self.enter(Waiting {
            reply,
            purpose,
            sent: AtomicBool::new(false),
        })?;
        let request = Outgoing {
            id: &guard.id,
            method,
            params: params(&guard.id),
            mirrored,
        };
        tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(Failure::Lost { sent: true })),
            carried = self.transport.carry(self, &request) => if let Err(failure) = carried {
                // It is over for the server too, so there is nothing to cancel.
                self.table().session.settle(&guard.id);
                return answer.try_recv().unwrap_or(Err(failure));
            }
        }
        answer.await.unwrap_or(Err(Failure::Lost { sent: true }))
    }

    /// The handshake is over: says so to the server, before any request that follows.
    pub(super) async fn ready(&self, method: &str) {
        self.transport
            .ready(self, message::notification(method, None))
            .await;
    }

    /// Whether the rules on HTTP headers hold.
    pub(super) fn is_http(&self) -> bool {
        self.transport.is_http()
    }

    /// Whether the handshake opened a session in which the server can send requests.
    pub(super) fn keeps_session(&self) -> bool {
        self.transport.keeps_session()
    }

    /// Whether it is known that the revision has no handshake.
    pub(super) fn is_stateless(&self) -> bool {
        self.dialect.get().is_some_and(|dialect| dialect.stateless)
    }

    /// Sends a notification, before all requests that wait.
    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        self.hurry(message::notification(method, params));
    }

    /// Sends a line before all requests that wait. Never waits: where even this queue is full, the line is lost.
    pub(super) fn hurry(&self, line: String) {
        if !self.transport.hurry(line) {
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
        // Not every server answers, and over HTTP nobody reads the answer: what waits for nobody is not kept.
        self.table().session.settle(&id);
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

    /// Whether any list is asked for. While none is, nothing is looked up.
    pub(super) fn is_listing(&self) -> bool {
        self.listing.load(Relaxed) > 0
    }

    /// Whether that request asks for a list.
    pub(super) fn lists(&self, id: &Id) -> bool {
        let is_list = |waiting: &Waiting| matches!(waiting.purpose, Purpose::List);
        self.table().session.waiting(id).is_some_and(is_list)
    }

    /// The one request in flight; `None` where there are more.
    pub(super) fn only_waiting(&self) -> Option<Id> {
        self.table().session.only_waiting()
    }

    /// What is found in just one purpose of all requests in flight.
    pub(super) fn only<T>(&self, find: impl Fn(&Purpose) -> Option<T>) -> Option<T> {
        let table = self.table();
        let waiting = table.session.all_waiting();
        let mut found = waiting.filter_map(|waiting| find(&waiting.purpose));
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Whether the server has something to answer.
    pub(super) fn is_asked(&self) -> bool {
        self.table().session.all_waiting().next().is_some()
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
        let (waiting, answering) = {
            let mut table = self.table();
            table.open = false;
            (table.session.lost(), table.session.stop())
        };
        answering.iter().for_each(AbortHandle::abort);
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

    /// Whether the server is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    fn enter(&self, waiting: Waiting) -> Result<Guard<'_>, Failure> {
        let mut table = self.table();
        if !table.open {
            return Err(Failure::Lost { sent: false });
        }
        let lists = matches!(waiting.purpose, Purpose::List);
        if lists {
            self.listing.fetch_add(1, Relaxed);
        }
        let id = table.session.open(waiting);
        Ok(Guard {
            link: self,
            id,
            lists,
        })
    }

    /// Marks a request as sent; false where it was dropped before it left.
    pub(super) fn leaves(&self, id: &Id) -> bool {
        let table = self.table();
        let waiting = table.session.waiting(id);
        waiting
            .inspect(|waiting| waiting.sent.store(true, Relaxed))
            .is_some()
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason of a cancellation.
fn why(purpose: &Purpose) -> &'static str {
    let why = match purpose {
        Purpose::Call(.., trail) => trail.given_up(),
        _ => None,
    };
    why.map_or("no longer wanted", |why| why.words())
}

/// A request in flight. Dropped before the reply, it tells the server.
struct Guard<'a> {
    link: &'a Link,
    id: Id,
    lists: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.lists {
            self.link.listing.fetch_sub(1, Relaxed);
        }
        let Some(waiting) = self.link.table().session.settle(&self.id) else {
            return;
        };
        // Over HTTP the end of its stream ends its messages, too.
        if !self.link.is_http() {
            self.link.gave_up.note(&waiting.purpose);
        }
        let told = self.link.transport.tells_cancel(self.link.is_stateless());
        if told && waiting.sent.load(Relaxed) && !matches!(waiting.purpose, Purpose::Open) {
            let params = notifications::cancelled(&self.id, why(&waiting.purpose));
            self.link.notify(notifications::CANCELLED, Some(&params));
        }
    }
}
