//! Connecting to a server over HTTP.

use super::{HttpOptions, OpenError, RemoteOptions};
use crate::client::RemoteServer;

impl RemoteServer {
    /// Connects to a server over HTTP: Streamable HTTP in all revisions, or HTTP+SSE (deprecated) if it supports
    /// nothing newer.
    ///
    /// The server does not depend on a single connection: if one fails, its requests fail, and later ones may succeed.
    /// Only the end of the SSE stream of 2024-11-05 is the end of the server. Dropping the value, or [`RemoteServer::close`],
    /// ends the session, as long as the runtime lives.
    ///
    /// # Errors
    /// [`OpenError`]. [`OpenError::Unusable`] means that the URL is at fault.
    pub async fn connect(
        url: &str,
        mut options: RemoteOptions,
        http: HttpOptions,
    ) -> Result<RemoteServer, OpenError> {
        if http.may_wait_for_sign_in() {
            // A slow first request then says nothing about the server's revisions.
            options.probe_timeout = options.open_timeout;
        }
        let (link, tasks) = super::start(url, &options, http)?;
        RemoteServer::open_over(link, tasks, options).await
    }
}
