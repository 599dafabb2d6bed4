//! Outgoing queue of one request or connection: notifications, and the reply as the last frame.

use super::queue::{self, FrameReceiver, FrameSender, WakeSuppressor};
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use toolgate_core::{EventSink, ReporterEvent};
use toolgate_policy::{RateQuota, TokenBucket};
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    memory_budget::{BudgetExceeded, BudgetScope, MemoryPermit},
    message,
    method::notifications,
};

/// Longest message that is not counted against the memory budget while the queue is empty, in bytes.
const MAX_UNCOUNTED_BYTES: u64 = 4 << 10;

/// Limits of the queue of outgoing messages of one request or connection to a slow client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct QueueLimits {
    /// Maximum number of queued messages; 256.
    pub messages: usize,
    /// Maximum total size of the queued messages, in bytes; 1 MiB. A longer message is queued alone.
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> QueueLimits {
        QueueLimits {
            messages: 256,
            bytes: 1 << 20,
        }
    }
}

/// One outgoing JSON-RPC message.
#[derive(Debug)]
pub(crate) enum OutgoingFrame {
    /// A notification or request before the reply.
    BeforeReply(OutgoingText),
    /// The reply, the last frame of a request. If it is an error, with its code.
    Reply(OutgoingText, Option<i64>),
}

impl OutgoingFrame {
    pub(crate) fn text(&self) -> &str {
        let (OutgoingFrame::BeforeReply(text) | OutgoingFrame::Reply(text, _)) = self;
        text.as_ref()
    }

    /// Returns the text, with its memory permit.
    pub(crate) fn into_text(self) -> OutgoingText {
        let (OutgoingFrame::BeforeReply(text) | OutgoingFrame::Reply(text, _)) = self;
        text
    }

    fn permit_mut(&mut self) -> &mut MemoryPermit {
        let (OutgoingFrame::BeforeReply(text) | OutgoingFrame::Reply(text, _)) = self;
        &mut text.permit
    }
}

/// Outgoing text, with the memory permit that it holds until it is written.
#[derive(Debug)]
pub(crate) struct OutgoingText {
    text: String,
    permit: MemoryPermit,
}

impl OutgoingText {
    /// Replaces the text under the same memory permit.
    pub(crate) fn map_text(self, make: impl FnOnce(&str) -> String) -> OutgoingText {
        OutgoingText {
            text: make(&self.text),
            permit: self.permit,
        }
    }

    /// Returns the text, and the memory permit to hold until it is written.
    pub(crate) fn into_parts(self) -> (String, MemoryPermit) {
        (self.text, self.permit)
    }

    /// Converts the text to bytes, which keep the memory permit until they are dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.permit.is_empty() {
            true => Bytes::from(self.text),
            false => Bytes::from_owner(self),
        }
    }
}

impl From<String> for OutgoingText {
    fn from(text: String) -> OutgoingText {
        OutgoingText {
            text,
            permit: MemoryPermit::default(),
        }
    }
}

impl AsRef<str> for OutgoingText {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl AsRef<[u8]> for OutgoingText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Sending half of an outgoing queue.
#[derive(Clone)]
pub(crate) struct Responder {
    frames: FrameSender,
    budget_scope: BudgetScope,
}

/// Receiving half of an outgoing queue.
pub(crate) struct OutgoingFrames(FrameReceiver);

impl Responder {
    /// Creates an outgoing queue. A message counts against the memory account unless it is short and the queue is
    /// empty.
    pub(crate) fn new(limits: QueueLimits, account: BudgetScope) -> (Responder, OutgoingFrames) {
        let (frames, out) = queue::frame_queue(limits);
        (
            Responder {
                frames,
                budget_scope: account,
            },
            OutgoingFrames(out),
        )
    }

    /// Returns the size of a text in the queue, at most the size of the queue.
    fn queued_bytes(&self, text: &str) -> usize {
        text.len().min(self.frames.capacity_bytes())
    }

    /// Returns the memory permit for a text; short texts in an empty queue need none.
    ///
    /// # Errors
    /// The budget is used up.
    fn acquire_permit(&self, text: &str) -> Result<MemoryPermit, BudgetExceeded> {
        let mut claim = self.budget_scope.permit();
        match text.len() as u64 {
            short if short <= MAX_UNCOUNTED_BYTES && self.frames.is_empty() => Ok(claim),
            counted => claim.cover_any_size(counted).map(|()| claim),
        }
    }

    /// Queues a frame; waits while the queue is full. Drops the frame if the reader is gone.
    pub(crate) async fn send(&self, frame: OutgoingFrame) {
        let (frame, size) = self.with_permit_and_size(frame);
        if let Err(frame) = self.frames.try_send(frame, size) {
            // Rare, so boxed to keep the future of a request small.
            Box::pin(self.frames.send(frame, size)).await;
        }
    }

    /// Returns the frame with its memory permit, to be written after the queue: for the reply.
    pub(crate) fn with_permit(&self, frame: OutgoingFrame) -> OutgoingFrame {
        self.with_permit_and_size(frame).0
    }

    /// Returns the frame with its memory permit, and its size in the queue.
    fn with_permit_and_size(&self, mut frame: OutgoingFrame) -> (OutgoingFrame, usize) {
        if let Ok(claim) = self.acquire_permit(frame.text()) {
            let size = self.queued_bytes(frame.text());
            *frame.permit_mut() = claim;
            return (frame, size);
        }
        // Beyond the budget: the message that caused this text is already counted, so send it, but only into an empty
        // queue.
        let mut claim = self.budget_scope.permit();
        if frame.text().len() as u64 > MAX_UNCOUNTED_BYTES {
            claim.cover_over_budget(frame.text().len() as u64);
        }
        *frame.permit_mut() = claim;
        (frame, self.frames.capacity_bytes())
    }

    /// Returns the handle that suppresses the next wake of the reader.
    pub(crate) fn wake_suppressor(&self) -> WakeSuppressor {
        self.frames.wake_suppressor()
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        self.frames.closed().await;
    }

    /// Queues a frame, or drops it if the queue is full.
    pub(crate) fn try_send(&self, text: String) {
        let size = self.queued_bytes(&text);
        if let Ok(claim) = self.acquire_permit(&text) {
            let _ = self.frames.try_send(
                OutgoingFrame::BeforeReply(OutgoingText {
                    text,
                    permit: claim,
                }),
                size,
            );
        }
    }
}

impl OutgoingFrames {
    /// Returns the next frame, or `None` after the last one.
    pub(crate) async fn recv(&mut self) -> Option<OutgoingFrame> {
        poll_fn(|cx| self.0.poll_recv(cx)).await
    }

    /// Returns the next frame if one is queued.
    pub(crate) fn try_recv(&mut self) -> Option<OutgoingFrame> {
        self.0.try_recv()
    }

    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<OutgoingFrame>> {
        self.0.poll_recv(cx)
    }
}

/// Sends the events of one call as notifications, until the call completes.
pub(crate) struct CallReport {
    responder: Responder,
    dialect: &'static Dialect,
    progress_token: Option<Json>,
    log_level: Option<u8>,
    progress: Mutex<SentProgress>,
    is_closed: Arc<AtomicBool>,
}

impl CallReport {
    pub(crate) fn new(
        responder: Responder,
        dialect: &'static Dialect,
        token: Option<Json>,
        log_level: Option<u8>,
    ) -> CallReport {
        CallReport {
            responder,
            dialect,
            progress_token: token,
            log_level,
            progress: Mutex::new(SentProgress::new()),
            is_closed: Arc::default(),
        }
    }

    /// Returns the lowest log level that the client requested.
    pub(crate) fn min_log_level(&self) -> Option<&'static str> {
        let rank = self.log_level?;
        notifications::LEVELS.get(usize::from(rank)).copied()
    }

    /// Returns the guard that ends the events: progress after the reply is dropped.
    pub(crate) fn close_on_drop(&self) -> CallReportGuard {
        CallReportGuard(self.is_closed.clone())
    }

    /// Returns whether to send this progress: it increases, which the protocol requires, and the rate limit permits it.
    fn admits(&self, progress: f64) -> bool {
        let mut sent = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress > sent.last && sent.take_token(progress)
    }
}

/// Rate limit of the progress notifications of one call: 100 at once, and 50 each second after that.
const PROGRESS_QUOTA: RateQuota = RateQuota {
    count: 100,
    per: Duration::from_secs(2),
};

/// The progress that a call has sent: its last value, and the token bucket of the rate limit.
struct SentProgress {
    last: f64,
    bucket: TokenBucket,
}

impl SentProgress {
    fn new() -> SentProgress {
        SentProgress {
            last: f64::NEG_INFINITY,
            bucket: TokenBucket::new(PROGRESS_QUOTA, Instant::now()),
        }
    }

    /// Takes a token and stores the value; returns false if the bucket is empty.
    fn take_token(&mut self, progress: f64) -> bool {
        let taken = self.bucket.take(Instant::now()).is_ok();
        if taken {
            self.last = progress;
        }
        taken
    }
}

impl EventSink for CallReport {
    fn report(&self, event: ReporterEvent) {
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        match (event, &self.progress_token, self.log_level) {
            (ReporterEvent::Progress(mut progress), Some(token), _)
                if self.admits(progress.progress) =>
            {
                if !self.dialect.progress_message {
                    progress.message = None;
                }
                self.responder.try_send(message::notification(
                    notifications::PROGRESS,
                    Some(&progress.json(token)),
                ));
            }
            (ReporterEvent::Log(log), _, Some(least))
                if log_level_rank(&log.level).is_some_and(|l| l >= least) =>
            {
                let mut o = ObjectWriter::new();
                o.str("level", &log.level);
                if let Some(logger) = &log.logger {
                    o.str("logger", logger);
                }
                o.raw("data", &log.data);
                self.responder.try_send(message::notification(
                    notifications::MESSAGE,
                    Some(&o.finish()),
                ));
            }
            _ => {}
        }
    }
}

/// Stops the events of a call when it is dropped.
pub(crate) struct CallReportGuard(Arc<AtomicBool>);

impl Drop for CallReportGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Returns the rank of a log level, or `None` if the level is unknown.
pub(crate) fn log_level_rank(word: &str) -> Option<u8> {
    let found = notifications::LEVELS.iter().position(|l| *l == word);
    found.map(|rank| rank as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn frame(bytes: usize) -> OutgoingFrame {
        OutgoingFrame::BeforeReply("x".repeat(bytes).into())
    }

    fn sent(responder: &Responder, bytes: usize) -> bool {
        responder.send(frame(bytes)).now_or_never().is_some()
    }

    #[test]
    fn waits_above_the_message_limit() {
        let limits = QueueLimits {
            messages: 2,
            bytes: 100,
        };
        let (responder, mut frames) = Responder::new(limits, BudgetScope::default());
        assert!(sent(&responder, 1) && sent(&responder, 1) && !sent(&responder, 1));
        assert!(frames.try_recv().is_some());
        assert!(sent(&responder, 1));
    }

    #[test]
    fn waits_or_drops_above_the_byte_limit() {
        let limits = QueueLimits {
            messages: 9,
            bytes: 100,
        };
        let (responder, mut frames) = Responder::new(limits, BudgetScope::default());
        assert!(sent(&responder, 60) && sent(&responder, 40) && !sent(&responder, 1));
        responder.try_send("x".to_owned());
        assert!(frames.try_recv().is_some());
        responder.try_send("y".repeat(60));
        assert!(!sent(&responder, 1));
        let left = std::iter::from_fn(|| frames.try_recv()).map(|f| f.text().len());
        assert_eq!(left.collect::<Vec<_>>(), [40, 60]);
    }

    /// A long reply is never dropped: it waits until the queue is empty.
    #[test]
    fn queues_an_oversized_message_alone() {
        let limits = QueueLimits {
            messages: 9,
            bytes: 100,
        };
        let (responder, mut frames) = Responder::new(limits, BudgetScope::default());
        assert!(sent(&responder, 1) && !sent(&responder, 1000));
        assert!(frames.try_recv().is_some());
        assert!(sent(&responder, 1000) && !sent(&responder, 1));
        assert_eq!(frames.try_recv().map(|f| f.text().len()), Some(1000));
    }

    #[test]
    fn does_not_wait_for_a_dropped_reader() {
        let limits = QueueLimits {
            messages: 9,
            bytes: 10,
        };
        let (responder, frames) = Responder::new(limits, BudgetScope::default());
        assert!(sent(&responder, 10));
        let waiting = responder.clone();
        let mut waits = Box::pin(async move { waiting.send(frame(10)).await });
        assert!(waits.as_mut().now_or_never().is_none());
        drop(frames);
        assert!(waits.now_or_never().is_some());
    }
}
