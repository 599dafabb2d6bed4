//! The HTTP+SSE transport of 2024-11-05: one event stream, and one endpoint for posted messages.
//!
//! Page: basic/transports of that revision. The stream owns the session: closing it cancels all requests in flight. So
//! an idle session needs no limit of its own: it lasts as long as its stream, and at most the maximum age of a session.

use super::{
    Body, HttpEndpoint, HttpEndpointState, accept, empty_response, error_response, headers,
    post::{self, RequestError},
    rejected_response, request_body,
    request_parts::HttpRequestParts,
};
use crate::{
    edge::{
        ProtocolServer,
        batch::MessageBatch,
        call::MessageSender,
        handshake::{self, InitializedClient},
        responder::Responder,
        response,
    },
    ids,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::watch;
use toolgate_core::Caller;
use toolgate_protocol::{
    dialect,
    json::Json,
    message::{JsonRpcMessage, RpcError, code},
    method::initialize,
};

/// Query parameter with the session id.
const SESSION_PARAMETER: &str = "sessionId";

/// Last segment of the path of the event stream.
const STREAM_SEGMENT: &str = "sse";
/// Last segment of the path of the messages. As a relative reference it is correct wherever the endpoint is mounted.
pub(super) const MESSAGES_SEGMENT: &str = "messages";

/// Endpoint of this transport.
pub(super) enum SseEndpoint {
    Stream,
    Messages,
}

/// Returns the endpoint of this transport that a request is for. A session id in a header, or none in the query, means
/// Streamable HTTP, which may be mounted at the same path.
pub(super) fn endpoint_of<B>(request: &Request<B>) -> Option<SseEndpoint> {
    let segment = request.uri().path().rsplit('/').next();
    match (request.method(), segment) {
        (&Method::GET, Some(STREAM_SEGMENT)) => headers::session(request.headers())
            .is_none()
            .then_some(SseEndpoint::Stream),
        (&Method::POST, Some(MESSAGES_SEGMENT)) => {
            session_id(request.uri().query()?).map(|_| SseEndpoint::Messages)
        }
        _ => None,
    }
}

impl HttpEndpoint {
    /// Opens the event stream of a client with the deprecated HTTP+SSE transport (2024-11-05). `messages` is a URI
    /// reference to the path that [`HttpEndpoint::messages`] handles. Clients resolve it against the URL of the stream.
    /// The first event contains it, with the secret id of this session. [`HttpEndpoint::handle`] calls this method for
    /// paths that end in `/sse`.
    pub fn sse<B>(&self, caller: &Caller, request: &Request<B>, messages: &str) -> Response<Body> {
        if request.method() != Method::GET {
            return method_not_allowed(
                Method::GET,
                "only GET is allowed here; it opens an event stream",
            );
        }
        if !accept::accepts(request.headers(), "text/event-stream") {
            return rejected_response(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                "Accept must list text/event-stream",
            );
        }
        let place = self.0.streams.acquire(caller);
        let opened = place.and_then(|place| Some((place, self.open_stream(caller)?)));
        let Some((place, (session, stream))) = opened else {
            return rejected_response(
                StatusCode::TOO_MANY_REQUESTS,
                code::INTERNAL_ERROR,
                "too many streams are open; close some of them",
            );
        };
        let address = format!("{messages}?{SESSION_PARAMETER}={}", session.id);
        let end = EndSessionOnDrop(Arc::downgrade(&self.0), session.id.clone());
        let leave = end_when_idle(Arc::downgrade(&self.0), Arc::downgrade(&session));
        let life = limit_lifetime(self.0.clone(), session);
        let ends = (Box::pin(life) as _, Box::pin(leave) as _);
        Body::session(&address, stream, ends, self.0.limits.keep_alive_interval)
            .holding((place, end))
            .response()
    }

    /// Handles a JSON-RPC message that a client of the deprecated HTTP+SSE transport posts. The replies are sent on the
    /// stream. [`HttpEndpoint::handle`] calls this method for paths that end in `/messages`.
    pub async fn messages<B>(&self, caller: &Caller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if request.method() != Method::POST {
            return method_not_allowed(
                Method::POST,
                "only POST is allowed here, with one message each",
            );
        }
        let (parts, body) = request.into_parts();
        let parts = HttpRequestParts::new(&self.0.server, parts);
        let id = parts.parts.uri.query().and_then(session_id);
        let Some(session) = id.and_then(|id| self.0.sse_sessions.find(id, caller)) else {
            return rejected_response(
                StatusCode::NOT_FOUND,
                code::INVALID_REQUEST,
                "the session does not exist or has ended; open a new stream",
            );
        };
        let json = match request_body::read_json(&self.0, caller, &parts.parts, body).await {
            Ok(json) => json,
            Err(answer) => return *answer,
        };
        if let Some(answer) = session.handle_batch(&self.0.server, &parts, &json).await {
            return answer;
        }
        match post::parse_message(&json) {
            Ok(message) => {
                session
                    .handle_message(&self.0.server, &parts, message)
                    .await
            }
            Err(answer) => *answer,
        }
    }

    fn open_stream(
        &self,
        caller: &Caller,
    ) -> Option<(Arc<SseSession>, crate::edge::responder::OutgoingFrames)> {
        let (responder, frames) = self.0.server.responder(caller);
        let session = Arc::new(SseSession {
            id: self.0.sessions.new_id().into(),
            caller: caller.clone().in_session(ids::session_number()),
            responder,
            peer: Mutex::new(SsePeerState::New),
            is_initialized: watch::Sender::new(false),
        });
        let limit = self.0.limits.max_sessions;
        let added = self.0.sse_sessions.add(session.clone(), limit);
        added.then_some((session, frames))
    }
}

/// The open streams of this transport, by session id.
#[derive(Default)]
pub(crate) struct SseSessions(Mutex<HashMap<Arc<str>, Arc<SseSession>>>);

impl SseSessions {
    /// Returns the number of open sessions.
    pub(super) fn count(&self) -> usize {
        self.sessions().len()
    }

    fn add(&self, session: Arc<SseSession>, limit: usize) -> bool {
        let mut open = self.sessions();
        let room = open.len() < limit;
        if room {
            open.insert(session.id.clone(), session);
        }
        room
    }

    /// Returns the stream with this id if `caller` owns it.
    fn find(&self, id: &str, caller: &Caller) -> Option<Arc<SseSession>> {
        let found = self.sessions().get(id).cloned();
        found.filter(|session| {
            session.caller.same_principal(caller)
                && session.caller.principal() == caller.principal()
        })
    }

    fn end(&self, id: &str) {
        let ended = self.sessions().remove(id);
        if let Some(session) = ended {
            session.end();
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        let all: Vec<Arc<SseSession>> = self
            .sessions()
            .drain()
            .map(|(_, session)| session)
            .collect();
        all.iter().for_each(|session| session.end());
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<SseSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream and its client. The id does not authenticate: the caller must be the one that opened it.
pub(crate) struct SseSession {
    id: Arc<str>,
    caller: Caller,
    responder: Responder,
    peer: Mutex<SsePeerState>,
    /// True once the client sent `initialize`.
    is_initialized: watch::Sender<bool>,
}

enum SsePeerState {
    /// Before `initialize`.
    New,
    Initialized(Arc<InitializedClient>),
    Gone,
}

impl SseSession {
    async fn handle_message(
        &self,
        server: &Arc<ProtocolServer>,
        parts: &Arc<HttpRequestParts>,
        message: JsonRpcMessage,
    ) -> Response<Body> {
        let said = headers::ProtocolHeaders::collect(parts.headers(), usize::MAX);
        let repeated = headers::check_optional(&said, &message);
        if let Err(wrong) = self.check_version(parts.headers()).and(repeated) {
            let bad = RequestError::new(&message, StatusCode::BAD_REQUEST, wrong);
            return bad
                .into_response(server, &self.caller, parts.address())
                .await;
        }
        match (self.client(), message) {
            (Some(client), message) => {
                let sender = self.sender(server, parts);
                client.receive_as(sender, message, &self.responder).await;
                self.close_if_gone(&client);
            }
            (None, JsonRpcMessage::Request { id, method, params })
                if method == initialize::NAME =>
            {
                let answer = self.initialize(server, params.as_ref());
                self.responder
                    .send(response::reply_frame(Some(&id), &answer))
                    .await;
            }
            (None, message @ JsonRpcMessage::Request { .. }) => {
                let bad = RequestError::new(
                    &message,
                    StatusCode::BAD_REQUEST,
                    handshake::not_initialized_error(),
                );
                return bad
                    .into_response(server, &self.caller, parts.address())
                    .await;
            }
            // Notifications get no reply, and the server sent no request yet.
            (None, JsonRpcMessage::Notification { .. } | JsonRpcMessage::Reply { .. }) => {}
        }
        empty_response(StatusCode::ACCEPTED)
    }

    /// Handles a batch from a client whose revision has batches; otherwise returns `None`.
    async fn handle_batch(
        &self,
        server: &ProtocolServer,
        parts: &Arc<HttpRequestParts>,
        json: &Json,
    ) -> Option<Response<Body>> {
        let headers = parts.headers();
        let client = self.client()?;
        let batch = MessageBatch::read(json, client.dialect())?;
        let single = headers::check_batch(headers);
        let batch = match self.check_version(headers).and(single).and(batch) {
            Ok(batch) => batch,
            Err(wrong) => return Some(error_response(StatusCode::BAD_REQUEST, None, wrong)),
        };
        let sender = self.sender(server, parts);
        batch.receive(&client, &sender, &self.responder).await;
        self.close_if_gone(&client);
        Some(empty_response(StatusCode::ACCEPTED))
    }

    fn sender(&self, server: &ProtocolServer, parts: &Arc<HttpRequestParts>) -> MessageSender {
        MessageSender {
            caller: self.caller.clone(),
            address: parts.address(),
            transport_parts: parts.in_session(server, &self.id),
            transport_trace: None,
        }
    }

    /// Ends requests that began while the stream was being closed; nothing else would cancel them.
    fn close_if_gone(&self, client: &InitializedClient) {
        if matches!(*self.peer(), SsePeerState::Gone) {
            client.close();
        }
    }

    fn initialize(
        &self,
        server: &Arc<ProtocolServer>,
        params: Option<&Json>,
    ) -> Result<Json, RpcError> {
        let mut peer = self.peer();
        if !matches!(*peer, SsePeerState::New) {
            let text = "initialize is allowed only once, and was already sent";
            return Err(RpcError::new(code::INVALID_REQUEST, text));
        }
        let (client, answer) = InitializedClient::initialize(
            server.clone(),
            self.caller.clone(),
            "http",
            None,
            params,
        )?;
        client.start_notifications(self.responder.clone());
        *peer = SsePeerState::Initialized(client);
        self.is_initialized.send_replace(true);
        Ok(answer)
    }

    /// Checks the version header, which a client of a later revision may send here too.
    fn check_version(&self, headers: &HeaderMap) -> Result<(), RpcError> {
        let version = headers::single_value(headers, headers::VERSION)?;
        match self.client() {
            Some(client) => headers::check_session_version(version, client.dialect()),
            None if version.is_none_or(|v| dialect::find(v).is_some()) => Ok(()),
            None => Err(RpcError::new(
                code::INVALID_REQUEST,
                "the header mcp-protocol-version names an unsupported revision",
            )),
        }
    }

    fn end(&self) {
        if let SsePeerState::Initialized(client) =
            std::mem::replace(&mut *self.peer(), SsePeerState::Gone)
        {
            client.close();
        }
    }

    /// Waits until the client missed its pings; never completes without pings.
    async fn wait_for_missed_pings(&self) {
        let mut opened = self.is_initialized.subscribe();
        let _ = opened.wait_for(|opened| *opened).await;
        match self.client() {
            Some(client) => client.wait_until_gone().await,
            None => std::future::pending().await,
        }
    }

    fn client(&self) -> Option<Arc<InitializedClient>> {
        match &*self.peer() {
            SsePeerState::Initialized(client) => Some(client.clone()),
            SsePeerState::New | SsePeerState::Gone => None,
        }
    }

    fn peer(&self) -> MutexGuard<'_, SsePeerState> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that ends the session with its stream.
struct EndSessionOnDrop(Weak<HttpEndpointState>, Arc<str>);

impl Drop for EndSessionOnDrop {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0.upgrade() {
            endpoint.sse_sessions.end(&self.1);
        }
    }
}

/// Ends a session that is too old. During a shutdown, requests in flight complete first.
async fn limit_lifetime(endpoint: Arc<HttpEndpointState>, session: Arc<SseSession>) {
    tokio::select! {
        () = tokio::time::sleep(endpoint.limits.max_session_age) => {}
        () = session.wait_for_missed_pings() => {}
        () = endpoint.server.closed() => {
            if let Some(client) = session.client() {
                client.wait_until_idle().await;
            }
        }
    }
    endpoint.sse_sessions.end(&session.id);
}

/// Ends a session whose credentials expired, once its requests in flight completed. Holds only weak references, so it
/// does not keep the session open.
async fn end_when_idle(endpoint: Weak<HttpEndpointState>, session: Weak<SseSession>) {
    let client = session.upgrade().and_then(|session| session.client());
    if let Some(client) = client {
        client.wait_until_idle().await;
    }
    if let (Some(endpoint), Some(session)) = (endpoint.upgrade(), session.upgrade()) {
        endpoint.sse_sessions.end(&session.id);
    }
}

fn session_id(query: &str) -> Option<&str> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix(SESSION_PARAMETER)?.strip_prefix('='));
    match (values.next(), values.next()) {
        (Some(id), None) => Some(id),
        _ => None,
    }
}

fn method_not_allowed(method: Method, text: &str) -> Response<Body> {
    let wrong = RpcError::new(code::INVALID_REQUEST, text);
    let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED, None, wrong);
    if let Ok(value) = HeaderValue::from_str(method.as_str()) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}
