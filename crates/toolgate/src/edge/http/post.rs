//! POST requests: the body is parsed and checked, then handled by the stateless or the session protocol.

use super::{
    Body, HttpEndpointState, HttpTransports, accept,
    body::StreamWork,
    empty_response, error_response,
    headers::{self, ProtocolHeaders},
    json_response, no_session, rejected_response, request_body,
    request_parts::HttpRequestParts,
    session_store,
    sessions::{HttpSession, StreamPermit},
};
use crate::edge::{
    ProtocolServer, Rejection,
    batch::MessageBatch,
    call::RequestContext,
    handshake::{self, InitializedClient},
    responder::{OutgoingFrame, OutgoingFrames, Responder},
    response, stateless,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, request::Parts};
use std::{future::poll_fn, net::IpAddr, pin::pin, sync::Arc, task::Poll};
use toolgate_core::{BoxFuture, Caller, CancelReason, DecisionLog, ItemKind, ListRequest};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonKind},
    message::{Id, JsonRpcMessage, RpcError, code},
    method::{self, initialize, meta::RequestMeta, operation, tools_call, trace::TraceContext},
};

type PostResponse = Response<Body>;

/// Handles a POST. Rare cases are boxed, so that the future of a call is small: it is copied as it is made.
pub(super) async fn post<B>(
    (endpoint, transports): (&Arc<HttpEndpointState>, HttpTransports),
    caller: Caller,
    parts: Arc<HttpRequestParts>,
    body: B,
) -> PostResponse
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let json = match read_body(endpoint, &caller, &parts.parts, body).await {
        Ok(json) => json,
        Err(answer) => return *answer,
    };
    if json.kind() == JsonKind::Array
        && let Some(answer) = Box::pin(handle_batch(endpoint, &caller, &parts, &json)).await
    {
        return answer;
    }
    let message = match parse_message(&json) {
        Ok(message) => message,
        Err(answer) => return *answer,
    };
    match handle_message((endpoint, transports), &caller, &parts, message).await {
        Ok(answer) => answer,
        Err(bad) => Box::pin(bad.into_response(&endpoint.server, &caller, parts.address())).await,
    }
}

/// A message that is rejected before it reaches a layer. `call` has the method and name if it is a call.
pub(crate) struct RequestError {
    status: StatusCode,
    id: Option<Id>,
    error: RpcError,
    call: Option<(String, Option<String>)>,
}

async fn read_body<B>(
    endpoint: &HttpEndpointState,
    caller: &Caller,
    parts: &Parts,
    body: B,
) -> Result<Json, Box<PostResponse>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !(accept::accepts(&parts.headers, "application/json")
        && accept::accepts(&parts.headers, "text/event-stream"))
    {
        return Err(Box::new(rejected_response(
            StatusCode::NOT_ACCEPTABLE,
            code::INVALID_REQUEST,
            "Accept must list both application/json and text/event-stream",
        )));
    }
    request_body::read_json(endpoint, caller, parts, body).await
}

pub(crate) fn parse_message(json: &Json) -> Result<JsonRpcMessage, Box<PostResponse>> {
    JsonRpcMessage::read(json).map_err(|bad| {
        let wrong = RpcError::new(code::INVALID_REQUEST, bad.reason);
        Box::new(error_response(
            StatusCode::BAD_REQUEST,
            bad.id.as_ref(),
            wrong,
        ))
    })
}

async fn handle_message(
    (endpoint, transports): (&Arc<HttpEndpointState>, HttpTransports),
    caller: &Caller,
    parts: &Arc<HttpRequestParts>,
    message: JsonRpcMessage,
) -> Result<PostResponse, RequestError> {
    let bad = |error: RpcError| RequestError::new(&message, StatusCode::BAD_REQUEST, error);
    let most = endpoint.limits.max_header_bytes;
    let said = ProtocolHeaders::collect(parts.headers(), most);
    if let Some(name) = said.too_long() {
        let text = format!("the header {name} is longer than {most} bytes");
        return Err(bad(headers::header_mismatch(text)));
    }
    let version = said.version().map_err(bad)?;
    let spoken = version.map(dialect::find);
    let meta = RequestMeta::of(message_params(&message));
    let is_stateless = match spoken {
        _ if meta.is_modern() => true,
        Some(Some(dialect)) => dialect.stateless,
        // The error for an unknown revision lists the supported ones.
        Some(None) => said.session_id().is_none(),
        None => false,
    };
    if !transports.serves(is_stateless) {
        let requested = requested_revision(&message, &meta, version);
        let supported = transports.revisions();
        return Err(bad(stateless::unsupported_version(&requested, supported)));
    }
    if is_stateless {
        return handle_stateless(endpoint, caller, (parts, &said), message, &meta).await;
    }
    if matches!(spoken, Some(None)) {
        let text = "the header mcp-protocol-version names an unsupported revision";
        return Err(bad(RpcError::new(code::INVALID_REQUEST, text)));
    }
    handle_in_session(endpoint, caller, (parts, &said), message, version).await
}

/// Returns the revision that a message of a disabled transport requests, or an empty text.
fn requested_revision(
    message: &JsonRpcMessage,
    meta: &RequestMeta,
    header: Option<&str>,
) -> String {
    let in_body = || message_params(message)?.get("protocolVersion")?.string();
    let in_meta = meta.version.as_ref().and_then(Json::string);
    in_meta
        .or_else(|| header.map(str::to_owned))
        .or_else(in_body)
        .unwrap_or_default()
}

/// Handles a 2026-07-28 message. The response owns the call, so closing the stream cancels it.
async fn handle_stateless(
    endpoint: &Arc<HttpEndpointState>,
    caller: &Caller,
    (parts, said): (&Arc<HttpRequestParts>, &ProtocolHeaders<'_>),
    message: JsonRpcMessage,
    meta: &RequestMeta,
) -> Result<PostResponse, RequestError> {
    let bad = |error: RpcError| RequestError::new(&message, StatusCode::BAD_REQUEST, error);
    let version = said.version().map_err(bad)?;
    // Checked before the version is looked up: if two versions differ, neither can be trusted.
    headers::check_same_version(version, meta).map_err(bad)?;
    if let (Some(version), None) = (version, version.and_then(dialect::find)) {
        let supported = dialect::stateless();
        return Err(bad(stateless::unsupported_version(version, supported)));
    }
    let (method, params) = match &message {
        JsonRpcMessage::Request { method, params, .. } => (method.as_str(), params.as_ref()),
        // No notification of a client has a meaning for this server.
        JsonRpcMessage::Notification { .. } => return Ok(empty_response(StatusCode::ACCEPTED)),
        JsonRpcMessage::Reply { .. } => {
            return Err(bad(RpcError::new(
                code::INVALID_REQUEST,
                "this protocol revision has no requests from the server, so a client must not send responses",
            )));
        }
    };
    let mut context =
        stateless::request_context(&endpoint.server, caller.clone(), "http", meta).map_err(bad)?;
    context.address = parts.address();
    context.transport_parts = parts.without_session(&endpoint.server);
    context.continue_transport_trace(said.trace(parts.headers()));
    let name = headers::name_in_body(method, params);
    let name = name.as_ref().and_then(Json::str_cow);
    headers::check_required(said, method, name.as_deref(), meta).map_err(bad)?;
    if let (tools_call::NAME, Some(name)) = (method, name.as_deref())
        && endpoint.server.may_have_param_headers()
    {
        let agreed = Box::pin(check_param_headers(
            endpoint,
            &context,
            parts.headers(),
            (name, params),
        ));
        agreed.await.map_err(bad)?;
    }
    let place = match method {
        method::LISTEN => {
            let place = endpoint.streams.acquire(caller).ok_or_else(|| {
                RequestError::new(&message, StatusCode::TOO_MANY_REQUESTS, too_many_streams())
            })?;
            Some(Box::new(place))
        }
        _ => None,
    };
    let JsonRpcMessage::Request { id, method, params } = message else {
        return Ok(empty_response(StatusCode::ACCEPTED));
    };
    let dialect = context.dialect;
    let (responder, frames) = endpoint.server.responder(caller);
    let asked = StatelessPost {
        server: endpoint.server.clone(),
        context,
        id,
        method,
        params,
        responder,
    };
    let owner = match place {
        Some(place) => CallOwner::Response(asked.listen(), Some(place)),
        None => CallOwner::Response(asked.run(), None),
    };
    Ok(respond(endpoint, dialect, frames, owner).await)
}

/// A stateless request with all that its handling needs.
struct StatelessPost {
    server: Arc<ProtocolServer>,
    context: Box<RequestContext>,
    id: Id,
    method: String,
    params: Option<Json>,
    responder: Responder,
}

/// Guard that records a closed connection as cancel reason when a call is dropped.
struct CancelOnDrop<'a>(Option<&'a DecisionLog>);

impl CancelOnDrop<'_> {
    /// Disarms the guard: the call has a response.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(trail) = self.0 {
            trail.set_cancel_reason(CancelReason::Disconnected);
        }
    }
}

impl StatelessPost {
    fn run(self) -> BoxFuture<'static, OutgoingFrame> {
        Box::pin(async move {
            let (method, params) = (self.method.as_str(), self.params.as_ref());
            let (server, context) = (&self.server, &self.context);
            let answer = stateless::handle_request(
                server,
                context,
                &self.id,
                method,
                params,
                &self.responder,
            );
            let answer = pin!(answer);
            // Created after the call, so that it is dropped before it.
            let gone = CancelOnDrop(Some(&context.decision_log));
            let answer = answer.await;
            gone.disarm();
            self.reply_frame(answer)
        })
    }

    /// Handles `subscriptions/listen`. It runs long, so its future has no space for a call.
    fn listen(mut self) -> BoxFuture<'static, OutgoingFrame> {
        // No call of this stream reads them, and the headers would keep a read buffer of hyper alive.
        self.context.transport_parts = None;
        // The id is a part of the message, and would keep all of it alive.
        self.id = Id::read(&self.id.json().detached()).unwrap_or(self.id);
        Box::pin(async move {
            let params = self.params.take();
            let told = stateless::listen(
                &self.server,
                &self.context,
                &self.id,
                params,
                &self.responder,
            )
            .await;
            self.reply_frame(told.map(response::RequestResult::Json))
        })
    }

    fn reply_frame(&self, answer: Result<response::RequestResult, RpcError>) -> OutgoingFrame {
        let words = (self.context.dialect, &self.server.info_json);
        self.responder
            .with_permit(response::result_frame(&self.id, answer, words))
    }
}

fn too_many_streams() -> RpcError {
    RpcError::new(
        code::INTERNAL_ERROR,
        "too many streams are open; close some of them",
    )
}

/// Checks the `Mcp-Param-*` headers against the arguments, if the tool's schema has `x-mcp-header`.
async fn check_param_headers(
    endpoint: &HttpEndpointState,
    context: &RequestContext,
    headers: &HeaderMap,
    (name, params): (&str, Option<&Json>),
) -> Result<(), RpcError> {
    let ask = ListRequest::one(context.caller.clone(), ItemKind::Tool, name)
        .looking_up_for(&context.decision_log);
    let Ok(catalog) = endpoint.server.service.list(ask).await else {
        return Ok(());
    };
    match catalog.find(name).filter(|item| item.withheld.is_none()) {
        Some(item) => {
            let marked = item
                .cached(|item| headers::ParamHeaderSchema::from_schema(&item.def.input_schema()));
            marked.check(headers, params)
        }
        None => Ok(()),
    }
}

/// Handles a message of the 2025 revisions. The session owns the call, so a lost connection does not cancel it.
async fn handle_in_session(
    endpoint: &Arc<HttpEndpointState>,
    caller: &Caller,
    (parts, said): (&Arc<HttpRequestParts>, &ProtocolHeaders<'_>),
    message: JsonRpcMessage,
    version: Option<&str>,
) -> Result<PostResponse, RequestError> {
    let bad = |error: RpcError| RequestError::new(&message, StatusCode::BAD_REQUEST, error);
    headers::check_optional(said, &message).map_err(bad)?;
    if let JsonRpcMessage::Request { id, method, params } = &message
        && method == initialize::NAME
    {
        return Box::pin(open_session(endpoint, caller, id, params.as_ref()))
            .await
            .map_err(|(status, error)| RequestError::new(&message, status, error));
    }
    let Some(id) = said.session_id() else {
        return Err(bad(handshake::not_initialized_error()));
    };
    let Some(open) = session_store::find(endpoint, id, caller).await else {
        let text = "the session does not exist or has ended; send initialize without a session id";
        let error = RpcError::new(code::INVALID_REQUEST, text);
        return Err(RequestError::new(&message, StatusCode::NOT_FOUND, error));
    };
    headers::check_session_version(version, open.client.dialect()).map_err(bad)?;
    let trace = said.trace(parts.headers());
    Ok(receive_in_session(endpoint, (caller, parts, trace), &open, message).await)
}

async fn receive_in_session(
    endpoint: &HttpEndpointState,
    (caller, parts, trace): (&Caller, &Arc<HttpRequestParts>, Option<TraceContext>),
    open: &HttpSession,
    message: JsonRpcMessage,
) -> PostResponse {
    let wants_reply = matches!(message, JsonRpcMessage::Request { .. });
    let (responder, frames) = open.client.responder();
    let work = {
        let mut sender = open.sender(caller, &endpoint.server, parts);
        sender.transport_trace = trace;
        open.client.receive_as(sender, message, &responder)
    };
    work.await;
    drop(responder);
    if wants_reply {
        let dialect = open.client.dialect();
        respond(endpoint, dialect, frames, CallOwner::Session(open)).await
    } else {
        empty_response(StatusCode::ACCEPTED)
    }
}

/// Handles a batch in a session whose revision has batches; otherwise returns `None`.
async fn handle_batch(
    endpoint: &HttpEndpointState,
    caller: &Caller,
    parts: &Arc<HttpRequestParts>,
    json: &Json,
) -> Option<PostResponse> {
    let id = headers::session(parts.headers())?;
    let Some(open) = session_store::find(endpoint, id, caller).await else {
        return Some(no_session());
    };
    let client = open.client.clone();
    let dialect = client.dialect();
    let batch = MessageBatch::read(json, dialect)?;
    let version = headers::single_value(parts.headers(), headers::VERSION);
    let fits = version.and_then(|version| headers::check_session_version(version, dialect));
    let fits = fits.and(headers::check_batch(parts.headers()));
    let batch = match fits.and(batch) {
        Ok(batch) => batch,
        Err(wrong) => return Some(error_response(StatusCode::BAD_REQUEST, None, wrong)),
    };
    let wants_reply = batch.wants_reply();
    let (responder, frames) = client.responder();
    let sender = open.sender(caller, &endpoint.server, parts);
    #[allow(
        clippy::disallowed_methods,
        reason = "it must not wait for the reader of the response, and ends by itself"
    )]
    let taken = tokio::spawn(async move { batch.receive(&client, &sender, &responder).await });
    if wants_reply {
        let owner = CallOwner::Session(&open);
        return Some(respond(endpoint, dialect, frames, owner).await);
    }
    let _ = taken.await;
    Some(empty_response(StatusCode::ACCEPTED))
}

async fn open_session(
    endpoint: &HttpEndpointState,
    caller: &Caller,
    id: &Id,
    params: Option<&Json>,
) -> Result<PostResponse, (StatusCode, RpcError)> {
    let opened = InitializedClient::initialize(
        endpoint.server.clone(),
        caller.clone(),
        "http",
        None,
        params,
    );
    let (client, answer) = opened.map_err(|error| (StatusCode::BAD_REQUEST, error))?;
    let Some(open) = endpoint.sessions.add(caller.clone(), client) else {
        let error = RpcError::new(
            code::INTERNAL_ERROR,
            "too many sessions are open; end some of them with DELETE",
        );
        return Err((StatusCode::SERVICE_UNAVAILABLE, error));
    };
    if let Some(params) = params {
        session_store::save(endpoint, &open, caller, params).await;
    }
    let mut response = json_response(
        StatusCode::OK,
        toolgate_protocol::message::reply(Some(id), &Ok(answer)),
    );
    if let Ok(value) = HeaderValue::from_str(&open.id) {
        response.headers_mut().insert(headers::SESSION, value);
    }
    Ok(response)
}

/// Owner of the call behind a response.
enum CallOwner<'a> {
    /// The response: its work ends with the reply and is cancelled if the body is dropped.
    Response(BoxFuture<'static, OutgoingFrame>, Option<Box<StreamPermit>>),
    /// A session: the client can resume the stream.
    Session(&'a HttpSession),
}

/// Waits up to `stream_after` for the first frame: a reply becomes plain JSON, anything else a stream.
async fn respond(
    endpoint: &HttpEndpointState,
    dialect: &Dialect,
    mut frames: OutgoingFrames,
    mut owner: CallOwner<'_>,
) -> PostResponse {
    // The reply of completed work, sent after the frames before it.
    let mut reply = None;
    let next = poll_fn(|cx| {
        if let (CallOwner::Response(work, _), None) = (&mut owner, &reply) {
            reply = match work.as_mut().poll(cx) {
                Poll::Ready(frame) => Some(frame),
                Poll::Pending => None,
            };
        }
        match frames.poll_recv(cx) {
            Poll::Ready(Some(frame)) => Poll::Ready(Some(frame)),
            _ if reply.is_some() => Poll::Ready(reply.take()),
            none => none,
        }
    });
    let first = tokio::select! {
        biased;
        frame = next => Some(frame),
        // The timer is created only if needed: most responses are ready at once.
        () = async { tokio::time::sleep(endpoint.limits.stream_after).await } => None,
    };
    let first = match first {
        Some(Some(OutgoingFrame::Reply(text, code)))
            if code.is_some() || endpoint.limits.json_responses =>
        {
            let text = text.into_bytes();
            return match code {
                Some(code::INSUFFICIENT_SCOPE) => insufficient_scope_response(text),
                code => {
                    let status = StatusCode::from_u16(dialect.http_status(code));
                    json_response(status.unwrap_or(StatusCode::OK), text)
                }
            };
        }
        // The call was cancelled: it has no response.
        Some(None) => return empty_response(StatusCode::ACCEPTED),
        first => first.flatten(),
    };
    stream_response(endpoint, owner, frames, (first, reply))
}

/// Returns a stream that begins with the first frame. `reply` is that of completed work, if it was not sent yet.
fn stream_response(
    endpoint: &HttpEndpointState,
    owner: CallOwner<'_>,
    frames: OutgoingFrames,
    (first, reply): (Option<OutgoingFrame>, Option<OutgoingFrame>),
) -> PostResponse {
    let keep_alive = endpoint.limits.keep_alive_interval;
    match owner {
        CallOwner::Response(work, place) => {
            let work = match (reply, &first) {
                (Some(reply), _) => StreamWork::Done(reply),
                (None, Some(OutgoingFrame::Reply(..))) => StreamWork::None,
                (None, _) => StreamWork::Reply(work),
            };
            let body = Body::stream(frames, work, keep_alive);
            let body = match place {
                Some(place) => body.into_notifications().holding(*place),
                None => body,
            };
            body.with_frame(first).response()
        }
        CallOwner::Session(open) => {
            let lasts = endpoint
                .limits
                .reconnect_after
                .filter(|_| open.has_priming_event());
            let body = Body::resumable(
                open.streams.add(frames),
                open.has_priming_event(),
                keep_alive,
            );
            body.with_frame(first).reconnect_after(lasts).response()
        }
    }
}

/// Returns 403 for a token that lacks scopes. In every revision the header lists the required scopes.
fn insufficient_scope_response(text: Bytes) -> PostResponse {
    let scopes = Json::read(text.to_vec(), &Default::default())
        .ok()
        .and_then(|reply| reply.get("error")?.get("data")?.get("scopes"));
    let scopes: Vec<String> = scopes
        .iter()
        .flat_map(|scopes| {
            scopes
                .items()
                .filter_map(|scope| scope.string())
                .collect::<Vec<_>>()
        })
        .collect();
    let mut response = json_response(StatusCode::FORBIDDEN, text);
    let challenge = format!(
        "Bearer error=\"insufficient_scope\", scope=\"{}\"",
        scopes.join(" ")
    );
    if let Ok(value) = HeaderValue::from_str(&challenge) {
        let headers = response.headers_mut();
        headers.insert(http::header::WWW_AUTHENTICATE, value);
    }
    response.extensions_mut().insert(MissingScopes(scopes));
    response
}

/// Response extension with the OAuth scopes that the caller's access token lacks. A layer that knows the metadata URL
/// adds it to the challenge.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct MissingScopes(pub Vec<String>);

fn message_params(message: &JsonRpcMessage) -> Option<&Json> {
    match message {
        JsonRpcMessage::Request { params, .. } | JsonRpcMessage::Notification { params, .. } => {
            params.as_ref()
        }
        JsonRpcMessage::Reply { .. } => None,
    }
}

impl RequestError {
    pub(crate) fn new(
        message: &JsonRpcMessage,
        status: StatusCode,
        error: RpcError,
    ) -> RequestError {
        let (id, call) = match message {
            JsonRpcMessage::Request { id, method, params } => {
                let named = |key| params.as_ref()?.get(key)?.string();
                let name = || named("name").or_else(|| named("uri"));
                let used = operation::is_operation(method).then(|| (method.clone(), name()));
                (Some(id.clone()), used)
            }
            _ => (None, None),
        };
        RequestError {
            status,
            id,
            error,
            call,
        }
    }

    /// Reports the rejected message if it is a call, and returns its error response.
    pub(crate) async fn into_response(
        self,
        server: &ProtocolServer,
        caller: &Caller,
        address: Option<IpAddr>,
    ) -> PostResponse {
        if let Some((method, tool)) = self.call {
            let refused = Rejection {
                caller: caller.clone(),
                transport: "http",
                method: Some(method),
                tool,
                reason: self.error.message.clone(),
                address,
            };
            server.log_rejection(refused).await;
        }
        error_response(self.status, self.id.as_ref(), self.error)
    }
}
