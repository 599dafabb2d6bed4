//! Short form for serving a [`Server`] over HTTP.

use crate::{
    edge::{
        self,
        http::{Body, EventStore, HostGuard, HttpEndpoint, HttpLimits, SessionStore},
    },
    handlers::{BuildError, Server},
};
use http::{Request, Response, StatusCode};
use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, task};
#[cfg(feature = "auth")]
use toolgate_auth::resource::ResourceServer;
use toolgate_core::Caller;

/// Returns a `tower` service that serves an MCP server over HTTP, to mount in axum or another framework under one path.
///
/// It accepts only requests with a loopback `Host` header, and browser requests only from the same origin.
/// [`Http::allow_hosts`] and [`Http::allow_origins`] allow more.
///
/// It serves every protocol revision. Mounted at `/mcp`, it serves Streamable HTTP there, and the older HTTP+SSE
/// transport at `/mcp/sse` and `/mcp/messages`; see [`edge::http::HttpEndpoint`]. Each transport can be disabled:
/// [`Http::without_stateless`], [`Http::without_sessions`], [`Http::without_http_sse`]. The example `axum_app` is a
/// complete application.
///
/// Specification: [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
///
/// ```
/// # use toolgate::handlers::Server;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = toolgate::http(Server::new("clock", "1.0.0"))?;
/// let app: axum::Router = axum::Router::new().nest_service("/mcp", service);
/// # let _ = app;
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
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use toolgate::{
///     Http, Server,
///     edge::http::{EventStore, HostGuard, HttpLimits, SessionStore},
/// };
///
/// /// Serves only revisions with sessions, and stores them outside of the process.
/// fn service(
///     server: Server,
///     sessions: Arc<dyn SessionStore>,
///     events: Arc<dyn EventStore>,
/// ) -> Result<Http, Box<dyn std::error::Error>> {
///     let mut limits = HttpLimits::default();
///     limits.session_idle_timeout = Duration::from_secs(600);
///     Ok(Http::new(server.build()?, limits)
///         .host_guard(HostGuard::loopback(8080))
///         .session_store(sessions)
///         .event_store(events)
///         .without_stateless())
/// }
///
/// /// Ends idle sessions; a program calls it every minute.
/// fn sweep(service: &Http) {
///     service.endpoint().sweep();
/// }
/// ```
#[derive(Clone)]
pub struct Http {
    endpoint: HttpEndpoint,
    host_guard: Arc<HostGuard>,
    #[cfg(feature = "auth")]
    resource: Option<Arc<ResourceServer>>,
}

impl Http {
    /// Creates a `tower` service for an already built MCP server, with a guard that allows loopback hosts on any port.
    pub fn new(server: Arc<edge::ProtocolServer>, limits: HttpLimits) -> Http {
        Http {
            endpoint: HttpEndpoint::new(server, limits),
            host_guard: Arc::new(HostGuard::loopback_on_any_port()),
            #[cfg(feature = "auth")]
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
    /// also serves its protected resource metadata ([RFC 9728]): mount it at the well-known path as well.
    ///
    /// Specification: [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
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
    /// let app: axum::Router = axum::Router::new()
    ///     .nest_service("/mcp", service.clone())
    ///     .route_service(&path, service);
    /// # let _ = app;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [RFC 9728]: https://www.rfc-editor.org/rfc/rfc9728
    #[cfg(feature = "auth")]
    pub fn protected(mut self, resource: ResourceServer) -> Http {
        self.resource = Some(Arc::new(resource));
        self
    }

    /// Disables Streamable HTTP without sessions (2026-07-28). Clients of that revision are told to open a session.
    pub fn without_stateless(mut self) -> Http {
        self.endpoint = self.endpoint.without_stateless();
        self
    }

    /// Disables Streamable HTTP with sessions (2025-03-26 to 2025-11-25). `initialize` is rejected.
    ///
    /// ```
    /// # use toolgate::Server;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Only the newest revision, so that any replica can answer any request.
    /// let service = toolgate::http(Server::new("clock", "1.0.0"))?.without_sessions().without_http_sse();
    /// # drop(service);
    /// # Ok(())
    /// # }
    /// ```
    pub fn without_sessions(mut self) -> Http {
        self.endpoint = self.endpoint.without_sessions();
        self
    }

    /// Disables HTTP+SSE, the transport of 2024-11-05 that is deprecated since 2025-03-26.
    ///
    /// ```
    /// # use toolgate::Server;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = toolgate::http(Server::new("clock", "1.0.0"))?.without_http_sse();
    /// # let _ = service;
    /// # Ok(())
    /// # }
    /// ```
    pub fn without_http_sse(mut self) -> Http {
        self.endpoint = self.endpoint.without_http_sse();
        self
    }

    /// Sets the store of open sessions, so that a restarted server accepts their ids. See [`SessionStore`].
    pub fn session_store(mut self, store: Arc<dyn SessionStore>) -> Http {
        self.endpoint = self.endpoint.with_session_store(store);
        self
    }

    /// Sets the store of events, so that clients resume streams after a restart. See [`EventStore`].
    pub fn event_store(mut self, store: Arc<dyn EventStore>) -> Http {
        self.endpoint = self.endpoint.with_event_store(store);
        self
    }

    /// Begins the shutdown of the MCP server: notification streams end, and calls in flight may complete. Call it when
    /// the listener stops accepting connections, for example in the future for axum's `with_graceful_shutdown`.
    pub fn shut_down(&self) {
        self.endpoint.shut_down();
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
        let mut response = match preflight {
            Some(response) => response,
            None => self.respond(request).await,
        };
        if let Some(page) = page {
            page.add_headers(&mut response);
        }
        response
    }

    /// Passes a request that the guard accepted to the endpoint, with its caller.
    async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        #[cfg(feature = "auth")]
        if let Some(resource) = &self.resource {
            // Boxed, so that the future of a request without a token stays small.
            let answer = edge::http::protected::handle(&self.endpoint, resource, request);
            return Box::pin(answer).await;
        }
        let caller = request.extensions().get::<Caller>().cloned();
        let caller = caller.unwrap_or_else(edge::http::anonymous);
        self.endpoint.handle(caller, request).await
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
