//! One server as a service.

use super::{
    call,
    link::{Failure, Link, Purpose, Tasks},
    open::{self, OpenError, Peer},
    options::RemoteOptions,
    status::{Status, harmless},
    subscription::Subscription,
    tools::Tools,
};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, Kind, List, Outcome, Service,
};
use toolgate_wire::method::tools_call;

/// One server on a byte stream. Dropping it closes the stream.
pub struct Remote {
    pub(super) link: Arc<Link>,
    pub(super) peer: Peer,
    pub(super) options: RemoteOptions,
    pub(super) tools: Tools,
    _tasks: Tasks,
    _subscription: Option<Subscription>,
}

impl Remote {
    /// Opens a server: finds out what it speaks, and shakes hands where that is needed.
    ///
    /// # Errors
    /// [`OpenError`]. After [`OpenError::ClosedDuringProbe`] it is worth to start the server once more and to
    /// open it without a probe.
    pub async fn open(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: RemoteOptions,
    ) -> Result<Remote, OpenError> {
        let (link, tasks) = Link::start(reader, writer, &options);
        let peer = open::open(&link, &options).await?;
        let listens = peer.dialect.stateless && peer.tells_changes();
        let subscription = listens
            .then(|| Subscription::start(link.clone(), peer.dialect, options.client.clone()));
        Ok(Remote {
            link,
            peer,
            options,
            tools: Tools::default(),
            _tasks: tasks,
            _subscription: subscription,
        })
    }

    /// What is known of the server.
    pub fn status(&self) -> Status {
        Status {
            revision: self.peer.dialect.revision,
            server: self.peer.server.clone(),
            tools: self.tools.count(),
            left_out: self.tools.left_out(),
            counters: self.link.notes.counters(),
            note: self.link.notes.last(),
            lost: self.link.lost().borrow().clone(),
        }
    }

    /// Waits until the server is gone, and says why.
    pub async fn closed(&self) -> String {
        let mut lost = self.link.lost();
        let lost = lost.wait_for(Option::is_some).await;
        lost.ok()
            .and_then(|reason| reason.clone())
            .unwrap_or_else(|| "it is gone".to_owned())
    }

    /// Closes the stream: the server sees the end of its input, and all calls in flight end.
    pub fn close(&self) {
        self.link.lose("the gateway closed it");
    }

    /// The configured id.
    pub(super) fn name(&self) -> &str {
        &self.options.origin.server
    }

    /// An error of the server.
    pub(super) fn upstream(&self, words: impl std::fmt::Display) -> Error {
        Error::new(
            Kind::Upstream,
            format!("the server {} {words}", self.name()),
        )
    }

    /// Why a call has no result, in words for the caller.
    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Rpc(error) => call::refused(&error),
            Failure::Malformed(reason) => {
                self.upstream(format_args!("sent a malformed reply: {reason}"))
            }
            Failure::Lost { sent: true } => {
                self.upstream("stopped during the call; it is not known whether it took effect")
            }
            Failure::Lost { sent: false } => {
                self.upstream("stopped before the call was sent; nothing was done")
            }
        }
    }

    async fn use_tool(&self, call: Call) -> Result<Outcome, Error> {
        let purpose = Purpose::Call(call.reporter.clone());
        let params = |id: &_| call::params(&call, id, &self.peer, &self.options);
        let answer = self.link.request(tools_call::NAME, purpose, params).await;
        let result = answer.map_err(|failure| self.failed(failure))?;
        call::outcome(&result, &self.peer, call::granted(&call, &self.options)).map_err(|reason| {
            self.upstream(format_args!(
                "sent an invalid result: {}",
                harmless(&reason, 200)
            ))
        })
    }
}

impl Service for Remote {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(self.tools_for(ask))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.use_tool(call))
    }

    fn changes(&self, _want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async { Ok(Changes::new(self.link.changes.subscribe())) })
    }
}
