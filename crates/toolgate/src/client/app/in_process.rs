//! A server of this very program: everything is written and read as over a wire.

use super::errors::unusable;
use crate::{edge, handlers::Server};
use std::sync::Arc;
use tokio::{
    io::{DuplexStream, ReadHalf, WriteHalf},
    task::AbortHandle,
};
use toolgate_core::{Caller, Error};

/// Bytes that may be under way in each direction.
const BUFFER: usize = 256 << 10;

/// What can be served in this very program.
pub trait IntoServer {
    /// What an edge serves.
    ///
    /// # Errors
    /// It cannot be built.
    fn into_server(self) -> Result<Arc<edge::Front>, Error>;
}

impl IntoServer for Arc<edge::Front> {
    fn into_server(self) -> Result<Arc<edge::Front>, Error> {
        Ok(self)
    }
}

impl IntoServer for Server {
    fn into_server(self) -> Result<Arc<edge::Front>, Error> {
        self.build()
            .map_err(|error| unusable(format!("the server cannot be built: {error}")))
    }
}

/// Serves a server; our ends of its streams.
pub(super) fn serve(
    server: Arc<edge::Front>,
) -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>, AbortHandle) {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (reader, writer) = tokio::io::split(theirs);
    #[allow(
        clippy::disallowed_methods,
        reason = "an edge: the server of one client, ended with it"
    )]
    let task = tokio::spawn(async move {
        let caller = Caller::new("in-process");
        // A stream in memory has no other end than its plain one.
        let _ = edge::stdio::serve(server, caller, reader, writer).await;
    });
    let (reader, writer) = tokio::io::split(ours);
    (reader, writer, task.abort_handle())
}
