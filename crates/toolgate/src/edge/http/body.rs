//! Response bodies: one text, or a stream of server-sent events.

use super::resume::ResumableReader;
use crate::edge::responder::{OutgoingFrame, OutgoingFrames};
use bytes::Bytes;
use futures_util::{FutureExt, future::select, stream::BoxStream};
use http::{HeaderValue, Response, header};
use std::{
    any::Any,
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep},
};
use toolgate_core::BoxFuture;

/// Last event on a connection whose stream continues: the client reconnects after this time.
const RECONNECT_EVENT: &[u8] = b"retry: 500\n\n";

/// HTTP response body of the MCP endpoint: one text, or a stream of server-sent events (SSE).
pub struct Body(BodyContent);

enum BodyContent {
    Full(Option<Bytes>),
    Stream(Box<SseBodyStream>),
    Forwarded(Box<ForwardedBody>),
}

/// Body of another process's answer.
struct ForwardedBody {
    source: BoxStream<'static, Bytes>,
    /// Futures that end the stream: the first one to complete does.
    endings: Vec<BoxFuture<'static, ()>>,
}

impl ForwardedBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut endings = self.endings.iter_mut();
        if endings.any(|ending| ending.as_mut().poll(cx).is_ready()) {
            self.endings.clear();
            self.source = Box::pin(futures_util::stream::empty());
        }
        futures_util::Stream::poll_next(self.source.as_mut(), cx)
    }
}

/// The source of the events of a stream.
enum EventSource {
    /// One request; its reply is the last event.
    Frames(OutgoingFrames),
    /// One request in a session, whose stream the client can resume.
    Resumable(ResumableReader),
    /// All requests of a session.
    Session(OutgoingFrames),
    Named(mpsc::Receiver<(&'static str, String)>),
}

/// The work of a stream that owns it: dropping the body cancels it.
pub(crate) enum StreamWork {
    None,
    /// Work that sends its results through the source.
    Events(BoxFuture<'static, ()>),
    /// Work that ends with the reply, which follows all events of the source.
    Reply(BoxFuture<'static, OutgoingFrame>),
    /// Completed work, with its reply.
    Done(OutgoingFrame),
}

/// The way in which a stream ends when the credentials of its caller expire.
enum StreamExpiry {
    /// With the reply: a call that began in time completes.
    AfterReply,
    /// At once: a notification stream belongs to no call.
    AtOnce,
    /// After this future, which waits for the requests in flight and ends the session.
    After(BoxFuture<'static, ()>),
}

impl StreamWork {
    fn poll(&mut self, cx: &mut Context<'_>) {
        let over = match self {
            StreamWork::None | StreamWork::Done(_) => return,
            StreamWork::Events(work) => work.as_mut().poll(cx).map(|()| StreamWork::None),
            StreamWork::Reply(work) => work.as_mut().poll(cx).map(StreamWork::Done),
        };
        if let Poll::Ready(over) = over {
            *self = over;
        }
    }

    /// Takes the reply of completed work.
    fn reply(&mut self) -> Option<OutgoingFrame> {
        match mem::replace(self, StreamWork::None) {
            StreamWork::Done(reply) => Some(reply),
            work => {
                *self = work;
                None
            }
        }
    }
}

struct SseBodyStream {
    first: VecDeque<Bytes>,
    source: EventSource,
    work: StreamWork,
    keep_alive: Interval,
    has_ended: bool,
    /// The time at which the connection ends before the stream does, so that the client reconnects.
    reconnect_at: Option<Pin<Box<Sleep>>>,
    /// Futures that end the stream: the first one to complete does.
    endings: Vec<BoxFuture<'static, ()>>,
    /// The way in which it ends when the credentials of its caller expire.
    expiry: StreamExpiry,
    held: Vec<Box<dyn Any + Send>>,
}

impl Body {
    /// Creates a response body that consists of this text.
    pub fn full(text: impl Into<Bytes>) -> Body {
        Body(BodyContent::Full(
            Some(text.into()).filter(|b: &Bytes| !b.is_empty()),
        ))
    }

    /// Creates a response body from the parts of another process's answer.
    #[doc(hidden)]
    pub fn forwarded(source: BoxStream<'static, Bytes>) -> Body {
        let endings = Vec::new();
        Body(BodyContent::Forwarded(Box::new(ForwardedBody {
            source,
            endings,
        })))
    }

    /// Creates a response body that streams named server-sent events, each with one line of data. `work` runs until the
    /// body is dropped.
    pub fn named(
        events: mpsc::Receiver<(&'static str, String)>,
        work: BoxFuture<'static, ()>,
        keep_alive: Duration,
    ) -> Body {
        Body::open_stream(
            EventSource::Named(events),
            StreamWork::Events(work),
            keep_alive,
        )
    }

    pub(crate) fn stream(frames: OutgoingFrames, work: StreamWork, keep_alive: Duration) -> Body {
        Body::open_stream(EventSource::Frames(frames), work, keep_alive)
    }

    /// Returns a stream that the client can resume. With `primed` it begins with an event without data.
    pub(crate) fn resumable(reader: ResumableReader, primed: bool, keep_alive: Duration) -> Body {
        let primer = primed.then(|| reader.priming_event());
        let mut body =
            Body::open_stream(EventSource::Resumable(reader), StreamWork::None, keep_alive);
        if let (BodyContent::Stream(stream), Some(primer)) = (&mut body.0, primer) {
            stream.first = VecDeque::from([primer]);
        }
        body
    }

    /// Returns a resumed stream, beginning with the events that the client missed.
    pub(crate) fn resumed(
        reader: ResumableReader,
        missed: VecDeque<Bytes>,
        keep_alive: Duration,
    ) -> Body {
        let over = reader.has_ended();
        let mut body =
            Body::open_stream(EventSource::Resumable(reader), StreamWork::None, keep_alive)
                .into_notifications();
        if let BodyContent::Stream(stream) = &mut body.0 {
            stream.first.extend(missed);
            stream.has_ended = over;
        }
        body
    }

    /// Returns the stream of a 2024-11-05 session, whose first event names the endpoint for messages. `work` runs until
    /// the body is dropped; `leave` ends the session once no request is in flight.
    pub(crate) fn session(
        address: &str,
        frames: OutgoingFrames,
        (work, leave): (BoxFuture<'static, ()>, BoxFuture<'static, ()>),
        keep_alive: Duration,
    ) -> Body {
        let mut body = Body::open_stream(
            EventSource::Session(frames),
            StreamWork::Events(work),
            keep_alive,
        );
        if let BodyContent::Stream(stream) = &mut body.0 {
            stream.first = VecDeque::from([event("endpoint", address)]);
            stream.expiry = StreamExpiry::After(leave);
        }
        body
    }

    /// Marks the stream as a notification stream, which belongs to no request.
    pub(crate) fn into_notifications(mut self) -> Body {
        if let BodyContent::Stream(stream) = &mut self.0 {
            stream.expiry = StreamExpiry::AtOnce;
        }
        self
    }

    fn open_stream(source: EventSource, work: StreamWork, keep_alive: Duration) -> Body {
        let mut keep_alive = interval_at(Instant::now() + keep_alive, keep_alive);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A comment at once, so that the headers are sent and the client knows that the stream is open.
        let first = VecDeque::from([Bytes::from_static(b": open\n\n")]);
        Body(BodyContent::Stream(Box::new(SseBodyStream {
            first,
            source,
            work,
            keep_alive,
            has_ended: false,
            reconnect_at: None,
            endings: Vec::new(),
            expiry: StreamExpiry::AfterReply,
            held: Vec::new(),
        })))
    }

    /// Appends a frame that was received before the stream.
    pub(crate) fn with_frame(mut self, frame: Option<OutgoingFrame>) -> Body {
        if let (BodyContent::Stream(stream), Some(frame)) = (&mut self.0, frame) {
            let (event, last) = stream.source.to_event(frame);
            stream.has_ended = last;
            stream.first.push_back(event);
        }
        self
    }

    /// Ends the connection after this time; the stream itself continues and can be resumed.
    pub(crate) fn reconnect_after(mut self, at_most: Option<Duration>) -> Body {
        if let (BodyContent::Stream(stream), Some(at_most)) = (&mut self.0, at_most) {
            stream.reconnect_at = Some(Box::pin(sleep(at_most)));
        }
        self
    }

    /// Ends a response stream (SSE) at once when `end` completes, and cancels its work. For callers whose credentials
    /// were revoked. Other bodies stay unchanged.
    #[doc(hidden)]
    pub fn end_when(mut self, end: BoxFuture<'static, ()>) -> Body {
        match &mut self.0 {
            BodyContent::Stream(stream) => stream.endings.push(end),
            BodyContent::Forwarded(forwarded) => forwarded.endings.push(end),
            BodyContent::Full(_) => {}
        }
        self
    }

    /// Ends a notification stream (SSE) when `expiry` completes. A call in flight completes first: it may already have
    /// had its effect, and the client would repeat a call that was cut off. For callers whose credentials expire.
    #[doc(hidden)]
    pub fn expire_when(mut self, expiry: BoxFuture<'static, ()>) -> Body {
        let BodyContent::Stream(stream) = &mut self.0 else {
            return self;
        };
        match mem::replace(&mut stream.expiry, StreamExpiry::AfterReply) {
            StreamExpiry::AfterReply => {}
            StreamExpiry::AtOnce => {
                stream.expiry = StreamExpiry::AtOnce;
                stream.endings.push(expiry);
            }
            StreamExpiry::After(leave) => {
                let ends = Box::pin(async {
                    expiry.await;
                    leave.await;
                });
                if let StreamWork::Events(work) = mem::replace(&mut stream.work, StreamWork::None) {
                    stream.work = StreamWork::Events(Box::pin(select(work, ends).map(drop)));
                }
            }
        }
        self
    }

    /// Keeps a value alive as long as the stream.
    pub(crate) fn holding(mut self, held: impl Any + Send) -> Body {
        if let BodyContent::Stream(stream) = &mut self.0 {
            stream.held.push(Box::new(held));
        }
        self
    }

    /// Returns an HTTP response of type `text/event-stream` with this body.
    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(self);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        );
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

/// Returns the server-sent event of a message.
fn message_event(frame: OutgoingFrame) -> Bytes {
    let text = frame.into_text();
    text.map_text(|text| format_event("message", text))
        .into_bytes()
}

/// Formats an event. JSON text contains no line feed, so one `data` line is enough.
fn format_event(name: &str, text: &str) -> String {
    format!("event: {name}\ndata: {text}\n\n")
}

fn event(name: &str, text: &str) -> Bytes {
    Bytes::from(format_event(name, text))
}

impl EventSource {
    /// Returns the event of a message, and whether it is the last one.
    fn to_event(&self, frame: OutgoingFrame) -> (Bytes, bool) {
        let last = matches!(frame, OutgoingFrame::Reply(..));
        match self {
            EventSource::Resumable(reader) => reader.to_event(frame),
            _ => (message_event(frame), last),
        }
    }

    /// Polls for the next event, and whether it is the last one.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Bytes, bool)>> {
        match self {
            EventSource::Frames(frames) => frames.poll_recv(cx).map(|frame| {
                let frame = frame?;
                let last = matches!(frame, OutgoingFrame::Reply(..));
                Some((message_event(frame), last))
            }),
            EventSource::Resumable(reader) => reader.poll(cx),
            EventSource::Session(frames) => frames
                .poll_recv(cx)
                .map(|frame| frame.map(|f| (message_event(f), false))),
            EventSource::Named(events) => events
                .poll_recv(cx)
                .map(|e| e.map(|(name, text)| (event(name, &text), false))),
        }
    }
}

impl SseBodyStream {
    /// Returns whether the connection ends so that the client reconnects for the rest.
    fn must_reconnect(&mut self, cx: &mut Context<'_>) -> bool {
        let until = self.reconnect_at.as_mut();
        until.is_some_and(|until| until.as_mut().poll(cx).is_ready())
    }

    /// Returns whether a future in `endings` completed, and clears the stream if so.
    fn take_ending(&mut self, cx: &mut Context<'_>) -> bool {
        let mut endings = self.endings.iter_mut();
        if !endings.any(|ending| ending.as_mut().poll(cx).is_ready()) {
            return false;
        }
        self.endings.clear();
        (self.work, self.has_ended) = (StreamWork::None, true);
        self.first.clear();
        true
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.take_ending(cx) {
            return Poll::Ready(None);
        }
        if let Some(first) = self.first.pop_front() {
            if self.first.is_empty() {
                // A stream mostly waits: it keeps no memory for what it sent.
                self.first = VecDeque::new();
            }
            return Poll::Ready(Some(first));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.work.poll(cx);
        let next = match self.source.poll(cx) {
            Poll::Ready(Some(next)) => Poll::Ready(Some(next)),
            none => match self.work.reply() {
                Some(reply) => Poll::Ready(Some(self.source.to_event(reply))),
                None => none,
            },
        };
        match next {
            Poll::Ready(Some((event, last))) => {
                self.has_ended = last;
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.must_reconnect(cx) => {
                self.has_ended = true;
                Poll::Ready(Some(Bytes::from_static(RECONNECT_EVENT)))
            }
            Poll::Pending if self.keep_alive.poll_tick(cx).is_ready() => {
                Poll::Ready(Some(Bytes::from_static(b": alive\n\n")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let data = match &mut self.get_mut().0 {
            BodyContent::Full(text) => Poll::Ready(text.take()),
            BodyContent::Stream(stream) => stream.poll(cx),
            BodyContent::Forwarded(forwarded) => forwarded.poll(cx),
        };
        data.map(|data| data.map(|data| Ok(http_body::Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, BodyContent::Full(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            BodyContent::Full(text) => {
                http_body::SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64))
            }
            BodyContent::Stream(_) | BodyContent::Forwarded(_) => http_body::SizeHint::default(),
        }
    }
}
