//! A server over HTTP: every message a POST of its own, answered by JSON or by a stream of events.
//!
//! - `post`: what goes out. `answer`: what a response means. `follow`: a response that is a stream.
//! - `session`: the session of a server that shakes hands. `listen`: the stream on which it speaks unasked.
//! - `old`: the transport of 2024-11-05, with one stream for all answers.
//! - `headers`, `mirror`: what headers repeat of a body.
//! - `connection`, `address`, `events`, `sse`: below the protocol.
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

/// Notifications and answers that wait.
const URGENT: usize = 1024;

/// How long the first call waits for the stream on which the server asks.
const STREAM: Duration = Duration::from_secs(2);

/// The way to one server.
pub(super) struct Http {
    uri: Uri,
    connections: Connections,
    options: RemoteOptions,
    http: HttpOptions,
    sessions: Sessions,
    /// Where messages go in the transport of 2024-11-05.
    endpoint: OnceLock<Uri>,
    listening: OnceLock<()>,
    /// Whether the server said yes or no to the stream on which it speaks unasked.
    heard: watch::Sender<bool>,
    jobs: mpsc::Sender<Job>,
}

/// Whether a URL can be the address of a server, without asking anybody.
///
/// # Errors
/// What is wrong with it, without its text, which may hold a secret.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    address::read(url).map(drop)
}

/// Starts to work for a server. Nothing is sent yet.
///
/// # Errors
/// [`OpenError::Unusable`]: the address is none, or the system cannot do TLS.
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
        reason = "an edge: one task a server for what no caller waits for; it ends once the link is lost"
    )]
    tokio::spawn(work::work(way, link.clone(), todo, working));
    Ok((link.clone(), Tasks::Told(link, over)))
}

impl Http {
    /// Waits for the stream on which a server speaks unasked, where somebody answers what it asks: servers lose a
    /// question for which there is no stream yet, and the call that asked it waits for ever. Not for long, because some
    /// servers answer only once they have something to say.
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
            // In the old transport the one stream is open already.
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
