//! Servers over HTTP: settings of the connections, and opening.

use super::{Client, ClientBuilder, errors::open_failure, opening::ConnectionOwner};
use crate::client::{HttpOptions, RemoteServer};
use toolgate_core::Error;

impl Client {
    /// Connects to an MCP server over HTTP; see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// The server cannot be reached or opened.
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::builder().connect(url).await
    }
}

impl ClientBuilder {
    /// Sets the options for HTTP connections to the server, for example time-outs, headers and credentials.
    pub fn http(mut self, http: HttpOptions) -> ClientBuilder {
        self.http = http;
        self
    }

    /// Sets the source of OAuth access tokens for a server over HTTP; see [`HttpOptions::credentials`].
    #[cfg(feature = "auth")]
    pub fn credentials(
        mut self,
        credentials: impl toolgate_auth::client::CredentialProvider,
    ) -> ClientBuilder {
        self.http = self.http.credentials(credentials);
        self
    }

    /// Adds a header to every HTTP request to the server, for example `Authorization`.
    pub fn header(mut self, name: &str, value: &str) -> ClientBuilder {
        match std::mem::take(&mut self.http).header(name, value) {
            Ok(http) => self.http = http,
            Err(error) => self.record_fault(error.to_string()),
        }
        self
    }

    /// Connects to a server over HTTP at a Unix socket. The URL for [`ClientBuilder::connect`] then only has the `Host`
    /// header and the path.
    ///
    /// ```no_run
    /// # use toolgate::{Client, Error};
    /// # async fn f() -> Result<(), Error> {
    /// let notes = Client::builder()
    ///     .unix_socket("/run/notes/mcp.sock")
    ///     .connect("http://localhost/mcp")
    ///     .await?;
    /// # drop(notes);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(unix)]
    pub fn unix_socket(mut self, path: impl AsRef<std::path::Path>) -> ClientBuilder {
        self.http = self.http.unix_socket(path);
        self
    }

    /// Connects to a server over HTTP: Streamable HTTP in all revisions, or HTTP+SSE (deprecated) if it supports
    /// nothing newer.
    ///
    /// # Errors
    /// The URL is invalid, or the server cannot be reached or opened.
    pub async fn connect(mut self, url: &str) -> Result<Client, Error> {
        let host = || {
            let uri = url.parse::<http::Uri>().ok();
            uri.and_then(|uri| uri.host().map(str::to_owned))
                .unwrap_or_default()
        };
        let id = self.id_or(host);
        let plan = self.prepare(&id)?;
        let http = std::mem::take(&mut self.http);
        let remote = RemoteServer::connect(url, plan.options.clone(), http)
            .await
            .map_err(|error| open_failure(&id, error))?;
        self.finish(remote, plan, "http", ConnectionOwner::Nothing)
            .await
    }
}
