//! Short forms for serving a [`Server`] over stdio, or as an HTTP service that a router mounts.

mod stop_signals;

use crate::{
    edge::{
        self,
        http::{Body, HostGuard, HttpEndpoint, HttpLimits, protected},
    },
    handlers::{BuildError, Server},
};
use http::{Request, Response, StatusCode};
use std::{
    convert::Infallible, fmt, future::Future, io, pin::Pin, sync::Arc, task, time::Duration,
};
use stop_signals::StopSignals;
use toolgate_auth::resource::ResourceServer;
use toolgate_core::Caller;

/// Error that ended serving an MCP server over stdio.
#[derive(Debug)]
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

/// Returns a `tower` service that serves an MCP server over HTTP, to mount in axum or another framework under one path.
///
/// It accepts only requests with a loopback `Host` header, and browser requests only from the same origin.
/// [`Http::allow_hosts`] and [`Http::allow_origins`] allow more.
///
/// ```
/// # use toolgate::handlers::Server;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = toolgate::http(Server::new("clock", "1.0.0"))?;
/// // axum::Router::new().nest_service("/mcp", service)
/// # let _ = service;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`BuildError`] if the server cannot be built.
pub fn http(server: Server) -> Result<Http, BuildError> {
    Ok(Http::new(server.build()?, HttpLimits::default()))
}

/// MCP server over HTTP as a `tower` service. The caller is taken from the access token where the service is
/// [`protected`](Http::protected). Otherwise it is the [`Caller`] that an authentication layer put into the request
/// extensions, or `anonymous@http`.
#[derive(Clone)]
pub struct Http {
    endpoint: HttpEndpoint,
    host_guard: Arc<HostGuard>,
    resource: Option<Arc<ResourceServer>>,
}

impl Http {
    /// Creates a `tower` service for an already built MCP server, with a guard that allows loopback hosts on any port.
    pub fn new(server: Arc<edge::ProtocolServer>, limits: HttpLimits) -> Http {
        Http {
            endpoint: HttpEndpoint::new(server, limits),
            host_guard: Arc::new(HostGuard::loopback_on_any_port()),
            resource: None,
        }
    }

    /// Replaces the allowlists of `Host` and `Origin` values, for example with ones that know the listener's port.
    pub fn host_guard(mut self, guard: HostGuard) -> Http {
        self.host_guard = Arc::new(guard);
        self
    }

    /// Allows additional `Host` header values: `name` on any port, or `name:port`.
    pub fn allow_hosts<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> Http {
        self.host_guard = Arc::new(HostGuard::clone(&self.host_guard).allow_hosts(hosts));
        self
    }

    /// Allows additional `Origin` header values of browsers: `scheme://host` or `scheme://host:port`.
    pub fn allow_origins<'a>(mut self, origins: impl IntoIterator<Item = &'a str>) -> Http {
        self.host_guard = Arc::new(HostGuard::clone(&self.host_guard).allow_origins(origins));
        self
    }

    /// Requires an OAuth access token that one of the resource's authorization servers issued for it. The service then
    /// also serves its protected resource metadata (RFC 9728): mount it at the well-known path as well.
    ///
    /// ```
    /// use toolgate::auth::{Url, resource::{TrustedIssuer, ResourceServer}};
    /// # use toolgate::handlers::Server;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let login = Url::parse("https://login.example.com")?;
    /// let resource = ResourceServer::new(Url::parse("https://tools.example.com/mcp")?)
    ///     .issuer(TrustedIssuer::new("corp", login))
    ///     .scopes(["files:read".to_owned()]);
    /// let path = resource.metadata_path();
    /// let service = toolgate::http(Server::new("files", "1.0.0"))?
    ///     .allow_hosts(["tools.example.com"])
    ///     .protected(resource);
    /// // axum::Router::new().nest_service("/mcp", service.clone()).route_service(&path, service)
    /// # let _ = (service, path);
    /// # Ok(())
    /// # }
    /// ```
    pub fn protected(mut self, resource: ResourceServer) -> Http {
        self.resource = Some(Arc::new(resource));
        self
    }

    /// Returns the MCP endpoint behind the `Host` and `Origin` guard, for example to end its sessions.
    pub fn endpoint(&self) -> &HttpEndpoint {
        &self.endpoint
    }

    /// Handles one HTTP request and returns the response. A request that the guard rejects gets 403 Forbidden.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Err(denied) = self.host_guard.check(&request) {
            let mut response = Response::new(Body::full(denied.reason()));
            *response.status_mut() = StatusCode::FORBIDDEN;
            return response;
        }
        let page = self.host_guard.allowed_origin(&request);
        let preflight = page.as_ref().and_then(|page| page.preflight(&request));
        let mut response = match (preflight, &self.resource) {
            (Some(response), _) => response,
            // Boxed, so that the future of a request without a token stays small.
            (None, Some(resource)) => {
                Box::pin(protected::handle(&self.endpoint, resource, request)).await
            }
            (None, None) => {
                let caller = request.extensions().get::<Caller>().cloned();
                let caller = caller.unwrap_or_else(edge::http::anonymous);
                self.endpoint.handle(caller, request).await
            }
        };
        if let Some(page) = page {
            page.add_headers(&mut response);
        }
        response
    }
}

impl<B> tower_service::Service<Request<B>> for Http
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), Infallible>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}
