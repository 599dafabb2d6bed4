//! Remote server as a service.

use super::{
    call,
    connection::{ConnectionTasks, RequestFailure, ServerConnection},
    era::{self, EraMismatch},
    keepalive::KeepaliveTask,
    lists::ListCaches,
    negotiate::{self, NegotiatedServer, OpenError},
    options::RemoteOptions,
    parked::Parked,
    resource_subscriptions::{SubscriptionCounts, SubscriptionRenewal},
    status::{ConnectionStatus, sanitize_line},
    stream,
    subscription::ChangeSubscription,
    tasks,
};
use std::{future::ready, sync::Arc, time::Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, ClientCapabilities, Error, ErrorKind,
    ListRequest, Op, Outcome, Service,
};
use toolgate_protocol::{
    message::{RpcError, code},
    method::{content::Content, definition::ItemKind, output::Output},
};

/// Connection to an MCP server as its client, and the [`Service`](toolgate_core::Service) that forwards calls to it.
/// Dropping it closes the stream, or ends the HTTP session.
///
/// Specification: [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning),
/// [transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports).
///
/// ```
/// use tokio::io::{AsyncRead, AsyncWrite};
/// use toolgate::{client::{ConnectionStatus, OpenError, RemoteOptions, RemoteServer}, core::Origin};
///
/// /// Opens a server that a gateway started, on its standard input and output.
/// async fn open(
///     stdout: impl AsyncRead + Send + Unpin + 'static,
///     stdin: impl AsyncWrite + Send + Unpin + 'static,
/// ) -> Result<RemoteServer, OpenError> {
///     let mut options = RemoteOptions::new(Origin { server: "notes".into(), trusted: false });
///     options.max_items = 500;
///     RemoteServer::open(stdout, stdin, options).await
/// }
///
/// /// Reports the health of the connection.
/// fn report(server: &RemoteServer) -> String {
///     let ConnectionStatus { revision, tool_count, counters, lost_reason, .. } = server.status();
///     match lost_reason {
///         Some(reason) => format!("lost: {reason}"),
///         None => format!("{revision}: {tool_count:?} tools, {} unreadable lines", counters.bad_lines),
///     }
/// }
/// ```
pub struct RemoteServer {
    pub(super) link: Arc<ServerConnection>,
    pub(super) peer: Arc<NegotiatedServer>,
    pub(super) options: Arc<RemoteOptions>,
    /// Calls whose server waits for input.
    pub(super) parked: Arc<Parked>,
    pub(super) lists: ListCaches,
    pub(super) subscription_counts: SubscriptionCounts,
    tasks: ConnectionTasks,
    subscription: Option<ChangeSubscription>,
    _renewal: Option<SubscriptionRenewal>,
    _pinging: Option<KeepaliveTask>,
    opened: Instant,
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        if let Some(observation) = &self.link.observation {
            observation.report_end(&self.link, self.opened.elapsed());
        }
    }
}

impl RemoteServer {
    /// Connects to a server over a pair of byte streams (stdio): negotiates the revision and performs the handshake if
    /// needed.
    ///
    /// # Errors
    /// [`OpenError`]. After [`OpenError::ClosedDuringProbe`], restart the server and open it without a probe.
    pub async fn open(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: RemoteOptions,
    ) -> Result<RemoteServer, OpenError> {
        let (link, tasks) = stream::start(reader, writer, &options);
        RemoteServer::open_over(link, tasks, options).await
    }

    /// Connects to a server over a [`MessageTransport`](crate::transport::MessageTransport).
    ///
    /// # Errors
    /// [`OpenError`], as with [`RemoteServer::open`].
    pub async fn open_transport(
        transport: impl crate::transport::MessageTransport,
        options: RemoteOptions,
    ) -> Result<RemoteServer, OpenError> {
        let (link, tasks) = stream::start_transport(transport, &options);
        RemoteServer::open_over(link, tasks, options).await
    }

    /// Negotiates the revision over a connection that a transport has started.
    pub(super) async fn open_over(
        link: Arc<ServerConnection>,
        tasks: ConnectionTasks,
        options: RemoteOptions,
    ) -> Result<RemoteServer, OpenError> {
        let peer = negotiate::open(&link, &options).await?;
        let mut told = vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
        told.retain(|kind| peer.reports_list_changes(*kind));
        let listens = peer.dialect.subscription_streams && !told.is_empty();
        let subscription = listens.then(|| {
            ChangeSubscription::start(link.clone(), peer.dialect, &options, told, Vec::new())
        });
        let heard = SubscriptionCounts::default();
        let subscribes = peer.supports_subscriptions() && !peer.dialect.subscription_streams;
        let renews = subscribes && link.is_http();
        let renewal = renews
            .then(|| SubscriptionRenewal::start(link.clone(), heard.clone(), options.list_timeout));
        let pings = options.ping_interval.filter(|_| peer.dialect.ping);
        let pinging = pings.map(|every| KeepaliveTask::start(link.clone(), every));
        let remote = RemoteServer {
            link,
            peer: Arc::new(peer),
            options: Arc::new(options),
            parked: Arc::default(),
            lists: ListCaches::default(),
            subscription_counts: heard,
            tasks,
            subscription,
            _renewal: renewal,
            _pinging: pinging,
            opened: Instant::now(),
        };
        remote.seed_lists();
        Ok(remote)
    }

    /// Returns the MCP protocol revision negotiated with the server.
    pub fn revision(&self) -> &'static str {
        self.peer.dialect.revision
    }

    /// Returns the status of the connection to the server, with counters of protocol errors.
    pub fn status(&self) -> ConnectionStatus {
        ConnectionStatus {
            revision: self.revision(),
            server: self.peer.server.clone(),
            tool_count: self.lists.of(ItemKind::Tool).count(),
            definition_notes: self.definition_notes(),
            counters: self.link.notes.counters(),
            last_problem: self.link.notes.last(),
            last_alert: self.link.notes.last_alert(),
            parked_calls: self.parked.count(),
            lost_reason: self.link.lost_reason().borrow().clone(),
        }
    }

    /// Waits until the connection to the server is lost, and returns the reason.
    pub async fn closed(&self) -> String {
        let mut lost = self.link.lost_reason();
        let lost = lost.wait_for(Option::is_some).await;
        lost.ok()
            .and_then(|reason| reason.clone())
            .unwrap_or_else(|| "the connection is closed".to_owned())
    }

    /// Closes the connection to the server: the server sees the end of its input, and all calls in flight fail.
    pub fn close(&self) {
        self.link.mark_lost("it was closed by this client");
    }

    /// Closes the connection to the server, and waits until the HTTP session is ended, at most 3 s.
    pub async fn close_and_wait(&self) {
        self.close();
        self.tasks.wait_until_ended().await;
    }

    /// Returns the configured server id.
    pub(super) fn name(&self) -> &str {
        &self.options.origin.server
    }

    /// Returns an error of the server, as [`ErrorKind::Upstream`].
    pub(super) fn upstream_error(&self, words: impl std::fmt::Display) -> Error {
        Error::new(
            ErrorKind::Upstream,
            format!("the server {} {words}", self.name()),
        )
    }

    /// Returns an error for an unusable answer, as [`ErrorKind::BadResponse`].
    fn bad_answer_error(&self, words: impl std::fmt::Display) -> Error {
        Error::new(
            ErrorKind::BadResponse,
            format!("the server {} {words}", self.name()),
        )
    }

    /// Returns the caller's error for a failed request.
    pub(super) fn request_error(&self, failure: RequestFailure) -> Error {
        match failure {
            RequestFailure::Rpc(error) => call::server_error(&error),
            RequestFailure::Rejected(error) => error,
            RequestFailure::Malformed(reason) => self.bad_answer_error(format_args!(
                "sent a malformed reply: {reason}; the call may have taken effect"
            )),
            RequestFailure::Unusable(reason) => self.bad_answer_error(format_args!(
                "sent an unusable answer, which {reason}; the call may have taken effect"
            )),
            RequestFailure::BudgetExceeded => Error::new(
                ErrorKind::Busy(None),
                format!(
                    "the server {} answered, but the memory budget for messages in flight is exhausted; the call may have taken effect; if a repetition does no harm, try again when other calls have ended",
                    self.name()
                ),
            ),
            RequestFailure::ConnectionLost { sent: true } => self.upstream_error(
                "stopped during the call; it is not known whether the call took effect",
            ),
            RequestFailure::ConnectionLost { sent: false } => {
                self.upstream_error("stopped before the call was sent; nothing was done")
            }
            RequestFailure::Http {
                words, sent: true, ..
            } => self.upstream_error(format_args!(
                "{words}; it is not known whether the call took effect"
            )),
            RequestFailure::Http {
                words,
                status: None,
                ..
            } => self.upstream_error(format_args!("{words}; nothing was done")),
            RequestFailure::Http {
                words, no_token, ..
            } => {
                let error = self.upstream_error(words);
                match no_token {
                    Some(why) => match why.detail().cloned() {
                        Some(detail) => error.with_detail(detail).with_source(why),
                        None => error.with_source(why),
                    },
                    None => error,
                }
            }
        }
    }

    /// As [`RemoteServer::request_error`], with advice if the server needs another kind of connection for this call.
    pub(super) fn call_error(&self, call: &Call, failure: RequestFailure) -> Error {
        let refusal = match &failure {
            RequestFailure::Rpc(error) if !self.peer.sessions_only => {
                EraMismatch::of_error(self.peer.dialect, error)
            }
            _ => None,
        };
        let missing =
            matches!(&failure, RequestFailure::Rpc(error) if self.is_missing_resource(call, error));
        let error = match self.request_error(failure) {
            error if missing => Error::new(ErrorKind::NotFound, error.public_message().to_owned()),
            error => error,
        };
        match refusal {
            Some(refusal) => refusal.add_advice(error, &self.options),
            None => error,
        }
    }

    /// Reports whether an error says that the resource of this call does not exist.
    ///
    /// Servers of every revision send -32002; since 2026-07-28 they should send -32602 with the URI in `data`. Without
    /// this URI, -32602 may mean any invalid parameter.
    fn is_missing_resource(&self, call: &Call, error: &RpcError) -> bool {
        let names_uri = || {
            let uri = error.data.as_ref().and_then(|data| data.get("uri"));
            uri.and_then(|uri| uri.string()).as_deref() == Some(call.name())
        };
        call.op == Op::Resource
            && (error.code == code::RESOURCE_NOT_FOUND
                || error.code == self.peer.dialect.resource_not_found && names_uri())
    }

    /// Adds advice to a tool error that says that the tool cannot request input over this connection.
    pub(super) fn add_era_advice(&self, outcome: &mut Outcome, granted: &ClientCapabilities) {
        if self.peer.dialect.server_requests || !era::may_request_input(granted) {
            return;
        }
        if let Outcome::Done(Output::Tool(result)) = outcome
            && result.is_error
            && let Some(refusal) = result.content.iter().find_map(|block| {
                let text = block.json.get("text").and_then(|text| text.string());
                EraMismatch::of_text(&text?)
            })
        {
            let advice = refusal.advice(&self.options);
            result.content.push(Content::text(&advice));
        }
    }

    pub(super) async fn run_call(&self, call: Call) -> Result<Outcome, Error> {
        if matches!(call.op, Op::Complete(_)) && !self.peer.supports_completion() {
            let words = format!("the server {} does not support completion", self.name());
            return Err(call::server_error(&RpcError::new(
                code::METHOD_NOT_FOUND,
                words,
            )));
        }
        // Rare cases are boxed, so that the future of a call is small.
        if tasks::continues_task(&call.round)
            && let Some(outcome) = Box::pin(self.resume_task(&call)).await
        {
            return outcome;
        }
        if call.resumed_after.is_some() {
            return Err(call.lost_call_error());
        }
        let granted = call::granted_capabilities(&call, &self.peer, &self.options);
        if self.may_request_input(&granted) && !self.requires_task(&call) {
            return Box::pin(self.call_with_input_requests(&call, &granted)).await;
        }
        let answer = self.send_call(&call).await;
        let result = answer.map_err(|failure| self.call_error(&call, failure))?;
        if let Some(task) = self.task_in(&call, &result)? {
            return Box::pin(self.follow_task(call, task)).await;
        }
        self.outcome(&call, &result, &granted)
    }

    /// Returns the error for a result that cannot be read.
    pub(super) fn invalid_result_error(&self, reason: &str) -> Error {
        self.bad_answer_error(format_args!(
            "sent an invalid result: {}; report this to the author of the server",
            sanitize_line(reason, 200)
        ))
    }
}

impl Service for RemoteServer {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        // A lookup for a call finds the list in the cache.
        if ask.kind != ItemKind::Skill
            && let Some(list) = self.fresh_list(ask.kind, ask.only_name.is_none())
        {
            return Box::pin(ready(Ok(list)));
        }
        Box::pin(self.list_for(ask))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        match &self.link.observation {
            Some(observation) => self.run_observed(observation, call),
            None => Box::pin(self.run_call(call)),
        }
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async move {
            let changes = ChangeStream::new(self.link.changes.subscribe());
            if let Some(lists) = self
                .subscription
                .as_ref()
                .filter(|_| !want.lists.is_empty())
            {
                lists.wait_for_answer(self.options.list_timeout).await;
            }
            if want.uris.is_empty() || !self.peer.supports_subscriptions() {
                return Ok(changes);
            }
            Ok(changes.keep_alive(self.subscribe_resources(want.uris).await))
        })
    }
}
