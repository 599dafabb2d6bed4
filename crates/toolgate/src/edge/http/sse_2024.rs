//! The transport of 2024-11-05: one stream of events, and an address to which everything is posted.
//!
//! Page: basic/transports of that revision. The stream owns the session: when it closes, all that runs for it ends. So
//! an idle session needs no limit of its own; it lasts as long as somebody reads, and at most as long as any session.

use super::{
    Body, Endpoint, Inner, accept, error, headers, plain,
    post::{self, Bad},
    reading, refused,
};
use crate::{
    edge::{
        Front, answer,
        batch::Batch,
        legacy::{self, Legacy},
        outlet::Outlet,
    },
    ids,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::watch;
use toolgate_core::Caller;
use toolgate_wire::{
    dialect,
    json::Json,
    message::{Message, RpcError, code},
    method::initialize,
};

/// The parameter of the address that names the session.
const SESSION: &str = "sessionId";

impl Endpoint {
    /// Opens a stream of the transport of 2024-11-05. `messages` is the path at which [`Endpoint::messages`] answers;
    /// the first event of the stream names it, and a secret of this session.
    pub fn sse<B>(&self, caller: &Caller, request: &Request<B>, messages: &str) -> Response<Body> {
        if request.method() != Method::GET {
            return only(Method::GET, "only GET here; it opens a stream of events");
        }
        if !accept::accepts(request.headers(), "text", "event-stream") {
            return refused(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                "Accept must list text/event-stream",
            );
        }
        let place = self.0.streams.open(caller);
        let opened = place.and_then(|place| Some((place, self.open_stream(caller)?)));
        let Some((place, (session, stream))) = opened else {
            return refused(
                StatusCode::TOO_MANY_REQUESTS,
                code::INTERNAL,
                "too many streams are open; close some of them",
            );
        };
        let address = format!("{messages}?{SESSION}={}", session.id);
        let end = Ends(Arc::downgrade(&self.0), session.id.clone());
        let leave = leave(Arc::downgrade(&self.0), Arc::downgrade(&session));
        let life = life(self.0.clone(), session);
        let ends = (Box::pin(life) as _, Box::pin(leave) as _);
        Body::session(&address, stream, ends, self.0.limits.keep_alive)
            .holding((place, end))
            .response()
    }

    /// Takes what the client of such a stream posts. The replies come on the stream.
    pub async fn messages<B>(&self, caller: &Caller, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if request.method() != Method::POST {
            return only(Method::POST, "only POST here, of one message each");
        }
        let (parts, body) = request.into_parts();
        let id = parts.uri.query().and_then(session_id);
        let Some(session) = id.and_then(|id| self.0.streams_2024.find(id, caller)) else {
            return refused(
                StatusCode::NOT_FOUND,
                code::INVALID_REQUEST,
                "there is no such session (any more); open a new stream",
            );
        };
        let json = match reading::body(&self.0, caller, &parts, body).await {
            Ok(json) => json,
            Err(answer) => return *answer,
        };
        if let Some(answer) = session.batch(&parts.headers, &json).await {
            return answer;
        }
        match post::message(&json) {
            Ok(message) => session.take(&self.0.server, &parts, message).await,
            Err(answer) => *answer,
        }
    }

    fn open_stream(&self, caller: &Caller) -> Option<(Arc<Stream>, crate::edge::outlet::Frames)> {
        let (outlet, frames) = self.0.server.outlet(caller);
        let session = Arc::new(Stream {
            id: ids::secret(),
            caller: caller.clone().in_session(ids::session_number()),
            outlet,
            peer: Mutex::new(Peer::New),
            opened: watch::Sender::new(false),
        });
        let limit = self.0.limits.sessions;
        let added = self.0.streams_2024.add(session.clone(), limit);
        added.then_some((session, frames))
    }
}

/// The open streams of this transport, by the id of their session.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<String, Arc<Stream>>>);

impl Streams {
    fn add(&self, session: Arc<Stream>, limit: usize) -> bool {
        let mut open = self.open();
        let room = open.len() < limit;
        if room {
            open.insert(session.id.clone(), session);
        }
        room
    }

    /// Another caller's stream is not there.
    fn find(&self, id: &str, caller: &Caller) -> Option<Arc<Stream>> {
        let found = self.open().get(id).cloned();
        found.filter(|session| {
            session.caller.is_still(caller) && session.caller.principal() == caller.principal()
        })
    }

    fn end(&self, id: &str) {
        let ended = self.open().remove(id);
        if let Some(session) = ended {
            session.end();
        }
    }

    /// Ends all of them.
    pub(crate) fn close(&self) {
        let all: Vec<Arc<Stream>> = self.open().drain().map(|(_, session)| session).collect();
        all.iter().for_each(|session| session.end());
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Stream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream and its peer. The id is no proof of who calls: the caller must be the one that opened it.
pub(crate) struct Stream {
    id: String,
    caller: Caller,
    outlet: Outlet,
    peer: Mutex<Peer>,
    /// Whether it said `initialize`.
    opened: watch::Sender<bool>,
}

enum Peer {
    /// Before `initialize`.
    New,
    Open(Arc<Legacy>),
    Gone,
}

impl Stream {
    async fn take(&self, server: &Arc<Front>, parts: &Parts, message: Message) -> Response<Body> {
        let said = headers::Said::of(&parts.headers, usize::MAX);
        let repeated = headers::agree_if_there(&said, &message);
        if let Err(wrong) = self.fits(&parts.headers).and(repeated) {
            let bad = Bad::new(&message, StatusCode::BAD_REQUEST, wrong);
            return bad.answer(server, &self.caller).await;
        }
        match (self.legacy(), message) {
            (Some(legacy), message) => {
                legacy.receive(message, &self.outlet).await;
                self.still_there(&legacy);
            }
            (None, Message::Request { id, method, params }) if method == initialize::NAME => {
                let answer = self.open(server, params.as_ref());
                self.outlet.send(answer::frame(Some(&id), &answer)).await;
            }
            (None, message @ Message::Request { .. }) => {
                let bad = Bad::new(&message, StatusCode::BAD_REQUEST, legacy::not_open());
                return bad.answer(server, &self.caller).await;
            }
            // Notifications are never answered, and nobody was asked anything.
            (None, Message::Notification { .. } | Message::Reply { .. }) => {}
        }
        plain(StatusCode::ACCEPTED)
    }

    /// A batch, from a peer whose revision has them; `None` elsewhere.
    async fn batch(&self, headers: &HeaderMap, json: &Json) -> Option<Response<Body>> {
        let legacy = self.legacy()?;
        let batch = Batch::read(json, legacy.dialect())?;
        let single = headers::no_single(headers);
        let batch = match self.fits(headers).and(single).and(batch) {
            Ok(batch) => batch,
            Err(wrong) => return Some(error(StatusCode::BAD_REQUEST, None, wrong)),
        };
        batch.receive(&legacy, &self.caller, &self.outlet).await;
        self.still_there(&legacy);
        Some(plain(StatusCode::ACCEPTED))
    }

    /// The stream may close while a message is taken; nobody else would end what has just begun.
    fn still_there(&self, legacy: &Legacy) {
        if matches!(*self.peer(), Peer::Gone) {
            legacy.close();
        }
    }

    fn open(&self, server: &Arc<Front>, params: Option<&Json>) -> Result<Json, RpcError> {
        let mut peer = self.peer();
        if !matches!(*peer, Peer::New) {
            let text = "initialize comes once, and it came already";
            return Err(RpcError::new(code::INVALID_REQUEST, text));
        }
        let (legacy, answer) =
            Legacy::open(server.clone(), self.caller.clone(), "http", None, params)?;
        legacy.tell_changes(self.outlet.clone());
        *peer = Peer::Open(legacy);
        self.opened.send_replace(true);
        Ok(answer)
    }

    /// A client of a later revision may name it here too.
    fn fits(&self, headers: &HeaderMap) -> Result<(), RpcError> {
        let version = headers::single(headers, headers::VERSION)?;
        match self.legacy() {
            Some(legacy) => headers::fits(version, legacy.dialect()),
            None if version.is_none_or(|v| dialect::find(v).is_some()) => Ok(()),
            None => Err(RpcError::new(
                code::INVALID_REQUEST,
                "the header mcp-protocol-version names a revision that is not spoken here",
            )),
        }
    }

    fn end(&self) {
        if let Peer::Open(legacy) = std::mem::replace(&mut *self.peer(), Peer::Gone) {
            legacy.close();
        }
    }

    /// Ends once the peer left pings without an answer; never where it is sent none.
    async fn peer_gone(&self) {
        let mut opened = self.opened.subscribe();
        let _ = opened.wait_for(|opened| *opened).await;
        match self.legacy() {
            Some(legacy) => legacy.gone().await,
            None => std::future::pending().await,
        }
    }

    fn legacy(&self) -> Option<Arc<Legacy>> {
        match &*self.peer() {
            Peer::Open(legacy) => Some(legacy.clone()),
            Peer::New | Peer::Gone => None,
        }
    }

    fn peer(&self) -> MutexGuard<'_, Peer> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the session with its stream.
struct Ends(Weak<Inner>, String);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0.upgrade() {
            endpoint.streams_2024.end(&self.1);
        }
    }
}

/// Ends a session that is too old. Where the server stops, what runs may end first.
async fn life(endpoint: Arc<Inner>, session: Arc<Stream>) {
    tokio::select! {
        () = tokio::time::sleep(endpoint.limits.session_age) => {}
        () = session.peer_gone() => {}
        () = endpoint.server.closed() => {
            if let Some(legacy) = session.legacy() {
                legacy.idle().await;
            }
        }
    }
    endpoint.streams_2024.end(&session.id);
}

/// Ends a session whose caller may open nothing more, once what it began has ended. Until then it keeps none open.
async fn leave(endpoint: Weak<Inner>, session: Weak<Stream>) {
    let legacy = session.upgrade().and_then(|session| session.legacy());
    if let Some(legacy) = legacy {
        legacy.idle().await;
    }
    if let (Some(endpoint), Some(session)) = (endpoint.upgrade(), session.upgrade()) {
        endpoint.streams_2024.end(&session.id);
    }
}

fn session_id(query: &str) -> Option<&str> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix(SESSION)?.strip_prefix('='));
    match (values.next(), values.next()) {
        (Some(id), None) => Some(id),
        _ => None,
    }
}

fn only(method: Method, text: &str) -> Response<Body> {
    let wrong = RpcError::new(code::INVALID_REQUEST, text);
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, None, wrong);
    if let Ok(value) = HeaderValue::from_str(method.as_str()) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}
