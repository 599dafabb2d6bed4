//! The body of a response: one text, or a stream of server-sent events.

use super::resume::Reader;
use crate::edge::outlet::{Frame, Frames};
use bytes::Bytes;
use futures_util::{FutureExt, future::select};
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

/// The last words on a connection whose stream goes on: come back after so many milliseconds.
const RETRY: &[u8] = b"retry: 500\n\n";

/// The body of a response.
pub struct Body(Inner);

enum Inner {
    Full(Option<Bytes>),
    Stream(Box<Stream>),
}

/// Where the events of a stream come from.
enum Source {
    /// Of one request: its reply is the last.
    Frames(Frames),
    /// The same in a session, where a client may come back to it.
    Kept(Reader),
    /// Of all requests of a session.
    Session(Frames),
    Named(mpsc::Receiver<(&'static str, String)>),
}

/// The work behind a stream, where the stream owns it: dropping the body cancels it.
pub(crate) enum Work {
    None,
    /// What it comes to is told by the source.
    Tells(BoxFuture<'static, ()>),
    /// It ends with the reply, which comes behind all that the source has.
    Replies(BoxFuture<'static, Frame>),
    /// It is over.
    Done(Frame),
}

/// How a stream ends where the time of its reader is over.
enum Leaves {
    /// With the reply: what was begun in time ends by itself.
    Replied,
    /// At once: it tells what happens, and waits for nothing.
    AtOnce,
    /// By this, once all that was begun has ended.
    By(BoxFuture<'static, ()>),
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) {
        let over = match self {
            Work::None | Work::Done(_) => return,
            Work::Tells(work) => work.as_mut().poll(cx).map(|()| Work::None),
            Work::Replies(work) => work.as_mut().poll(cx).map(Work::Done),
        };
        if let Poll::Ready(over) = over {
            *self = over;
        }
    }

    /// The reply, where it is over with one.
    fn reply(&mut self) -> Option<Frame> {
        match mem::replace(self, Work::None) {
            Work::Done(reply) => Some(reply),
            work => {
                *self = work;
                None
            }
        }
    }
}

struct Stream {
    first: VecDeque<Bytes>,
    source: Source,
    work: Work,
    keep_alive: Interval,
    over: bool,
    /// When the connection ends before the stream does, so that the client comes back.
    until: Option<Pin<Box<Sleep>>>,
    /// The first of them ends it: nobody may read it any more.
    endings: Vec<BoxFuture<'static, ()>>,
    /// How it ends where the time of its reader is over.
    leaves: Leaves,
    held: Vec<Box<dyn Any + Send>>,
}

impl Body {
    /// A whole body.
    pub fn full(text: impl Into<Bytes>) -> Body {
        Body(Inner::Full(
            Some(text.into()).filter(|b: &Bytes| !b.is_empty()),
        ))
    }

    /// A stream of events with names, each of one line of text. `work` runs as long as somebody reads.
    pub fn named(
        events: mpsc::Receiver<(&'static str, String)>,
        work: BoxFuture<'static, ()>,
        keep_alive: Duration,
    ) -> Body {
        Body::of(Source::Named(events), Work::Tells(work), keep_alive)
    }

    pub(crate) fn stream(frames: Frames, work: Work, keep_alive: Duration) -> Body {
        Body::of(Source::Frames(frames), work, keep_alive)
    }

    /// A stream that a client may come back to. With `primed` it begins with an event without data.
    pub(crate) fn kept(reader: Reader, primed: bool, keep_alive: Duration) -> Body {
        let primer = primed.then(|| reader.primer());
        let mut body = Body::of(Source::Kept(reader), Work::None, keep_alive);
        if let (Inner::Stream(stream), Some(primer)) = (&mut body.0, primer) {
            stream.first = VecDeque::from([primer]);
        }
        body
    }

    /// A stream that a client came back to, from the events that it missed.
    pub(crate) fn resumed(reader: Reader, missed: VecDeque<Bytes>, keep_alive: Duration) -> Body {
        let over = reader.is_over();
        let mut body = Body::of(Source::Kept(reader), Work::None, keep_alive).listening();
        if let Inner::Stream(stream) = &mut body.0 {
            stream.first.extend(missed);
            stream.over = over;
        }
        body
    }

    /// The stream of a session of 2024-11-05, which first says where to post. `work` runs as long as somebody reads; `leave`
    /// ends the session once nothing runs in it.
    pub(crate) fn session(
        address: &str,
        frames: Frames,
        (work, leave): (BoxFuture<'static, ()>, BoxFuture<'static, ()>),
        keep_alive: Duration,
    ) -> Body {
        let mut body = Body::of(Source::Session(frames), Work::Tells(work), keep_alive);
        if let Inner::Stream(stream) = &mut body.0 {
            stream.first = VecDeque::from([event("endpoint", address)]);
            stream.leaves = Leaves::By(leave);
        }
        body
    }

    /// The same stream, which tells what happens and belongs to no request.
    pub(crate) fn listening(mut self) -> Body {
        if let Inner::Stream(stream) = &mut self.0 {
            stream.leaves = Leaves::AtOnce;
        }
        self
    }

    fn of(source: Source, work: Work, keep_alive: Duration) -> Body {
        let mut keep_alive = interval_at(Instant::now() + keep_alive, keep_alive);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A comment at once, so that the headers leave and the reader knows that it is heard.
        let first = VecDeque::from([Bytes::from_static(b": open\n\n")]);
        Body(Inner::Stream(Box::new(Stream {
            first,
            source,
            work,
            keep_alive,
            over: false,
            until: None,
            endings: Vec::new(),
            leaves: Leaves::Replied,
            held: Vec::new(),
        })))
    }

    /// The same stream with a frame that is there already.
    pub(crate) fn after(mut self, frame: Option<Frame>) -> Body {
        if let (Inner::Stream(stream), Some(frame)) = (&mut self.0, frame) {
            let (event, last) = stream.source.sent(frame);
            stream.over = last;
            stream.first.push_back(event);
        }
        self
    }

    /// Ends the connection of a stream after that time; the stream itself goes on.
    pub(crate) fn lasting(mut self, at_most: Option<Duration>) -> Body {
        if let (Inner::Stream(stream), Some(at_most)) = (&mut self.0, at_most) {
            stream.until = Some(Box::pin(sleep(at_most)));
        }
        self
    }

    /// Ends a stream as soon as `over` does, whatever is still to come; what runs for it alone is cancelled. For callers
    /// whose credentials were withdrawn. A body that is no stream stays as it is.
    pub fn ending(mut self, over: BoxFuture<'static, ()>) -> Body {
        if let Inner::Stream(stream) = &mut self.0 {
            stream.endings.push(over);
        }
        self
    }

    /// Ends a stream on which is told what happens as soon as `over` does. A call that was begun goes on to its answer: its
    /// effect may be there already, and who is cut off would call again. For callers whose credentials have an end.
    pub fn expiring(mut self, over: BoxFuture<'static, ()>) -> Body {
        let Inner::Stream(stream) = &mut self.0 else {
            return self;
        };
        match mem::replace(&mut stream.leaves, Leaves::Replied) {
            Leaves::Replied => {}
            Leaves::AtOnce => {
                stream.leaves = Leaves::AtOnce;
                stream.endings.push(over);
            }
            Leaves::By(leave) => {
                let ends = Box::pin(async {
                    over.await;
                    leave.await;
                });
                if let Work::Tells(work) = mem::replace(&mut stream.work, Work::None) {
                    stream.work = Work::Tells(Box::pin(select(work, ends).map(drop)));
                }
            }
        }
        self
    }

    /// Keeps something as long as the stream lasts.
    pub(crate) fn holding(mut self, held: impl Any + Send) -> Body {
        if let Inner::Stream(stream) = &mut self.0 {
            stream.held.push(Box::new(held));
        }
        self
    }

    /// A response of server-sent events.
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

/// The event of a message.
fn of_frame(frame: Frame) -> Bytes {
    let text = frame.into_text();
    text.becomes(|text| lines("message", text)).into_bytes()
}

/// A message has no line ends, so one `data` line holds it.
fn lines(name: &str, text: &str) -> String {
    format!("event: {name}\ndata: {text}\n\n")
}

fn event(name: &str, text: &str) -> Bytes {
    Bytes::from(lines(name, text))
}

impl Source {
    /// The event of a message, and whether it is the last one.
    fn sent(&self, frame: Frame) -> (Bytes, bool) {
        let last = matches!(frame, Frame::Reply(..));
        match self {
            Source::Kept(reader) => reader.sent(frame),
            _ => (of_frame(frame), last),
        }
    }

    /// The next event, and whether it is the last one.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Bytes, bool)>> {
        match self {
            Source::Frames(frames) => frames.poll_recv(cx).map(|frame| {
                let frame = frame?;
                let last = matches!(frame, Frame::Reply(..));
                Some((of_frame(frame), last))
            }),
            Source::Kept(reader) => reader.poll(cx),
            Source::Session(frames) => frames
                .poll_recv(cx)
                .map(|frame| frame.map(|f| (of_frame(f), false))),
            Source::Named(events) => events
                .poll_recv(cx)
                .map(|e| e.map(|(name, text)| (event(name, &text), false))),
        }
    }
}

impl Stream {
    /// Whether the client shall come back for the rest.
    fn is_due(&mut self, cx: &mut Context<'_>) -> bool {
        let until = self.until.as_mut();
        until.is_some_and(|until| until.as_mut().poll(cx).is_ready())
    }

    /// Whether its reader may read no more.
    fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let mut endings = self.endings.iter_mut();
        if !endings.any(|ending| ending.as_mut().poll(cx).is_ready()) {
            return false;
        }
        self.endings.clear();
        (self.work, self.over) = (Work::None, true);
        self.first.clear();
        true
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.has_ended(cx) {
            return Poll::Ready(None);
        }
        if let Some(first) = self.first.pop_front() {
            return Poll::Ready(Some(first));
        }
        if self.over {
            return Poll::Ready(None);
        }
        self.work.poll(cx);
        let next = match self.source.poll(cx) {
            Poll::Ready(Some(next)) => Poll::Ready(Some(next)),
            none => match self.work.reply() {
                Some(reply) => Poll::Ready(Some(self.source.sent(reply))),
                None => none,
            },
        };
        match next {
            Poll::Ready(Some((event, last))) => {
                self.over = last;
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.is_due(cx) => {
                self.over = true;
                Poll::Ready(Some(Bytes::from_static(RETRY)))
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
            Inner::Full(text) => Poll::Ready(text.take()),
            Inner::Stream(stream) => stream.poll(cx),
        };
        data.map(|data| data.map(|data| Ok(http_body::Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Full(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Inner::Full(text) => {
                http_body::SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64))
            }
            Inner::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
