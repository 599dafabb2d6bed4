//! HTTP transport: every message is a POST, answered with JSON or an SSE stream.
//!
//! - `post`: sending. `response`: reading of responses. `follow`: SSE responses.
//! - `session`: the session of a legacy server. `listen`: the stream for its unsolicited messages.
//! - `http_sse`: HTTP+SSE, the transport of 2024-11-05.
//! - `headers`: headers that repeat parts of a body.
//! - `connect`: [`RemoteServer::connect`](super::RemoteServer::connect).
//! - `connection`, `pool`, `server_url`, `events`, `sse`: the HTTP layer.
//!
//! Source: the pages on transports of all revisions.

mod connect;
mod connection;
mod connector;
mod events;
mod follow;
mod headers;
mod http_sse;
mod jobs;
mod listen;
mod options;
mod pool;
mod post;
mod response;
mod server_url;
mod session;
pub(crate) mod sse;

pub use options::{HeaderError, HttpOptions};

use super::{
    connection::{ConnectionTasks, RequestFailure, ServerConnection},
    negotiate::OpenError,
    options::RemoteOptions,
    transport::{ClientTransport, OutgoingRequest},
};
use connection::HttpConnectionPool;
use http::Uri;
use jobs::HttpJob;
use session::ClientHttpSessions;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::{mpsc, watch};
use toolgate_core::BoxFuture;
use toolgate_protocol::dialect::Dialect;

/// Capacity of the queue for notifications and answers, in messages.
const JOB_QUEUE_LEN: usize = 1024;

/// Maximum time that the first call waits for the stream for unsolicited messages.
const LISTEN_STREAM_WAIT: Duration = Duration::from_secs(2);

/// HTTP transport to one server.
pub(super) struct HttpTransport {
    uri: Uri,
    connections: HttpConnectionPool,
    options: RemoteOptions,
    http: HttpOptions,
    sessions: ClientHttpSessions,
    /// Endpoint of the 2024-11-05 transport.
    endpoint: OnceLock<Uri>,
    listening: OnceLock<()>,
    /// True if the server answered the request for the stream for unsolicited messages.
    listen_answered: watch::Sender<bool>,
    jobs: mpsc::Sender<HttpJob>,
}

/// Validates the URL of an MCP server, without any network access.
///
/// # Errors
/// A description of the fault, without the URL, which may hold a secret.
#[doc(hidden)]
pub fn check_url(url: &str) -> Result<(), &'static str> {
    server_url::parse_url(url).map(drop)
}

/// Starts the HTTP connection to a server. Nothing is sent yet.
///
/// # Errors
/// [`OpenError::Unusable`]: the URL is invalid, or TLS is unavailable.
pub(super) fn start(
    url: &str,
    options: &RemoteOptions,
    http: HttpOptions,
) -> Result<(Arc<ServerConnection>, ConnectionTasks), OpenError> {
    let uri = server_url::parse_url(url)
        .map_err(|reason| OpenError::Unusable(format!("its URL cannot be used: {reason}")))?;
    let (jobs, todo) = mpsc::channel(JOB_QUEUE_LEN);
    let way = Arc::new(HttpTransport {
        connections: HttpConnectionPool::new(&uri, &http)
            .map_err(|why| OpenError::Unusable(format!("it cannot be reached over TLS: {why}")))?,
        uri,
        options: options.clone(),
        http,
        sessions: ClientHttpSessions::default(),
        endpoint: OnceLock::new(),
        listening: OnceLock::new(),
        listen_answered: watch::Sender::new(false),
        jobs,
    });
    let link = ServerConnection::over(way.clone(), options);
    let (working, over) = watch::channel(());
    #[allow(
        clippy::disallowed_methods,
        reason = "one background task per server; ends when the connection is lost"
    )]
    tokio::spawn(jobs::run_jobs(way, link.clone(), todo, working));
    Ok((link.clone(), ConnectionTasks::SelfEnding(link, over)))
}

impl HttpTransport {
    /// Waits for the stream for unsolicited messages if an application answers input requests. Servers lose an input
    /// request that has no stream yet, and its call would hang. The wait is short, because some servers answer only
    /// once they have a message to send.
    async fn wait_for_listen_stream(&self) {
        if self.options.client_handler.is_some() {
            let mut heard = self.listen_answered.subscribe();
            let heard = heard.wait_for(|heard| *heard);
            let _ = tokio::time::timeout(LISTEN_STREAM_WAIT, heard).await;
        }
    }
}

impl ClientTransport for HttpTransport {
    fn send<'a>(
        &'a self,
        link: &'a ServerConnection,
        request: &'a OutgoingRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RequestFailure>> {
        Box::pin(self.exchange(link, request))
    }

    fn send_priority(&self, line: String) -> bool {
        self.jobs.try_send(HttpJob::Post(line)).is_ok()
    }

    fn send_initialized<'a>(
        &'a self,
        link: &'a ServerConnection,
        line: String,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.send_message(link, line).await;
            self.sessions.mark_ready();
            // The 2024-11-05 transport already has its stream.
            if self.endpoint.get().is_none() && self.listening.set(()).is_ok() {
                let _ = self.jobs.try_send(HttpJob::Listen);
                self.wait_for_listen_stream().await;
            }
        })
    }

    fn cancels_by_notification(&self, dialect: &Dialect) -> bool {
        !dialect.cancels_by_closing
    }

    fn is_http(&self) -> bool {
        true
    }

    fn keeps_session(&self) -> bool {
        self.endpoint.get().is_some() || self.sessions.current().id.is_some()
    }
}
