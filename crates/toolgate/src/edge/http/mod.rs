//! HTTP transports: Streamable HTTP, with and without sessions, and HTTP+SSE of 2024-11-05.

mod accept;
mod body;
mod cors;
mod headers;
mod host_guard;
mod http_sse;
mod post;
#[cfg(feature = "auth")]
#[doc(hidden)]
pub mod protected;
mod request_body;
mod request_parts;
mod resume;
mod session_store;
mod sessions;

pub use body::Body;
pub use cors::AllowedOrigin;
pub use host_guard::{HostGuard, HostGuardError};
pub use post::MissingScopes;
pub use request_parts::{ClientAddress, HttpRequestParts};
pub use resume::ResumeLimits;
pub use session_store::{EventStore, SessionStore};

use super::ProtocolServer;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_sse::SseEndpoint;
use sessions::HttpSessions;
use std::{
    future::{Future, ready},
    sync::{Arc, LazyLock},
    time::Duration,
};
use toolgate_core::{BoxFuture, Caller};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::Json,
    message::{self, Id, RpcError, code},
};

/// Limits of an HTTP endpoint that serves MCP: timeouts, sessions and streams.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Time limit for receiving a request body; 60 s.
    pub body_timeout: Duration,
    /// Longest pause while a request body is received; 10 s.
    pub body_idle_timeout: Duration,
    /// Maximum length of the value of an MCP header (`Mcp-…`), in bytes; 8 KiB, which is also the largest allowed
    /// value.
    pub max_header_bytes: usize,
    /// Maximum number of open MCP sessions; 256.
    pub max_sessions: usize,
    /// Time after which an MCP session without requests ends; 30 minutes.
    pub session_idle_timeout: Duration,
    /// Maximum age of an MCP session; 24 hours.
    pub max_session_age: Duration,
    /// Maximum number of open notification streams (`GET` or `subscriptions/listen`) in total; 1,024.
    pub max_listen_streams: usize,
    /// Maximum number of open notification streams (`GET` or `subscriptions/listen`) of one caller; 128.
    pub max_listen_streams_per_caller: usize,
    /// Time after which the response to a pending request becomes an SSE stream; 500 ms.
    pub stream_after: Duration,
    /// True for plain JSON responses to requests that complete before [`HttpLimits::stream_after`]; the default. If
    /// false, every result is a stream. Errors are always plain JSON, since their HTTP status carries meaning.
    pub json_responses: bool,
    /// Interval of keepalive comments on an idle SSE stream; 15 s.
    pub keep_alive_interval: Duration,
    /// Limits on the events that are stored for resuming the SSE streams of sessions.
    pub resume: ResumeLimits,
    /// Maximum duration of one HTTP connection of an SSE stream in a session; the client then reconnects (2025-11-25).
    /// `None`, the default, means no limit. For proxies that cut long connections.
    pub reconnect_after: Option<Duration>,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            body_timeout: Duration::from_secs(60),
            body_idle_timeout: Duration::from_secs(10),
            max_header_bytes: 8 * 1024,
            max_sessions: 256,
            session_idle_timeout: Duration::from_secs(30 * 60),
            max_session_age: Duration::from_secs(24 * 3600),
            max_listen_streams: 1024,
            max_listen_streams_per_caller: 128,
            stream_after: Duration::from_millis(500),
            json_responses: true,
            keep_alive_interval: Duration::from_secs(15),
            resume: ResumeLimits::default(),
            reconnect_after: None,
        }
    }
}

/// HTTP endpoint that serves an MCP server. Check Host, Origin and credentials before it, with [`HostGuard`].
///
/// It serves the transports of all revisions, and the last segment of the path selects one:
///
/// | request | transport | revisions |
/// | --- | --- | --- |
/// | `POST`, any path | Streamable HTTP without sessions | 2026-07-28 |
/// | `POST`, `GET` and `DELETE`, any path | Streamable HTTP with sessions | 2025-03-26 to 2025-11-25 |
/// | `GET …/sse` without a session id | HTTP+SSE: the event stream | 2024-11-05 |
/// | `POST …/messages?sessionId=…` | HTTP+SSE: the messages | 2024-11-05 |
///
/// Specification: [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http),
/// [HTTP of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http).
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response, StatusCode};
/// use toolgate::{
///     Caller, Server,
///     edge::http::{AllowedOrigin, Body, HostGuard, HostGuardError, HttpEndpoint, HttpLimits, ResumeLimits},
/// };
///
/// /// Handles a request of an authenticated caller, for a program with an HTTP server of its own.
/// async fn handle(
///     (endpoint, guard): (&HttpEndpoint, &HostGuard),
///     caller: Caller,
///     request: Request<Body>,
/// ) -> Response<Body> {
///     if let Err(error) = guard.check(&request) {
///         let status = match error {
///             HostGuardError::Host => StatusCode::MISDIRECTED_REQUEST,
///             _ => StatusCode::FORBIDDEN,
///         };
///         let mut response = Response::new(Body::full(error.reason()));
///         *response.status_mut() = status;
///         return response;
///     }
///     let origin: Option<AllowedOrigin> = guard.allowed_origin(&request);
///     if let Some(preflight) = origin.as_ref().and_then(|origin| origin.preflight(&request)) {
///         return preflight;
///     }
///     let mut response = endpoint.handle(caller, request).await;
///     if let Some(origin) = origin {
///         origin.add_headers(&mut response);
///     }
///     response
/// }
///
/// let mut resume = ResumeLimits::default();
/// resume.keep_for = Duration::from_secs(60);
/// let mut limits = HttpLimits::default();
/// limits.max_sessions = 1000;
/// limits.resume = resume;
/// let endpoint = HttpEndpoint::new(Server::new("clock", "1.0.0").build()?, limits).without_http_sse();
/// let guard = HostGuard::loopback(8080).allow_origins(["https://app.example.com"]);
/// # drop((endpoint, guard, handle));
/// # Ok::<(), toolgate::handlers::BuildError>(())
/// ```
#[derive(Clone)]
pub struct HttpEndpoint(Arc<HttpEndpointState>, HttpTransports);

/// Transports that an endpoint serves.
#[derive(Clone, Copy)]
struct HttpTransports {
    sessionless: bool,
    sessions: bool,
    http_sse: bool,
}

impl HttpTransports {
    /// Returns whether Streamable HTTP is served, without sessions or with them.
    fn serves(self, is_stateless: bool) -> bool {
        match is_stateless {
            true => self.sessionless,
            false => self.sessions,
        }
    }

    /// Returns the revisions that are served over Streamable HTTP.
    fn revisions(self) -> impl Iterator<Item = &'static Dialect> {
        // A revision needs no session if each request carries all that its handling needs.
        let served = move |dialect: &&Dialect| self.serves(dialect.request_meta);
        dialect::ALL.into_iter().filter(served)
    }
}

impl Default for HttpTransports {
    fn default() -> HttpTransports {
        HttpTransports {
            sessionless: true,
            sessions: true,
            http_sse: true,
        }
    }
}

struct HttpEndpointState {
    server: Arc<ProtocolServer>,
    limits: HttpLimits,
    sessions: HttpSessions,
    streams: sessions::StreamLimiter,
    sse_sessions: http_sse::SseSessions,
}

impl HttpEndpoint {
    /// Creates an HTTP endpoint that serves `server`.
    pub fn new(server: Arc<ProtocolServer>, limits: HttpLimits) -> HttpEndpoint {
        let sessions = HttpSessions::new(limits.clone());
        let streams = sessions::StreamLimiter::new(
            limits.max_listen_streams,
            limits.max_listen_streams_per_caller,
        );
        let state = HttpEndpointState {
            server,
            limits,
            sessions,
            streams,
            sse_sessions: http_sse::SseSessions::default(),
        };
        HttpEndpoint(Arc::new(state), HttpTransports::default())
    }

    /// Disables Streamable HTTP without sessions (2026-07-28). Clients of that revision are told to open a session.
    pub fn without_stateless(mut self) -> HttpEndpoint {
        self.1.sessionless = false;
        self
    }

    /// Disables Streamable HTTP with sessions (2025-03-26 to 2025-11-25). `initialize` is rejected.
    pub fn without_sessions(mut self) -> HttpEndpoint {
        self.1.sessions = false;
        self
    }

    /// Disables HTTP+SSE (2024-11-05), so that the paths `…/sse` and `…/messages` have no special meaning.
    pub fn without_http_sse(mut self) -> HttpEndpoint {
        self.1.http_sse = false;
        self
    }

    /// Sets the store of open sessions, so that a restarted server accepts their ids. Only the first one counts.
    pub fn with_session_store(self, store: Arc<dyn SessionStore>) -> HttpEndpoint {
        self.0.sessions.stores.set_sessions(store);
        self
    }

    /// Returns the keys and the records of the open sessions, as [`SessionStore::save`] got them, for another process
    /// that takes over. Without a store, there are none.
    #[doc(hidden)]
    pub fn session_records(&self) -> Vec<(String, String)> {
        session_store::records(&self.0)
    }

    /// Sets the store of events, so that clients resume streams after a restart. Only the first one counts, and only
    /// for sessions that are opened later.
    pub fn with_event_store(self, store: Arc<dyn EventStore>) -> HttpEndpoint {
        self.0.sessions.stores.set_events(store);
        self
    }

    /// Sets a suffix for the ids of new sessions and tasks, after a period. A process that gets a request for one of
    /// another process can tell from it where to forward the request. It must consist of ASCII letters and digits. Only
    /// the first one counts.
    pub fn with_id_suffix(self, suffix: &str) -> HttpEndpoint {
        self.0.sessions.set_suffix(suffix);
        self.0.server.tasks.set_suffix(suffix);
        self
    }

    /// Begins the shutdown of the MCP server, as [`ProtocolServer::close`] does: notification streams end, and calls in
    /// flight may complete. Call it when the listener stops accepting connections. Otherwise clients that listen for
    /// notifications keep their connections open.
    pub fn shut_down(&self) {
        self.0.server.close();
    }

    /// Handles one HTTP request of an authenticated caller, in every MCP revision.
    ///
    /// The future is on the heap. An HTTP server that keeps room for the future of a request, as hyper does for each
    /// connection, thus keeps little.
    pub fn handle<'a, B>(
        &'a self,
        caller: Caller,
        request: Request<B>,
    ) -> BoxFuture<'a, Response<Body>>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'a,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if self.1.http_sse {
            match http_sse::endpoint_of(&request) {
                Some(SseEndpoint::Stream) => {
                    let stream = self.sse(&caller, &request, http_sse::MESSAGES_SEGMENT);
                    return Box::pin(ready(stream));
                }
                Some(SseEndpoint::Messages) => {
                    return Box::pin(async move { self.messages(&caller, request).await });
                }
                None => {}
            }
        }
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => {
                let parts = HttpRequestParts::new(&self.0.server, parts);
                Box::pin(post::post((&self.0, self.1), caller, parts, body))
            }
            Method::GET => Box::pin(async move { self.get(&caller, &parts).await }),
            Method::DELETE => Box::pin(async move { self.delete(&caller, &parts).await }),
            _ => Box::pin(ready(method_not_allowed())),
        }
    }

    /// Ends MCP sessions that are idle or too old, and removes SSE streams that no client resumed in time. Call it
    /// periodically.
    pub fn sweep(&self) {
        self.0.sessions.sweep();
        self.0.sessions.sweep_streams();
    }

    /// Returns the number of open MCP sessions, over Streamable HTTP and over HTTP+SSE.
    pub fn session_count(&self) -> usize {
        self.0.sessions.count() + self.0.sse_sessions.count()
    }

    /// Ends all MCP sessions of this HTTP endpoint.
    pub fn close(&self) {
        self.0.sessions.close();
        self.0.sse_sessions.close();
    }

    /// Handles GET: opens the notification stream of a session, or resumes any stream of the session with
    /// `Last-Event-ID`.
    async fn get(&self, caller: &Caller, parts: &http::request::Parts) -> Response<Body> {
        let session = match self.session(caller, parts).await {
            Ok(session) => session,
            Err(response) => return *response,
        };
        if !accept::accepts(&parts.headers, "text/event-stream") {
            return rejected_response(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                "Accept must list text/event-stream",
            );
        }
        let Some(permit) = self.0.streams.acquire(caller) else {
            return rejected_response(
                StatusCode::TOO_MANY_REQUESTS,
                code::INTERNAL_ERROR,
                "too many streams are open; close some of them",
            );
        };
        let keep_alive = self.0.limits.keep_alive_interval;
        let body = match headers::single_value(&parts.headers, headers::LAST_EVENT) {
            Ok(None) => {
                let (responder, frames) = self.0.server.responder(caller);
                session.client.start_notifications(responder);
                Body::resumable(
                    session.streams.add(frames),
                    session.has_priming_event(),
                    keep_alive,
                )
                .into_notifications()
            }
            Ok(Some(last)) => match session.streams.resume(last) {
                Some((reader, missed)) => Body::resumed(reader, missed, keep_alive),
                None => match session.streams.stored_after(last).await {
                    Some(events) => return event_response(events),
                    None => return not_resumable(),
                },
            },
            Err(wrong) => return error_response(StatusCode::BAD_REQUEST, None, wrong),
        };
        let lasts = self
            .0
            .limits
            .reconnect_after
            .filter(|_| session.has_priming_event());
        body.reconnect_after(lasts).holding(permit).response()
    }

    async fn delete(&self, caller: &Caller, parts: &http::request::Parts) -> Response<Body> {
        match self.session(caller, parts).await {
            Ok(session) => {
                self.0.sessions.end(&session);
                empty_response(StatusCode::NO_CONTENT)
            }
            Err(response) => *response,
        }
    }

    async fn session(
        &self,
        caller: &Caller,
        parts: &http::request::Parts,
    ) -> Result<Arc<sessions::HttpSession>, Box<Response<Body>>> {
        // Stateless requests use POST only.
        let Some(id) = headers::session(&parts.headers) else {
            return Err(Box::new(method_not_allowed()));
        };
        let found = session_store::find(&self.0, id, caller).await;
        let session = found.ok_or_else(|| Box::new(no_session()))?;
        let version = headers::single_value(&parts.headers, headers::VERSION);
        match version
            .and_then(|version| headers::check_session_version(version, session.client.dialect()))
        {
            Ok(()) => Ok(session),
            Err(wrong) => Err(Box::new(error_response(
                StatusCode::BAD_REQUEST,
                None,
                wrong,
            ))),
        }
    }
}

impl<B> tower_service::Service<Request<B>> for HttpEndpoint
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Self::Error>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    /// Handles a request of the [`Caller`] in the request extensions, where an authentication layer puts it, or of
    /// `anonymous@http`.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let caller = request
            .extensions()
            .get::<Caller>()
            .cloned()
            .unwrap_or_else(anonymous);
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.handle(caller, request).await) })
    }
}

/// Returns the anonymous HTTP caller.
pub(crate) fn anonymous() -> Caller {
    static ANONYMOUS: LazyLock<Caller> = LazyLock::new(|| Caller::new(Caller::ANONYMOUS_HTTP));
    ANONYMOUS.clone()
}

/// Returns a JSON-RPC error with an HTTP status.
pub(crate) fn error_response(
    status: StatusCode,
    id: Option<&Id>,
    error: RpcError,
) -> Response<Body> {
    json_response(status, message::reply(id, &Err::<Json, _>(error)))
}

fn rejected_response(status: StatusCode, code: i64, text: &str) -> Response<Body> {
    error_response(status, None, RpcError::new(code, text))
}

fn no_session() -> Response<Body> {
    rejected_response(
        StatusCode::NOT_FOUND,
        code::INVALID_REQUEST,
        "the session does not exist or has ended; send initialize without a session id",
    )
}

/// Returns a stream that ends after events of an earlier process.
fn event_response(events: Vec<u8>) -> Response<Body> {
    let mut response = json_response(StatusCode::OK, events);
    let stream = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, stream);
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

/// Returns 400: with 404 the client would end the session.
fn not_resumable() -> Response<Body> {
    rejected_response(
        StatusCode::BAD_REQUEST,
        code::INVALID_REQUEST,
        "the stream cannot be resumed after this event; send GET without Last-Event-ID to open a new stream",
    )
}

fn method_not_allowed() -> Response<Body> {
    let mut response = rejected_response(
        StatusCode::METHOD_NOT_ALLOWED,
        code::INVALID_REQUEST,
        "only POST is allowed here; GET and DELETE need a session id",
    );
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    response
}

fn json_response(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = status;
    response
}
