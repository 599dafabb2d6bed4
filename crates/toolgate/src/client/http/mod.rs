//! HTTP transport: every message is a POST, answered with JSON or an SSE stream.
//!
//! - `post`: sending. `answer`: reading of responses. `follow`: SSE responses.
//! - `session`: the session of a legacy server. `listen`: the stream for its unsolicited messages.
//! - `old`: HTTP+SSE, the transport of 2024-11-05.
//! - `headers`, `mirror`: headers that repeat parts of a body.
//! - `connection`, `address`, `events`, `sse`: the HTTP layer.
//!
//! Source: the pages on transports of all revisions.

mod address;
mod answer;
mod connection;
mod events;
mod follow;
mod headers;
mod listen;
mod mirror;
mod old;
mod options;
mod post;
mod session;
mod sse;
mod work;

pub(crate) use mirror::{Marks, SAFE_RANGE, is_safe};
pub use options::{BadHeader, HttpOptions};

use super::{
    link::{Failure, Link, Tasks},
    open::OpenError,
    options::RemoteOptions,
    transport::{Outgoing, Transport},
};
use connection::Connections;
use http::Uri;
use session::Sessions;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::{mpsc, watch};
use toolgate_core::BoxFuture;
use work::Job;

/// Capacity of the queue for notifications and answers, in messages.
const URGENT: usize = 1024;

/// Maximum time that the first call waits for the stream for unsolicited messages.
const STREAM: Duration = Duration::from_secs(2);

/// HTTP transport to one server.
pub(super) struct Http {
    uri: Uri,
    connections: Connections,
    options: RemoteOptions,
    http: HttpOptions,
    sessions: Sessions,
    /// Endpoint of the 2024-11-05 transport.
    endpoint: OnceLock<Uri>,
    listening: OnceLock<()>,
    /// True if the server answered the request for the stream for unsolicited messages.
    heard: watch::Sender<bool>,
    jobs: mpsc::Sender<Job>,
}

/// Validates a server URL, without any network access.
///
/// # Errors
/// A description of the fault, without the URL, which may hold a secret.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    address::read(url).map(drop)
}

/// Starts the HTTP connection to a server. Nothing is sent yet.
///
/// # Errors
/// [`OpenError::Unusable`]: the URL is invalid, or TLS is unavailable.
pub(super) fn start(
    url: &str,
    options: &RemoteOptions,
    http: HttpOptions,
) -> Result<(Arc<Link>, Tasks), OpenError> {
    let uri = address::read(url).map_err(|reason| OpenError::Unusable(reason.to_owned()))?;
    let (jobs, todo) = mpsc::channel(URGENT);
    let way = Arc::new(Http {
        connections: Connections::new(&uri, &http).map_err(OpenError::Unusable)?,
        uri,
        options: options.clone(),
        http,
        sessions: Sessions::default(),
        endpoint: OnceLock::new(),
        listening: OnceLock::new(),
        heard: watch::Sender::new(false),
        jobs,
    });
    let link = Link::over(way.clone(), options);
    let (working, over) = watch::channel(());
    #[allow(
        clippy::disallowed_methods,
        reason = "one background task per server; ends when the connection is lost"
    )]
    tokio::spawn(work::work(way, link.clone(), todo, working));
    Ok((link.clone(), Tasks::Told(link, over)))
}

impl Http {
    /// Waits for the stream for unsolicited messages if an application answers input requests. Servers lose an input
    /// request that has no stream yet, and its call would hang. The wait is short, because some servers answer only
    /// once they have a message to send.
    async fn can_hear_questions(&self) {
        if self.options.answerer.is_some() {
            let mut heard = self.heard.subscribe();
            let heard = heard.wait_for(|heard| *heard);
            let _ = tokio::time::timeout(STREAM, heard).await;
        }
    }
}

impl Transport for Http {
    fn carry<'a>(
        &'a self,
        link: &'a Link,
        request: &'a Outgoing<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.exchange(link, request))
    }

    fn hurry(&self, line: String) -> bool {
        self.jobs.try_send(Job::Post(line)).is_ok()
    }

    fn ready<'a>(&'a self, link: &'a Link, line: String) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.tell(link, line).await;
            self.sessions.ready();
            // The 2024-11-05 transport already has its stream.
            if self.endpoint.get().is_none() && self.listening.set(()).is_ok() {
                let _ = self.jobs.try_send(Job::Listen);
                self.can_hear_questions().await;
            }
        })
    }

    fn tells_cancel(&self, stateless: bool) -> bool {
        !stateless
    }

    fn is_http(&self) -> bool {
        true
    }

    fn keeps_session(&self) -> bool {
        self.endpoint.get().is_some() || self.sessions.now().id.is_some()
    }
}
