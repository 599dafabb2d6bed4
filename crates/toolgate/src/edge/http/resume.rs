//! Resumable streams of a session: a client that lost a stream resumes it with `Last-Event-ID`.
//!
//! A stream outlives its connection. While no client reads it, its messages are still received, so that no call waits
//! for a lost reader. The last of them are buffered. An event id consists of the number of the stream and the position
//! of the event.

use super::session_store::SessionEvents;
use crate::edge::responder::{OutgoingFrame, OutgoingFrames};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, task::AbortHandle};

/// Largest number of buffered streams of one session. Above it, the stream that was disconnected first is removed.
const MAX_STREAMS_PER_SESSION: usize = 256;

/// Limits on the events that are stored so that clients can resume an SSE stream (`Last-Event-ID`).
///
/// Specification: [resumability of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResumeLimits {
    /// Time for which an SSE stream can be resumed after its connection was lost or its last message was sent; 5
    /// minutes. Zero disables resumption.
    pub keep_for: Duration,
    /// Maximum size of the stored events of one session, in bytes; 1 MiB. A longer message is not buffered.
    pub session_bytes: usize,
    /// Maximum size of the stored events of all sessions, in bytes; 32 MiB.
    pub total_bytes: usize,
}

impl Default for ResumeLimits {
    fn default() -> ResumeLimits {
        ResumeLimits {
            keep_for: Duration::from_secs(5 * 60),
            session_bytes: 1 << 20,
            total_bytes: 32 << 20,
        }
    }
}

/// Event store of one session: its resumable streams, for the resumption of a lost connection.
pub(crate) struct ResumableStreams {
    limits: ResumeLimits,
    /// Buffered bytes of all sessions.
    total_bytes: Arc<AtomicUsize>,
    streams: Mutex<ResumableStreamTable>,
    /// Store for the events, beside the buffer.
    events: Option<Box<SessionEvents>>,
}

#[derive(Default)]
struct ResumableStreamTable {
    last_number: u64,
    bytes: usize,
    by_number: BTreeMap<u64, ResumableStream>,
}

struct ResumableStream {
    /// Frames that are not yet sent; `None` after the reply.
    frames: Option<OutgoingFrames>,
    /// Buffered last events, without a gap.
    sent: VecDeque<Bytes>,
    /// Position of the next event, beginning with 1.
    next_position: u64,
    /// Number of the connection that may read. A resuming connection takes over from the one before.
    reader_number: u64,
    /// Time at which the connection was lost.
    disconnected_at: Option<Instant>,
    /// Task that receives frames while no connection reads the stream.
    drain: Option<AbortHandle>,
}

/// Reader of a stream for one connection. When it is dropped, the stream waits to be resumed.
pub(crate) struct ResumableReader {
    streams: Arc<ResumableStreams>,
    number: u64,
    reader_number: u64,
}

impl ResumableStreams {
    pub(crate) fn new(limits: ResumeLimits, all: Arc<AtomicUsize>) -> ResumableStreams {
        ResumableStreams {
            limits,
            total_bytes: all,
            streams: Mutex::default(),
            events: None,
        }
    }

    /// Sets the store of the events. `restores` is how often the session was restored. Streams get numbers that no
    /// earlier process used.
    pub(crate) fn with_event_store(
        mut self,
        events: Option<SessionEvents>,
        restores: u32,
    ) -> ResumableStreams {
        self.events = events.map(Box::new);
        self.streams().last_number = u64::from(restores) << 32;
        self
    }

    /// Returns the events of an earlier process after an event, as one text; `None` if there are none.
    pub(crate) async fn stored_after(&self, event: &str) -> Option<Vec<u8>> {
        let (stream, position) = parse_event_id(event)?;
        let events = self.events.as_ref()?;
        let is_known = self.streams().by_number.contains_key(&stream);
        match is_known {
            true => None,
            false => events.load_after(stream, position).await,
        }
    }

    /// Adds a stream, and returns the reader for its connection.
    pub(crate) fn add(self: &Arc<Self>, frames: OutgoingFrames) -> ResumableReader {
        self.sweep();
        let mut streams = self.streams();
        if streams.by_number.len() >= MAX_STREAMS_PER_SESSION {
            let left = streams
                .by_number
                .iter()
                .filter_map(|(n, s)| Some((s.disconnected_at?, *n)));
            let longest = left.min().map(|(_, number)| number);
            longest
                .into_iter()
                .for_each(|n| self.remove(&mut streams, n));
        }
        streams.last_number += 1;
        let number = streams.last_number;
        streams.by_number.insert(
            number,
            ResumableStream {
                frames: Some(frames),
                sent: VecDeque::new(),
                next_position: 1,
                reader_number: 0,
                disconnected_at: None,
                drain: None,
            },
        );
        ResumableReader {
            streams: self.clone(),
            number,
            reader_number: 0,
        }
    }

    /// Resumes the stream after an event. Returns its reader and the missed events, or `None` if the stream or one of
    /// them is not buffered.
    pub(crate) fn resume(
        self: &Arc<Self>,
        after: &str,
    ) -> Option<(ResumableReader, VecDeque<Bytes>)> {
        self.sweep();
        let (number, place) = parse_event_id(after)?;
        let mut streams = self.streams();
        let stream = streams.by_number.get_mut(&number)?;
        let gone = stream.next_position - 1 - stream.sent.len() as u64;
        if place < gone || place >= stream.next_position {
            return None;
        }
        stream.take_over();
        stream.disconnected_at = None;
        let skipped = usize::try_from(place - gone).ok()?;
        let missed = stream.sent.iter().skip(skipped).cloned().collect();
        let reader = ResumableReader {
            streams: self.clone(),
            number,
            reader_number: stream.reader_number,
        };
        Some((reader, missed))
    }

    /// Removes streams that no client resumed in time.
    pub(crate) fn sweep(&self) {
        let mut streams = self.streams();
        let old = |stream: &ResumableStream| {
            stream
                .disconnected_at
                .is_some_and(|l| l.elapsed() >= self.limits.keep_for)
        };
        let old = streams
            .by_number
            .iter()
            .filter(|(_, s)| old(s))
            .map(|(n, _)| *n);
        for number in old.collect::<Vec<_>>() {
            self.remove(&mut streams, number);
        }
    }

    /// Polls for the next event of a stream, and whether it is the last. `None` at its end, and if another connection
    /// took over.
    fn poll(&self, number: u64, turn: u64, cx: &mut Context<'_>) -> Poll<Option<(Bytes, bool)>> {
        let mut streams = self.streams();
        let Some(stream) = streams.by_number.get_mut(&number) else {
            return Poll::Ready(None);
        };
        let Some(frames) = stream
            .frames
            .as_mut()
            .filter(|_| stream.reader_number == turn)
        else {
            return Poll::Ready(None);
        };
        let Some(frame) = ready!(frames.poll_recv(cx)) else {
            // The call was cancelled: there is no reply to resume for.
            self.remove(&mut streams, number);
            return Poll::Ready(None);
        };
        Poll::Ready(Some(self.buffer_event(&mut streams, number, frame)))
    }

    /// Makes the event of a message and buffers it. Returns it, and whether it is the last.
    fn buffer_event(
        &self,
        streams: &mut ResumableStreamTable,
        number: u64,
        frame: OutgoingFrame,
    ) -> (Bytes, bool) {
        let last = matches!(frame, OutgoingFrame::Reply(..));
        let Some(stream) = streams.by_number.get_mut(&number) else {
            return (Bytes::new(), last);
        };
        let place = stream.next_position;
        let event = |text: &str| format!("id: {number}-{place}\nevent: message\ndata: {text}\n\n");
        let event = frame.into_text().map_text(event).into_bytes();
        if let Some(events) = &self.events {
            events.append(number, place, event.clone());
        }
        stream.next_position += 1;
        if last {
            stream.frames = None;
        }
        let kept = self.reserve(streams, event.len());
        if let Some(stream) = streams.by_number.get_mut(&number) {
            if kept {
                stream.sent.push_back(event.clone());
            } else {
                // Events before a gap cannot be resumed.
                let freed = stream.sent.drain(..).map(|e| e.len()).sum();
                self.release(streams, freed);
            }
        }
        (event, last)
    }

    /// Frees space for an event; the oldest events of the session are evicted. Returns false if it does not fit.
    fn reserve(&self, streams: &mut ResumableStreamTable, length: usize) -> bool {
        if length > self.limits.session_bytes {
            return false;
        }
        while streams.bytes + length > self.limits.session_bytes {
            let oldest = streams
                .by_number
                .values_mut()
                .find_map(|s| s.sent.pop_front());
            let Some(oldest) = oldest else { return false };
            self.release(streams, oldest.len());
        }
        let most = self.limits.total_bytes.saturating_sub(length);
        let add = |all: usize| (all <= most).then_some(all + length);
        let added = self
            .total_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        if added.is_ok() {
            streams.bytes += length;
        }
        added.is_ok()
    }

    fn release(&self, streams: &mut ResumableStreamTable, bytes: usize) {
        streams.bytes -= bytes;
        self.total_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn remove(&self, streams: &mut ResumableStreamTable, number: u64) {
        let Some(stream) = streams.by_number.remove(&number) else {
            return;
        };
        if let Some(drain) = &stream.drain {
            drain.abort();
        }
        self.release(streams, stream.sent.iter().map(Bytes::len).sum());
    }

    fn streams(&self) -> MutexGuard<'_, ResumableStreamTable> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses an event id: the number of its stream, and its position.
fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, position) = id.split_once('-')?;
    Some((stream.parse().ok()?, position.parse().ok()?))
}

impl Drop for ResumableStreams {
    fn drop(&mut self) {
        let bytes = self.streams().bytes;
        self.total_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl ResumableStream {
    fn take_over(&mut self) {
        self.reader_number += 1;
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
    }
}

impl ResumableReader {
    /// Polls for the next event, and whether it is the last.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Bytes, bool)>> {
        self.streams.poll(self.number, self.reader_number, cx)
    }

    /// Returns the event for a message that was already received, and whether it is the last.
    pub(crate) fn to_event(&self, frame: OutgoingFrame) -> (Bytes, bool) {
        let mut streams = self.streams.streams();
        self.streams.buffer_event(&mut streams, self.number, frame)
    }

    /// Returns the first event, without data: its id lets a client resume before any other event.
    pub(crate) fn priming_event(&self) -> Bytes {
        Bytes::from(format!("id: {}-0\ndata: \n\n", self.number))
    }

    /// Returns whether the stream has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let streams = self.streams.streams();
        let stream = streams.by_number.get(&self.number);
        stream.is_none_or(|stream| stream.frames.is_none())
    }
}

impl Drop for ResumableReader {
    fn drop(&mut self) {
        let (kept, number) = (&self.streams, self.number);
        let mut streams = kept.streams();
        let Some(stream) = streams.by_number.get_mut(&number) else {
            return;
        };
        if stream.reader_number != self.reader_number {
            return;
        }
        stream.disconnected_at = Some(Instant::now());
        if stream.frames.is_none() && !kept.limits.keep_for.is_zero() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) if !kept.limits.keep_for.is_zero() => {
                stream.take_over();
                let (turn, kept) = (stream.reader_number, kept.clone());
                #[allow(
                    clippy::disallowed_methods,
                    reason = "it ends with the stream, and the stream aborts it"
                )]
                let drain = runtime.spawn(poll_fn(move |cx| {
                    loop {
                        match ready!(kept.poll(number, turn, cx)) {
                            Some((_, false)) => {}
                            _ => return Poll::Ready(()),
                        }
                    }
                }));
                stream.drain = Some(drain.abort_handle());
            }
            _ => kept.remove(&mut streams, number),
        }
    }
}
