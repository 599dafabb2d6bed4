//! Bodies of HTTP replies whose messages are checked while they come.

use super::{Side, Talk};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{LazyLock, Mutex},
    task::{Context, Poll, ready},
};

/// The revisions of the sessions that were opened, by their random ids.
static SESSIONS: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// A body whose messages are checked while they come: one message, or a stream of events.
pub(crate) struct Checked<B> {
    body: B,
    talk: Talk,
    stream: bool,
    json: bool,
    part: Vec<u8>,
}

impl<B: Body<Data = Bytes> + Unpin> Checked<B> {
    /// The reply to a request with that body. `session` is the id that the request or the reply names.
    pub(crate) fn new(
        request: &str,
        session: Option<&str>,
        response: http::Response<B>,
    ) -> http::Response<Checked<B>> {
        let mut talk = Talk::of(Side::Server);
        let opened = response.headers().get("mcp-session-id");
        let opened = opened.and_then(|id| id.to_str().ok());
        let mut sessions = SESSIONS.lock().unwrap();
        if let Some(id) = opened.filter(|_| request.contains("\"initialize\"")) {
            sessions.insert(id.to_owned(), request.to_owned());
        }
        // The handshake says which revision the session speaks.
        if let Some(opening) = session.and_then(|id| sessions.get(id)) {
            talk.heard(opening);
        }
        talk.heard(request);
        let kind = response.headers().get("content-type");
        let is = |name: &str| kind.is_some_and(|kind| kind == name);
        let (stream, json) = (is("text/event-stream"), is("application/json"));
        response.map(|body| Checked {
            body,
            talk,
            stream,
            json,
            part: Vec::new(),
        })
    }

    fn take(&mut self, data: &[u8]) {
        self.part.extend_from_slice(data);
        if !self.stream {
            return;
        }
        while let Some(end) = self.part.windows(2).position(|w| w == b"\n\n") {
            let event: Vec<u8> = self.part.drain(..end + 2).collect();
            self.event(&String::from_utf8(event).unwrap());
        }
    }

    fn event(&mut self, event: &str) {
        // The first event of the old transport is an address.
        if event.lines().any(|line| line == "event: endpoint") {
            return;
        }
        let data = event.lines().filter_map(|line| line.strip_prefix("data: "));
        self.talk.said(&data.collect::<Vec<_>>().join("\n"));
    }

    fn end(&mut self) {
        if self.json {
            let whole = String::from_utf8(std::mem::take(&mut self.part)).unwrap();
            self.talk.said(&whole);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Checked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let data = data.clone();
                    self.take(&data);
                }
            }
            _ => self.end(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
