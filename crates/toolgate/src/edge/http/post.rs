//! One POST: read strictly, checked, and handed to the era that it speaks.

use super::{
    Body, Inner, accept, error, headers, json, no_session, plain, reading, refused,
    sessions::{Open, Place},
};
use crate::edge::{
    Front, Refused, answer,
    batch::Batch,
    legacy::{self, Legacy},
    modern,
    outlet::{Frame, Frames},
};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, request::Parts};
use std::sync::Arc;
use toolgate_core::{BoxFuture, Caller, ItemKind, List};
use toolgate_wire::{
    dialect,
    json::{Json, Kind},
    message::{Id, Message, RpcError, code},
    method::{self, initialize, meta::Meta, tools_call, usage},
};

type Answer = Response<Body>;

/// What is rare is in a box, so that the future of a call is small: it is copied as it is made.
pub(crate) async fn post<B>(endpoint: &Arc<Inner>, caller: Caller, parts: &Parts, body: B) -> Answer
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let json = match read(endpoint, &caller, parts, body).await {
        Ok(json) => json,
        Err(answer) => return *answer,
    };
    if json.kind() == Kind::Array
        && let Some(answer) = Box::pin(batch(endpoint, &caller, parts, &json)).await
    {
        return answer;
    }
    let message = match message(&json) {
        Ok(message) => message,
        Err(answer) => return *answer,
    };
    match take(endpoint, &caller, parts, message).await {
        Ok(answer) => answer,
        Err(bad) => Box::pin(bad.answer(&endpoint.server, &caller)).await,
    }
}

/// A message that is refused before any layer sees it; `call` where a use was meant: its method, and of what.
pub(crate) struct Bad {
    status: StatusCode,
    id: Option<Id>,
    error: RpcError,
    call: Option<(String, Option<String>)>,
}

async fn read<B>(
    endpoint: &Inner,
    caller: &Caller,
    parts: &Parts,
    body: B,
) -> Result<Json, Box<Answer>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !(accept::accepts(&parts.headers, "application", "json")
        && accept::accepts(&parts.headers, "text", "event-stream"))
    {
        return Err(Box::new(refused(
            StatusCode::NOT_ACCEPTABLE,
            code::INVALID_REQUEST,
            "Accept must list both application/json and text/event-stream",
        )));
    }
    reading::body(endpoint, caller, parts, body).await
}

pub(crate) fn message(json: &Json) -> Result<Message, Box<Answer>> {
    Message::read(json).map_err(|bad| {
        let wrong = RpcError::new(code::INVALID_REQUEST, bad.reason);
        Box::new(error(StatusCode::BAD_REQUEST, bad.id.as_ref(), wrong))
    })
}

async fn take(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    parts: &Parts,
    message: Message,
) -> Result<Answer, Bad> {
    let bad = |error: RpcError| Bad::new(&message, StatusCode::BAD_REQUEST, error);
    if let Some(name) = headers::too_long(&parts.headers, endpoint.limits.header) {
        let most = endpoint.limits.header;
        let text = format!("the header {name} is longer than {most} bytes");
        return Err(bad(headers::mismatch(text)));
    }
    let version = headers::single(&parts.headers, headers::VERSION).map_err(bad)?;
    let spoken = version.map(dialect::find);
    let stateless_header = matches!(spoken, Some(Some(d)) if d.stateless);
    let unknown = matches!(spoken, Some(None)) && headers::session(&parts.headers).is_none();
    let meta = Meta::of(params(&message));
    if stateless_header || unknown || meta.is_modern() {
        return stateless(endpoint, caller, parts, message, (version, &meta)).await;
    }
    if matches!(spoken, Some(None)) {
        let text = "the header mcp-protocol-version names a revision that is not spoken here";
        return Err(bad(RpcError::new(code::INVALID_REQUEST, text)));
    }
    session(endpoint, caller, parts, message, version).await
}

/// 2026-07-28: the response owns the call, so a closed stream cancels it.
async fn stateless(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    parts: &Parts,
    message: Message,
    (version, meta): (Option<&str>, &Meta),
) -> Result<Answer, Bad> {
    let bad = |error: RpcError| Bad::new(&message, StatusCode::BAD_REQUEST, error);
    // Before the question whether it is spoken here: of two revisions neither may be believed.
    headers::one_revision(version, meta).map_err(bad)?;
    if let (Some(version), None) = (version, version.and_then(dialect::find)) {
        return Err(bad(modern::unsupported(version)));
    }
    let (id, method, params) = match &message {
        Message::Request { id, method, params } => (id.clone(), method.clone(), params.clone()),
        // Nothing that a client may tell here means anything to this server.
        Message::Notification { .. } => return Ok(plain(StatusCode::ACCEPTED)),
        Message::Reply { .. } => {
            return Err(bad(RpcError::new(
                code::INVALID_REQUEST,
                "a client sends no replies in this revision",
            )));
        }
    };
    let context = modern::context(&endpoint.server, caller.clone(), "http", meta).map_err(bad)?;
    headers::agree(&parts.headers, &method, params.as_ref(), meta).map_err(bad)?;
    if method == tools_call::NAME {
        mirrored(endpoint, caller, parts, params.as_ref())
            .await
            .map_err(bad)?;
    }
    let place = match method.as_str() {
        method::LISTEN => Some(
            endpoint
                .streams
                .open(caller)
                .ok_or_else(|| Bad::new(&message, StatusCode::TOO_MANY_REQUESTS, too_many()))?,
        ),
        _ => None,
    };
    let (outlet, frames) = endpoint.server.outlet(caller);
    let server = endpoint.server.clone();
    let work = Box::pin(async move {
        let answer =
            modern::answer(&server, &context, &id, &method, params.as_ref(), &outlet).await;
        let words = (context.dialect, &server.info);
        outlet.send(answer::reply(&id, answer, words)).await;
    });
    Ok(respond(endpoint, frames, Owner::Response(work, place)).await)
}

fn too_many() -> RpcError {
    RpcError::new(
        code::INTERNAL,
        "too many streams are open; close some of them",
    )
}

/// `Mcp-Param-*` against the arguments, where the tool's schema asks for them.
async fn mirrored(
    endpoint: &Inner,
    caller: &Caller,
    parts: &Parts,
    params: Option<&Json>,
) -> Result<(), RpcError> {
    let name = params.and_then(|params| params.get("name"));
    let Some(name) = name.as_ref().and_then(Json::str_cow) else {
        return Ok(());
    };
    let ask = List::one(caller.clone(), ItemKind::Tool, name.as_ref());
    let Ok(catalog) = endpoint.server.service.list(ask).await else {
        return Ok(());
    };
    match catalog.find(&name) {
        Some(item) => {
            let marked = item.memo(|item| headers::Marked::of(&item.def.input_schema()));
            marked.agree(&parts.headers, params)
        }
        None => Ok(()),
    }
}

/// The 2025 revisions: the session owns the call, so a lost connection does not end it.
async fn session(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    parts: &Parts,
    message: Message,
    version: Option<&str>,
) -> Result<Answer, Bad> {
    let bad = |error: RpcError| Bad::new(&message, StatusCode::BAD_REQUEST, error);
    headers::agree_if_there(&parts.headers, &message).map_err(bad)?;
    if let Message::Request { id, method, params } = &message
        && method == initialize::NAME
    {
        return initialize(endpoint, caller, id, params.as_ref())
            .map_err(|(status, error)| Bad::new(&message, status, error));
    }
    let Some(id) = headers::session(&parts.headers) else {
        return Err(bad(legacy::not_open()));
    };
    let Some(open) = endpoint.sessions.find(id, caller) else {
        let text = "there is no such session (any more); send initialize without a session id";
        let error = RpcError::new(code::INVALID_REQUEST, text);
        return Err(Bad::new(&message, StatusCode::NOT_FOUND, error));
    };
    headers::fits(version, open.legacy.dialect()).map_err(bad)?;
    Ok(receive(endpoint, caller, &open, message).await)
}

async fn receive(endpoint: &Inner, caller: &Caller, open: &Open, message: Message) -> Answer {
    let wants_reply = matches!(message, Message::Request { .. });
    let (outlet, frames) = open.legacy.outlet();
    open.legacy
        .receive_of(caller.clone(), message, &outlet)
        .await;
    drop(outlet);
    if wants_reply {
        respond(endpoint, frames, Owner::Session(open)).await
    } else {
        plain(StatusCode::ACCEPTED)
    }
}

/// A batch, in a session whose revision has them; `None` elsewhere.
async fn batch(endpoint: &Inner, caller: &Caller, parts: &Parts, json: &Json) -> Option<Answer> {
    let id = headers::session(&parts.headers)?;
    let Some(open) = endpoint.sessions.find(id, caller) else {
        return Some(no_session());
    };
    let legacy = open.legacy.clone();
    let batch = Batch::read(json, legacy.dialect())?;
    let version = headers::single(&parts.headers, headers::VERSION);
    let fits = version.and_then(|version| headers::fits(version, legacy.dialect()));
    let fits = fits.and(headers::no_single(&parts.headers));
    let batch = match fits.and(batch) {
        Ok(batch) => batch,
        Err(wrong) => return Some(error(StatusCode::BAD_REQUEST, None, wrong)),
    };
    let wants_reply = batch.wants_reply();
    let (outlet, frames) = legacy.outlet();
    let caller = caller.clone();
    #[allow(
        clippy::disallowed_methods,
        reason = "it must not wait for the reader of the response, and ends by itself"
    )]
    let taken = tokio::spawn(async move { batch.receive(&legacy, &caller, &outlet).await });
    if wants_reply {
        return Some(respond(endpoint, frames, Owner::Session(&open)).await);
    }
    let _ = taken.await;
    Some(plain(StatusCode::ACCEPTED))
}

fn initialize(
    endpoint: &Inner,
    caller: &Caller,
    id: &Id,
    params: Option<&Json>,
) -> Result<Answer, (StatusCode, RpcError)> {
    let opened = Legacy::open(
        endpoint.server.clone(),
        caller.clone(),
        "http",
        None,
        params,
    );
    let (legacy, answer) = opened.map_err(|error| (StatusCode::BAD_REQUEST, error))?;
    let Some(open) = endpoint.sessions.add(caller.clone(), legacy) else {
        let error = RpcError::new(
            code::INTERNAL,
            "too many sessions are open; end some of them with DELETE",
        );
        return Err((StatusCode::SERVICE_UNAVAILABLE, error));
    };
    let mut response = json(
        StatusCode::OK,
        toolgate_wire::message::reply(Some(id), &Ok(answer)),
    );
    if let Ok(value) = HeaderValue::from_str(&open.id) {
        response.headers_mut().insert(headers::SESSION, value);
    }
    Ok(response)
}

/// Who owns the call behind a response.
enum Owner<'a> {
    /// The response itself: its work runs as long as somebody reads.
    Response(BoxFuture<'static, ()>, Option<Place>),
    /// A session: the client may come back to the stream.
    Session(&'a Open),
}

/// Waits a little for the first frame: a reply at once is plain JSON, all else a stream.
async fn respond(endpoint: &Inner, mut frames: Frames, mut owner: Owner<'_>) -> Answer {
    let mut over = false;
    let done = async {
        match &mut owner {
            Owner::Response(work, _) => work.await,
            Owner::Session(_) => std::future::pending().await,
        }
    };
    let first = tokio::select! {
        biased;
        frame = frames.recv() => Some(frame),
        () = done => {
            over = true;
            Some(frames.recv().await)
        }
        // Made only where it is needed: most answers are there at once.
        () = async { tokio::time::sleep(endpoint.limits.stream_after).await } => None,
    };
    let stateless = matches!(owner, Owner::Response(..));
    let first = match first {
        Some(Some(Frame::Reply(text, code))) if code.is_some() || endpoint.limits.json => {
            let text = text.into_bytes();
            return match code {
                Some(code::INSUFFICIENT_SCOPE) => forbidden(text),
                code => json(status(code, stateless), text),
            };
        }
        // The call was cancelled: there is nothing to say.
        Some(None) => return plain(StatusCode::ACCEPTED),
        first => first.flatten(),
    };
    let keep_alive = endpoint.limits.keep_alive;
    match owner {
        Owner::Response(work, place) => {
            let work = Some(work).filter(|_| !over);
            let body = Body::stream(frames, work, keep_alive);
            body.after(first).holding(place).response()
        }
        Owner::Session(open) => {
            let lasts = endpoint.limits.stream_lasts.filter(|_| open.primes());
            let body = Body::kept(open.kept.open(frames), open.primes(), keep_alive);
            body.after(first).lasting(lasts).response()
        }
    }
}

/// The answer to a token that lacks scopes. What a client has to ask for stands in the header, in every revision.
fn forbidden(text: Bytes) -> Answer {
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
    let mut response = json(StatusCode::FORBIDDEN, text);
    let challenge = format!(
        "Bearer error=\"insufficient_scope\", scope=\"{}\"",
        scopes.join(" ")
    );
    if let Ok(value) = HeaderValue::from_str(&challenge) {
        let headers = response.headers_mut();
        headers.insert(http::header::WWW_AUTHENTICATE, value);
    }
    response.extensions_mut().insert(Lacking(scopes));
    response
}

/// The scopes that a caller lacks: for whoever knows where the metadata is, to say so in the challenge.
#[derive(Clone, Debug)]
pub struct Lacking(pub Vec<String>);

/// The HTTP status of an error of the protocol; old clients take anything but 200 for a dead connection.
fn status(error: Option<i64>, stateless: bool) -> StatusCode {
    match error {
        Some(code::METHOD_NOT_FOUND) if stateless => StatusCode::NOT_FOUND,
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
            if stateless =>
        {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

fn params(message: &Message) -> Option<&Json> {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params.as_ref(),
        Message::Reply { .. } => None,
    }
}

impl Bad {
    pub(crate) fn new(message: &Message, status: StatusCode, error: RpcError) -> Bad {
        let (id, call) = match message {
            Message::Request { id, method, params } => {
                let named = |key| params.as_ref()?.get(key)?.string();
                let name = || named("name").or_else(|| named("uri"));
                let used = usage::is_usage(method).then(|| (method.clone(), name()));
                (Some(id.clone()), used)
            }
            _ => (None, None),
        };
        Bad {
            status,
            id,
            error,
            call,
        }
    }

    /// Puts a refused call on record, then says no.
    pub(crate) async fn answer(self, server: &Front, caller: &Caller) -> Answer {
        if let Some((method, tool)) = self.call {
            let refused = Refused {
                caller: caller.clone(),
                transport: "http",
                method: Some(method),
                tool,
                reason: self.error.message.clone(),
            };
            server.refused(refused).await;
        }
        error(self.status, self.id.as_ref(), self.error)
    }
}
