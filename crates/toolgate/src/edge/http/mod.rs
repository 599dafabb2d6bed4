//! HTTP transports: Streamable HTTP, with and without sessions, and HTTP+SSE of 2024-11-05.

mod accept;
mod body;
mod cors;
mod guard;
mod headers;
mod post;
pub mod protected;
mod reading;
mod resume;
mod sessions;
mod sse_2024;

pub use body::Body;
pub use cors::AllowedOrigin;
pub use guard::{HostGuard, HostGuardError};
pub use post::MissingScopes;
pub use resume::ResumeLimits;

use super::ProtocolServer;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use sessions::HttpSessions;
use std::{
    future::Future,
    sync::{Arc, LazyLock},
    time::Duration,
};
use toolgate_core::Caller;
use toolgate_wire::{
    json::Json,
    message::{self, Id, RpcError, code},
};

/// Limits of an HTTP endpoint.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Time limit for a request body; 60 s.
    pub body: Duration,
    /// Longest pause within a request body; 10 s.
    pub body_idle: Duration,
    /// Longest value of a protocol header (`Mcp-…`), in bytes; 8 KiB, which is also the maximum.
    pub header: usize,
    /// Open sessions; 256.
    pub sessions: usize,
    /// Idle timeout of a session; 30 minutes.
    pub session_idle: Duration,
    /// Maximum age of a session; 24 hours.
    pub session_age: Duration,
    /// Open notification streams; 1,024.
    pub listen_streams: usize,
    /// Open notification streams of one caller; 128.
    pub listen_streams_per_caller: usize,
    /// Time after which a pending response becomes a stream; 500 ms.
    pub stream_after: Duration,
    /// Plain JSON for results that are ready before that time; true. If false, every result is a stream. Errors are
    /// always plain JSON, since their HTTP status carries meaning.
    pub json: bool,
    /// Interval of keepalive comments on an idle stream; 15 s.
    pub keep_alive: Duration,
    /// Limits of resumable streams of sessions.
    pub resume: ResumeLimits,
    /// Maximum duration of one connection of a stream in a 2025-11-25 session, after which the client reconnects for
    /// the rest. `None`, the default, means no limit. For proxies that cut long connections.
    pub stream_lasts: Option<Duration>,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            body: Duration::from_secs(60),
            body_idle: Duration::from_secs(10),
            header: 8 * 1024,
            sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
            session_age: Duration::from_secs(24 * 3600),
            listen_streams: 1024,
            listen_streams_per_caller: 128,
            stream_after: Duration::from_millis(500),
            json: true,
            keep_alive: Duration::from_secs(15),
            resume: ResumeLimits::default(),
            stream_lasts: None,
        }
    }
}

/// An HTTP endpoint that serves MCP. Check Host, Origin and credentials before it, with [`HostGuard`].
#[derive(Clone)]
pub struct HttpEndpoint(Arc<HttpEndpointState>);

struct HttpEndpointState {
    server: Arc<ProtocolServer>,
    limits: HttpLimits,
    sessions: HttpSessions,
    streams: sessions::StreamLimiter,
    streams_2024: sse_2024::SseSessions,
}

impl HttpEndpoint {
    /// Creates an endpoint for `server`.
    pub fn new(server: Arc<ProtocolServer>, limits: HttpLimits) -> HttpEndpoint {
        let sessions = HttpSessions::new(limits.clone());
        let streams =
            sessions::StreamLimiter::new(limits.listen_streams, limits.listen_streams_per_caller);
        HttpEndpoint(Arc::new(HttpEndpointState {
            server,
            limits,
            sessions,
            streams,
            streams_2024: sse_2024::SseSessions::default(),
        }))
    }

    /// Handles one request of `caller`.
    pub async fn handle<B>(&self, caller: Caller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => post::post(&self.0, caller, &parts, body).await,
            Method::GET => self.get(&caller, &parts),
            Method::DELETE => self.delete(&caller, &parts),
            _ => method_not_allowed(),
        }
    }

    /// Ends sessions that are idle or too old, and removes streams that no client resumed in time. Call it
    /// periodically.
    pub fn sweep(&self) {
        self.0.sessions.sweep();
        self.0.sessions.sweep_streams();
    }

    /// Ends all sessions.
    pub fn close(&self) {
        self.0.sessions.close();
        self.0.streams_2024.close();
    }

    /// Handles GET: opens the notification stream of a session, or resumes any stream of the session with
    /// `Last-Event-ID`.
    fn get(&self, caller: &Caller, parts: &http::request::Parts) -> Response<Body> {
        let session = match self.session(caller, parts) {
            Ok(session) => session,
            Err(response) => return *response,
        };
        if !accept::accepts(&parts.headers, "text", "event-stream") {
            return refused(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                "Accept must list text/event-stream",
            );
        }
        let Some(permit) = self.0.streams.open(caller) else {
            return refused(
                StatusCode::TOO_MANY_REQUESTS,
                code::INTERNAL_ERROR,
                "too many streams are open; close some of them",
            );
        };
        let keep_alive = self.0.limits.keep_alive;
        let body = match headers::single(&parts.headers, headers::LAST_EVENT) {
            Ok(None) => {
                let (outlet, frames) = self.0.server.outlet(caller);
                session.legacy.tell_changes(outlet);
                Body::kept(session.kept.open(frames), session.primes(), keep_alive).listening()
            }
            Ok(Some(last)) => match session.kept.resume(last) {
                Some((reader, missed)) => Body::resumed(reader, missed, keep_alive),
                None => return not_kept(),
            },
            Err(wrong) => return error(StatusCode::BAD_REQUEST, None, wrong),
        };
        let lasts = self.0.limits.stream_lasts.filter(|_| session.primes());
        body.lasting(lasts).holding(permit).response()
    }

    fn delete(&self, caller: &Caller, parts: &http::request::Parts) -> Response<Body> {
        match self.session(caller, parts) {
            Ok(session) => {
                self.0.sessions.end(&session);
                plain(StatusCode::NO_CONTENT)
            }
            Err(response) => *response,
        }
    }

    fn session(
        &self,
        caller: &Caller,
        parts: &http::request::Parts,
    ) -> Result<Arc<sessions::HttpSession>, Box<Response<Body>>> {
        // Stateless requests use POST only.
        let Some(id) = headers::session(&parts.headers) else {
            return Err(Box::new(method_not_allowed()));
        };
        let found = self.0.sessions.find(id, caller);
        let session = found.ok_or_else(|| Box::new(no_session()))?;
        let version = headers::single(&parts.headers, headers::VERSION);
        match version.and_then(|version| headers::fits(version, session.legacy.dialect())) {
            Ok(()) => Ok(session),
            Err(wrong) => Err(Box::new(error(StatusCode::BAD_REQUEST, None, wrong))),
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
pub(crate) fn error(status: StatusCode, id: Option<&Id>, error: RpcError) -> Response<Body> {
    json(status, message::reply(id, &Err::<Json, _>(error)))
}

fn refused(status: StatusCode, code: i64, text: &str) -> Response<Body> {
    error(status, None, RpcError::new(code, text))
}

fn no_session() -> Response<Body> {
    refused(
        StatusCode::NOT_FOUND,
        code::INVALID_REQUEST,
        "the session does not exist or has ended; send initialize without a session id",
    )
}

/// Returns 400: with 404 the client would end the session.
fn not_kept() -> Response<Body> {
    refused(
        StatusCode::BAD_REQUEST,
        code::INVALID_REQUEST,
        "the stream cannot be resumed after this event; send GET without Last-Event-ID to open a new stream",
    )
}

fn method_not_allowed() -> Response<Body> {
    let mut response = refused(
        StatusCode::METHOD_NOT_ALLOWED,
        code::INVALID_REQUEST,
        "only POST is allowed here; GET and DELETE need a session id",
    );
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    response
}

fn json(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = status;
    response
}
