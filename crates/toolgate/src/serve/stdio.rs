//! Short form for serving a [`Server`] over stdio.

use super::stop_signals::StopSignals;
use crate::{
    edge,
    handlers::{BuildError, Server},
};
use std::{fmt, io, time::Duration};
use toolgate_core::Caller;

/// Error that ended serving an MCP server over stdio.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The MCP server cannot be built.
    Build(BuildError),
    /// The standard input or output stream failed.
    Stream(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Build(error) => write!(f, "the server cannot be built: {error}"),
            ServeError::Stream(error) => write!(f, "reading or writing the stream failed: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::Build(error) => Some(error),
            ServeError::Stream(error) => Some(error),
        }
    }
}

/// Serves an MCP server over stdio until standard input ends, in every protocol revision. Nothing else may write to
/// standard output meanwhile. The caller's name is `stdio`.
///
/// SIGTERM and SIGINT (Ctrl-C on Windows) end it without an error: new requests are rejected, calls in flight may
/// complete within one second and are then cancelled, and their responses are written. To
/// stop for another reason, or with another time limit, use [`edge::stdio::serve_until`].
///
/// Specification: [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// ```no_run
/// # use toolgate::handlers::Server;
/// # async fn f() -> Result<(), toolgate::ServeError> {
/// toolgate::stdio(Server::new("clock", "1.0.0")).await
/// # }
/// ```
///
/// # Errors
/// [`ServeError::Build`] if the server cannot be built; [`ServeError::Stream`] if reading or writing fails.
pub async fn stdio(server: Server) -> Result<(), ServeError> {
    let server = server.build().map_err(ServeError::Build)?;
    let mut signals = StopSignals::listen().map_err(ServeError::Stream)?;
    let (input, output) = edge::standard::streams();
    let closing = server.clone();
    let stop = async move {
        signals.recv().await;
        closing.close();
        tokio::time::sleep(STDIO_SHUTDOWN_GRACE).await;
    };
    let caller = Caller::new("stdio");
    let served = edge::stdio::serve_until(server, caller, input, output, stop);
    served.await.map_err(ServeError::Stream)
}

/// Time in which calls in flight may complete after a signal. Clients send SIGKILL as early as two seconds after
/// SIGTERM, so it is below that.
const STDIO_SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
