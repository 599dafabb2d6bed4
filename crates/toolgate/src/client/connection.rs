//! Requests in flight with one server, over any transport.

#[cfg(not(feature = "http-client"))]
use super::auth_error::AuthError;
use super::{
    client_handler::{self, OptionalClientHandler},
    log_attribution::CancelledLogCallers,
    observed_requests::{self, ServerObservation},
    options::RemoteOptions,
    parked::InputRequestSender,
    repeated_list::RepeatedListReplies,
    status::{ConnectionNotes, ProtocolErrorKind},
    transport::{ClientTransport, MirroredHeaders, OutgoingRequest},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};
use std::time::Instant;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::{AbortHandle, JoinHandle},
};
#[cfg(feature = "http-client")]
use toolgate_auth::client::AuthError;
use toolgate_core::{CallReporter, Caller, ChangeCounters, DecisionLog, Error};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonLimits},
    message::{self, Id, RpcError},
    method::{definition::ItemKind, notifications},
    request_table::RequestTable,
};

/// Connection state that the transport and all calls share.
pub(super) struct ServerConnection {
    table: Mutex<InFlightRequests>,
    /// Number of list requests in flight.
    listing: AtomicUsize,
    transport: Arc<dyn ClientTransport>,
    pub(super) limits: JsonLimits,
    lost: watch::Sender<Option<String>>,
    pub(super) notes: ConnectionNotes,
    pub(super) dialect: OnceLock<&'static Dialect>,
    /// Incremented with each sign that a list is stale.
    pub(super) generation: AtomicU64,
    pub(super) changes: watch::Sender<ChangeCounters>,
    /// Number of sessions after the first: subscriptions are renewed when it changes.
    pub(super) renewals: watch::Sender<u64>,
    pub(super) cancelled_log_callers: CancelledLogCallers,
    /// True if an answer to a list had a duplicate key or U+0000: the items are then parsed again one by one.
    pub(super) rereads_items: AtomicBool,
    /// Last list replies, which the server may repeat.
    pub(super) repeated_lists: RepeatedListReplies,
    /// True if a line was received already.
    pub(super) has_received_line: AtomicBool,
    /// True if no stream is open on which a legacy server could report changes.
    pub(super) has_no_change_stream: AtomicBool,
    /// Application that answers input requests, if one has the server to itself.
    pub(super) answerer: OptionalClientHandler,
    /// Observer of the requests, for metrics and traces.
    pub(super) observation: Option<ServerObservation>,
    /// Reference for tasks that outlive the handling of a message.
    pub(super) weak_self: Weak<ServerConnection>,
}

pub(super) struct InFlightRequests {
    pub(super) session: RequestTable<PendingRequest, AbortHandle>,
    open: bool,
}

/// Request in flight.
pub(super) struct PendingRequest {
    reply: oneshot::Sender<Result<Json, RequestFailure>>,
    pub(super) purpose: RequestPurpose,
    /// True if any byte of the request may have been sent.
    sent: AtomicBool,
}

/// Purpose of a request.
#[derive(Clone)]
pub(super) enum RequestPurpose {
    /// Opening the server. Never cancelled: an old server accepts no notification before the handshake.
    Open,
    /// A list, or another small request.
    List,
    /// A call: its reporter, caller, channel for input requests, and decision log with the cancel reason.
    Call(
        CallReporter,
        Caller,
        Option<InputRequestSender>,
        DecisionLog,
    ),
    /// A notification stream, and its acknowledgement.
    Listen(Arc<StreamAcknowledgement>),
}

/// Acknowledgement of a notification stream.
#[derive(Default)]
pub(super) struct StreamAcknowledgement {
    acknowledged: Notify,
    filter: Mutex<Option<Json>>,
}

impl StreamAcknowledgement {
    /// Records the acknowledgement, with the filter that the server accepted.
    pub(super) fn acknowledge(&self, filter: Option<Json>) {
        *self.filter.lock().unwrap_or_else(PoisonError::into_inner) = filter;
        self.acknowledged.notify_one();
    }

    /// Waits for the acknowledgement. Returns the filter that the server accepted.
    pub(super) async fn wait_for_acknowledgement(&self) -> Option<Json> {
        self.acknowledged.notified().await;
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        filter.take()
    }
}

/// Reason why a request has no result.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The server answered with a JSON-RPC error.
    Rpc(RpcError),
    /// It was rejected here before it was sent.
    Rejected(Error),
    /// The memory budget has no room for the reply.
    BudgetExceeded,
    /// The reply exceeds a limit or cannot be parsed; a predicate whose subject is the answer.
    Unusable(String),
    /// The reply is malformed.
    Malformed(&'static str),
    /// The connection was lost.
    ConnectionLost {
        /// True if any byte of the request may have been sent.
        sent: bool,
    },
    /// The HTTP request failed or was rejected.
    Http {
        /// A predicate whose subject is the server.
        words: String,
        /// The status code, if there was a response.
        status: Option<u16>,
        /// True if the server may have acted on the request.
        sent: bool,
        /// The reason why there was no access token to send.
        no_token: Option<AuthError>,
    },
}

/// Tasks of a connection; they end when the value is dropped.
pub(super) enum ConnectionTasks {
    /// Aborted at once.
    Aborted([JoinHandle<()>; 2]),
    /// Ends by itself once the connection is lost, because it still has to end the HTTP session.
    SelfEnding(Arc<ServerConnection>, watch::Receiver<()>),
}

impl ConnectionTasks {
    /// Waits until the HTTP session is ended, if there is one.
    pub(super) async fn wait_until_ended(&self) {
        if let ConnectionTasks::SelfEnding(_, working) = self {
            let _ = working.clone().changed().await;
        }
    }
}

impl Drop for ConnectionTasks {
    fn drop(&mut self) {
        match self {
            ConnectionTasks::Aborted(tasks) => tasks.iter().for_each(JoinHandle::abort),
            ConnectionTasks::SelfEnding(link, _) => {
                link.mark_lost("this client closed the connection")
            }
        }
    }
}

impl ServerConnection {
    /// Returns the connection over a transport.
    pub(super) fn over(
        transport: Arc<dyn ClientTransport>,
        options: &RemoteOptions,
    ) -> Arc<ServerConnection> {
        Arc::new_cyclic(|me| ServerConnection {
            table: Mutex::new(InFlightRequests {
                session: RequestTable::new(client_handler::MAX_CONCURRENT_INPUT_REQUESTS),
                open: true,
            }),
            listing: AtomicUsize::new(0),
            transport,
            limits: options.json_limits.clone(),
            lost: watch::Sender::new(None),
            notes: ConnectionNotes::default(),
            dialect: OnceLock::new(),
            generation: AtomicU64::new(0),
            changes: watch::Sender::new(ChangeCounters::default()),
            renewals: watch::Sender::new(0),
            cancelled_log_callers: CancelledLogCallers::default(),
            rereads_items: AtomicBool::new(false),
            repeated_lists: RepeatedListReplies::default(),
            has_received_line: AtomicBool::new(false),
            has_no_change_stream: AtomicBool::new(false),
            answerer: options.client_handler.clone(),
            observation: ServerObservation::of(options),
            weak_self: me.clone(),
        })
    }

    /// Sends a request and waits for its reply. Dropping the future discards the request, and cancels it at the server
    /// if it was sent.
    pub(super) async fn request(
        &self,
        method: &str,
        purpose: RequestPurpose,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, RequestFailure> {
        self.request_with(method, purpose, &MirroredHeaders::default(), params)
            .await
    }

    /// As [`ServerConnection::request`], with headers for a transport that has them.
    pub(super) async fn request_with(
        &self,
        method: &str,
        purpose: RequestPurpose,
        mirrored: &MirroredHeaders,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, RequestFailure> {
        let Some(observation) = &self.observation else {
            return self.send_request(method, purpose, mirrored, params).await;
        };
        if !observed_requests::is_reported(&purpose) {
            return self.send_request(method, purpose, mirrored, params).await;
        }
        let started = Instant::now();
        // Boxed: the future of a call must not have room for another request.
        let answer = Box::pin(self.send_request(method, purpose, mirrored, params)).await;
        observation.report(self, method, started, &answer);
        answer
    }

    async fn send_request(
        &self,
        method: &str,
        purpose: RequestPurpose,
        mirrored: &MirroredHeaders,
        params: impl FnOnce(&Id) -> Json,
    ) -> Result<Json, RequestFailure> {
        let (reply, mut answer) = oneshot::channel();
        let guard = self.register(PendingRequest {
            reply,
            purpose,
            sent: AtomicBool::new(false),
        })?;
        let request = OutgoingRequest {
            id: &guard.id,
            method,
            params: params(&guard.id),
            mirrored,
        };
        tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(RequestFailure::ConnectionLost { sent: true })),
            carried = self.transport.send(self, &request) => if let Err(failure) = carried {
                // The request is over for the server as well, so nothing needs to be cancelled.
                self.table().session.take_waiter(&guard.id);
                return answer.try_recv().unwrap_or(Err(failure));
            }
        }
        answer
            .await
            .unwrap_or(Err(RequestFailure::ConnectionLost { sent: true }))
    }

    /// Sends the notification that ends the handshake, before any request that follows.
    pub(super) async fn send_initialized(&self, method: &str) {
        self.transport
            .send_initialized(self, message::notification(method, None))
            .await;
    }

    /// Returns whether the connection was lost, other than by this client.
    pub(super) fn was_lost_to_the_server(&self) -> bool {
        let lost = self.lost.borrow();
        lost.as_deref()
            .is_some_and(|reason| !reason.contains("this client"))
    }

    /// Returns whether the transport is HTTP, so that the rules on headers apply.
    pub(super) fn is_http(&self) -> bool {
        self.transport.is_http()
    }

    /// Returns whether the handshake opened a session in which the server can send requests.
    pub(super) fn keeps_session(&self) -> bool {
        self.transport.keeps_session()
    }

    /// Returns the negotiated revision; before that, the newest with a handshake. Its rules fit a server that has not
    /// answered yet: such a server may send requests and notifications that nothing was asked for.
    pub(super) fn current_dialect(&self) -> &'static Dialect {
        self.dialect.get().copied().unwrap_or(dialect::LEGACY)
    }

    /// Sends a notification with priority over queued requests.
    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        self.send_priority(message::notification(method, params));
    }

    /// Sends a line with priority over queued requests. Never waits: if the priority queue is full, the line is
    /// dropped.
    pub(super) fn send_priority(&self, line: String) {
        if !self.transport.send_priority(line) {
            self.notes.count(
                ProtocolErrorKind::Unsent,
                "it does not read its input fast enough, so a message to it was dropped",
            );
        }
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn send_and_forget(&self, method: &str, params: &Json) {
        let (reply, _) = oneshot::channel();
        let waiting = PendingRequest {
            reply,
            purpose: RequestPurpose::List,
            sent: AtomicBool::new(true),
        };
        let id = self.table().session.register(waiting);
        // Not every server answers, and over HTTP nothing reads the answer: the request is not stored.
        self.table().session.take_waiter(&id);
        self.send_priority(message::request(&id, method, Some(params)));
    }

    /// Completes the request that a reply answers.
    pub(super) fn complete_request(&self, id: Option<&Id>, answer: Result<Json, RequestFailure>) {
        let waiting = id.and_then(|id| self.table().session.take_waiter(id));
        match waiting {
            // The receiver may be gone: the call was just dropped.
            Some(waiting) => drop(waiting.reply.send(answer)),
            None => self.notes.count(
                ProtocolErrorKind::StrayReply,
                "it sent a reply to a request that is not in flight",
            ),
        }
    }

    /// Returns the purpose of a request in flight.
    pub(super) fn purpose(&self, id: &Id) -> Option<RequestPurpose> {
        self.table()
            .session
            .waiter(id)
            .map(|waiting| waiting.purpose.clone())
    }

    /// Returns whether any list request is in flight. It saves the lookup of ids otherwise.
    pub(super) fn is_listing(&self) -> bool {
        self.listing.load(Relaxed) > 0
    }

    /// Returns whether that request is a list request.
    pub(super) fn is_list_request(&self, id: &Id) -> bool {
        let is_list = |waiting: &PendingRequest| matches!(waiting.purpose, RequestPurpose::List);
        self.table().session.waiter(id).is_some_and(is_list)
    }

    /// Returns the only request in flight; `None` if there are none or several.
    pub(super) fn only_pending_id(&self) -> Option<Id> {
        self.table().session.only_sent_id()
    }

    /// Returns the match of `find` if exactly one request in flight has one.
    pub(super) fn find_single<T>(&self, find: impl Fn(&RequestPurpose) -> Option<T>) -> Option<T> {
        let table = self.table();
        let waiting = table.session.waiters();
        let mut found = waiting.filter_map(|waiting| find(&waiting.purpose));
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Returns whether any request is in flight.
    pub(super) fn has_pending_requests(&self) -> bool {
        self.table().session.waiters().next().is_some()
    }

    /// Marks a list as stale.
    pub(super) fn mark_list_stale(&self, kind: ItemKind) {
        self.generation.fetch_add(1, Relaxed);
        self.changes
            .send_modify(|stale| stale.count_list_change(kind));
    }

    /// Marks a resource as changed.
    pub(super) fn mark_resource_updated(&self, uri: &str) {
        self.changes.send_modify(|stale| stale.count_update(uri));
    }

    /// Marks the connection as lost. All requests in flight fail.
    pub(super) fn mark_lost(&self, reason: &str) {
        let (waiting, answering) = {
            let mut table = self.table();
            table.open = false;
            (table.session.drain_waiters(), table.session.drain_workers())
        };
        answering.iter().for_each(AbortHandle::abort);
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert_with(|| reason.to_owned());
            first
        });
        for waiting in waiting {
            let sent = waiting.sent.load(Relaxed);
            drop(
                waiting
                    .reply
                    .send(Err(RequestFailure::ConnectionLost { sent })),
            );
        }
    }

    /// Returns the reason why the connection was lost, once it is.
    pub(super) fn lost_reason(&self) -> watch::Receiver<Option<String>> {
        self.lost.subscribe()
    }

    /// Returns whether the connection is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    fn register(&self, waiting: PendingRequest) -> Result<RequestGuard<'_>, RequestFailure> {
        let mut table = self.table();
        if !table.open {
            return Err(RequestFailure::ConnectionLost { sent: false });
        }
        let lists = matches!(waiting.purpose, RequestPurpose::List);
        if lists {
            self.listing.fetch_add(1, Relaxed);
        }
        let id = table.session.register(waiting);
        Ok(RequestGuard {
            link: self,
            id,
            lists,
        })
    }

    /// Marks a request as sent. Returns false if it was dropped before that.
    pub(super) fn mark_sent(&self, id: &Id) -> bool {
        let table = self.table();
        let waiting = table.session.waiter(id);
        waiting
            .inspect(|waiting| waiting.sent.store(true, Relaxed))
            .is_some()
    }

    /// Removes a request whose result is no longer needed. Returns the notification that cancels it at the server, if
    /// the request is in flight there and the transport cancels that way.
    pub(super) fn discard_request(&self, id: &Id) -> Option<String> {
        let waiting = self.table().session.take_waiter(id)?;
        // Over HTTP, the end of the request's stream also ends its messages.
        if !self.is_http() {
            self.cancelled_log_callers.record(&waiting.purpose);
        }
        let notifies = self
            .transport
            .cancels_by_notification(self.current_dialect());
        let cancels = notifies
            && waiting.sent.load(Relaxed)
            && !matches!(waiting.purpose, RequestPurpose::Open);
        cancels.then(|| {
            let params = notifications::cancelled(id, cancel_reason(&waiting.purpose));
            message::notification(notifications::CANCELLED, Some(&params))
        })
    }

    pub(super) fn table(&self) -> MutexGuard<'_, InFlightRequests> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reason of a cancellation.
fn cancel_reason(purpose: &RequestPurpose) -> &'static str {
    let why = match purpose {
        RequestPurpose::Call(.., trail) => trail.cancel_reason(),
        _ => None,
    };
    why.map_or("the client no longer needs the result", |why| why.message())
}

/// Request in flight. Dropping it before the reply cancels the request at the server.
struct RequestGuard<'a> {
    link: &'a ServerConnection,
    id: Id,
    lists: bool,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.lists {
            self.link.listing.fetch_sub(1, Relaxed);
        }
        if let Some(line) = self.link.discard_request(&self.id) {
            self.link.send_priority(line);
        }
    }
}
