//! In-process server: all messages are serialized and parsed as on a wire.

use super::errors::unusable_setting;
use crate::{edge, handlers::Server};
use std::sync::Arc;
use tokio::{
    io::{DuplexStream, ReadHalf, WriteHalf},
    task::AbortHandle,
};
use toolgate_core::{Caller, Error};

/// Buffer size in each direction, in bytes.
const DUPLEX_BUFFER_BYTES: usize = 256 << 10;

/// Types that [`Client::in_process`](super::Client::in_process) accepts: a server builder, or an already built server.
///
/// ```
/// use toolgate::{Client, Error, Server, client::IntoServer};
///
/// /// Opens a server as all tests of this program do.
/// async fn test_client(server: impl IntoServer) -> Result<Client, Error> {
///     Client::builder().name("tests", "1.0.0").no_pins().in_process(server).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let client = test_client(Server::new("clock", "1.0.0")).await?;
/// assert!(client.tools().await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub trait IntoServer {
    /// Builds the server, or returns it if it is already built.
    ///
    /// # Errors
    /// The server cannot be built.
    fn into_server(self) -> Result<Arc<edge::ProtocolServer>, Error>;
}

impl IntoServer for Arc<edge::ProtocolServer> {
    fn into_server(self) -> Result<Arc<edge::ProtocolServer>, Error> {
        Ok(self)
    }
}

impl IntoServer for Server {
    fn into_server(self) -> Result<Arc<edge::ProtocolServer>, Error> {
        self.build()
            .map_err(|error| unusable_setting(format!("the server cannot be built: {error}")))
    }
}

/// Serves a server in a task. Returns our ends of its streams.
pub(super) fn serve(
    server: Arc<edge::ProtocolServer>,
) -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>, AbortHandle) {
    let (ours, theirs) = tokio::io::duplex(DUPLEX_BUFFER_BYTES);
    let (reader, writer) = tokio::io::split(theirs);
    #[allow(
        clippy::disallowed_methods,
        reason = "the server of one client; aborted with the client"
    )]
    let task = tokio::spawn(async move {
        let caller = Caller::new("in-process");
        // A stream in memory ends only when it is closed.
        let _ = edge::stdio::serve(server, caller, reader, writer).await;
    });
    let (reader, writer) = tokio::io::split(ours);
    (reader, writer, task.abort_handle())
}
