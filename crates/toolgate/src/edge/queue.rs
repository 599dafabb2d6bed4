//! Bounded queue of outgoing frames for one request or connection, limited by frames and bytes. Every request has one,
//! so an empty queue is one small allocation.

use super::responder::{OutgoingFrame, QueueLimits};
use std::{
    collections::VecDeque,
    future::Future,
    mem,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tokio::sync::Notify;

/// Creates a queue: its sending and its receiving half.
pub(super) fn frame_queue(limits: QueueLimits) -> (FrameSender, FrameReceiver) {
    let shared = Arc::new(FrameQueue {
        limits: QueueLimits {
            messages: limits.messages.max(1),
            bytes: limits.bytes.clamp(1, usize::MAX / 4),
        },
        state: Mutex::default(),
        senders: AtomicUsize::new(1),
        receiver_dropped: Notify::new(),
    });
    (FrameSender(shared.clone()), FrameReceiver(shared))
}

struct FrameQueue {
    limits: QueueLimits,
    state: Mutex<FrameQueueState>,
    senders: AtomicUsize,
    /// Notified when the receiver is dropped.
    receiver_dropped: Notify,
}

#[derive(Default)]
struct FrameQueueState {
    /// Queued frames, each with its size in bytes.
    frames: VecDeque<(OutgoingFrame, usize)>,
    bytes: usize,
    /// All senders are dropped.
    senders_dropped: bool,
    /// The receiver is dropped.
    receiver_dropped: bool,
    reader: Option<Waker>,
    /// Senders that wait, in order. No sender overtakes another.
    waiting_senders: VecDeque<(u64, Waker)>,
    next_number: u64,
}

impl FrameQueue {
    fn state(&self) -> MutexGuard<'_, FrameQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FrameQueueState {
    fn fits(&self, size: usize, limits: &QueueLimits) -> bool {
        self.frames.len() < limits.messages && self.bytes + size <= limits.bytes
    }

    /// Appends a frame. Returns the reader to wake.
    fn push(&mut self, frame: OutgoingFrame, size: usize) -> Option<Waker> {
        if self.frames.capacity() == 0 {
            // Most queues never hold more than one frame.
            self.frames.reserve_exact(1);
        }
        self.frames.push_back((frame, size));
        self.bytes += size;
        self.reader.take()
    }

    /// Removes the first frame and wakes the next waiting sender.
    fn pop(&mut self) -> Option<OutgoingFrame> {
        let (frame, size) = self.frames.pop_front()?;
        self.bytes -= size;
        self.wake_next();
        Some(frame)
    }

    fn wake_next(&self) {
        if let Some((_, waker)) = self.waiting_senders.front() {
            waker.wake_by_ref();
        }
    }
}

/// Sending half. After the last one is dropped, the receiver ends behind the last frame.
pub(super) struct FrameSender(Arc<FrameQueue>);

impl FrameSender {
    /// Returns the capacity of the queue in bytes.
    pub(super) fn capacity_bytes(&self) -> usize {
        self.0.limits.bytes
    }

    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.state().bytes == 0
    }

    /// Queues a frame of `size` bytes if it fits now. Drops it if the receiver is gone.
    ///
    /// # Errors
    /// Returns the frame if it does not fit.
    pub(super) fn try_send(&self, frame: OutgoingFrame, size: usize) -> Result<(), OutgoingFrame> {
        let mut state = self.0.state();
        if state.receiver_dropped {
            return Ok(());
        }
        if !state.waiting_senders.is_empty() || !state.fits(size, &self.0.limits) {
            return Err(frame);
        }
        let reader = state.push(frame, size);
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Queues a frame; waits while the queue is full. Drops the frame if the receiver is gone.
    pub(super) async fn send(&self, frame: OutgoingFrame, size: usize) {
        if let Err(frame) = self.try_send(frame, size) {
            let sending = SendFrame {
                shared: &self.0,
                frame: Some(frame),
                size: size.min(self.0.limits.bytes),
                number: None,
            };
            sending.await;
        }
    }

    /// Returns the handle that suppresses the next wake of the receiver.
    pub(super) fn wake_suppressor(&self) -> WakeSuppressor {
        WakeSuppressor(self.0.clone())
    }

    /// Waits until the receiver is dropped.
    pub(super) async fn closed(&self) {
        loop {
            let mut gone = pin!(self.0.receiver_dropped.notified());
            // Register before the check, or a drop in between would be missed.
            gone.as_mut().enable();
            if self.0.state().receiver_dropped {
                return;
            }
            gone.await;
        }
    }
}

impl Clone for FrameSender {
    fn clone(&self) -> FrameSender {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        FrameSender(self.0.clone())
    }
}

impl Drop for FrameSender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut state = self.0.state();
            state.senders_dropped = true;
            let reader = state.reader.take();
            drop(state);
            if let Some(reader) = reader {
                reader.wake();
            }
        }
    }
}

/// Suppresses the next wake of the receiver. It is not a sender: it does not keep the queue open.
pub(crate) struct WakeSuppressor(Arc<FrameQueue>);

impl WakeSuppressor {
    /// Suppresses wakes until the receiver is polled again. Call it right before that poll.
    pub(super) fn suppress(&self) {
        self.0.state().reader = None;
    }
}

/// Future that queues a frame once it fits.
struct SendFrame<'a> {
    shared: &'a FrameQueue,
    frame: Option<OutgoingFrame>,
    size: usize,
    /// Its number in the list of waiting senders.
    number: Option<u64>,
}

impl Future for SendFrame<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared;
        let mut state = shared.state();
        let first = match self.number {
            None => state.waiting_senders.is_empty(),
            Some(own) => state
                .waiting_senders
                .front()
                .is_some_and(|(first, _)| *first == own),
        };
        if state.receiver_dropped || (first && state.fits(self.size, &shared.limits)) {
            let (frame, size) = (self.frame.take(), self.size);
            let reader = match frame {
                Some(frame) if !state.receiver_dropped => state.push(frame, size),
                _ => None,
            };
            drop(state);
            if let Some(reader) = reader {
                reader.wake();
            }
            // Dropping `self` removes it from the waiting senders and wakes the next one.
            return Poll::Ready(());
        }
        match self.number {
            Some(own) => {
                let mut waiting = state.waiting_senders.iter_mut();
                if let Some((_, waker)) = waiting.find(|(number, _)| *number == own) {
                    waker.clone_from(cx.waker());
                }
            }
            None => {
                let own = state.next_number;
                state.next_number += 1;
                state.waiting_senders.push_back((own, cx.waker().clone()));
                drop(state);
                self.number = Some(own);
            }
        }
        Poll::Pending
    }
}

impl Drop for SendFrame<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.number {
            let mut state = self.shared.state();
            state.waiting_senders.retain(|(number, _)| *number != own);
            state.wake_next();
        }
    }
}

/// Receiving half. Dropping it drops all frames and releases the waiting senders.
pub(super) struct FrameReceiver(Arc<FrameQueue>);

impl FrameReceiver {
    /// Returns the next frame if one is queued.
    pub(super) fn try_recv(&mut self) -> Option<OutgoingFrame> {
        self.0.state().pop()
    }

    /// Polls for the next frame; `None` after the last one.
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<OutgoingFrame>> {
        let mut state = self.0.state();
        if let Some(frame) = state.pop() {
            return Poll::Ready(Some(frame));
        }
        if state.senders_dropped {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => state.reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for FrameReceiver {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.receiver_dropped = true;
        let frames = mem::take(&mut state.frames);
        state.bytes = 0;
        let waiting: Vec<Waker> = state
            .waiting_senders
            .iter()
            .map(|(_, w)| w.clone())
            .collect();
        drop(state);
        drop(frames);
        waiting.into_iter().for_each(Waker::wake);
        self.0.receiver_dropped.notify_waiters();
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tasks of a test")]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn limits(messages: usize, bytes: usize) -> QueueLimits {
        QueueLimits { messages, bytes }
    }

    fn frame(text: &str) -> OutgoingFrame {
        OutgoingFrame::BeforeReply(text.to_owned().into())
    }

    async fn next(receiver: &mut FrameReceiver) -> Option<String> {
        let frame = std::future::poll_fn(|cx| receiver.poll_recv(cx)).await;
        frame.map(|frame| frame.text().to_owned())
    }

    #[tokio::test]
    async fn releases_senders_in_order() {
        let (sender, mut receiver) = frame_queue(limits(9, 10));
        sender.send(frame("one"), 10).await;
        let mut large = Box::pin(sender.send(frame("large"), 8));
        let mut small = Box::pin(sender.send(frame("small"), 1));
        assert!((&mut large).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        assert!(sender.try_send(frame("other"), 0).is_err(), "others wait");
        assert_eq!(next(&mut receiver).await.as_deref(), Some("one"));
        assert!(
            (&mut small).now_or_never().is_none(),
            "the large one is before it"
        );
        assert!((&mut large).now_or_never().is_some());
        drop(large);
        assert!((&mut small).now_or_never().is_some());
        drop(small);
        drop(sender);
        assert_eq!(next(&mut receiver).await.as_deref(), Some("large"));
        assert_eq!(next(&mut receiver).await.as_deref(), Some("small"));
        assert_eq!(next(&mut receiver).await, None);
    }

    #[tokio::test]
    async fn lets_the_next_sender_pass_a_cancelled_one() {
        let (sender, mut receiver) = frame_queue(limits(1, 10));
        sender.send(frame("one"), 1).await;
        let mut first = Box::pin(sender.send(frame("first"), 1));
        assert!((&mut first).now_or_never().is_none());
        let other = sender.clone();
        let second = tokio::spawn(async move { other.send(frame("second"), 1).await });
        tokio::task::yield_now().await;
        assert_eq!(next(&mut receiver).await.as_deref(), Some("one"));
        drop(first);
        second.await.unwrap();
        drop(sender);
        assert_eq!(next(&mut receiver).await.as_deref(), Some("second"));
        assert_eq!(next(&mut receiver).await, None);
    }

    #[tokio::test]
    async fn wakes_the_reader_for_frames_and_for_the_end() {
        let (sender, mut receiver) = frame_queue(limits(1, 10));
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(text) = next(&mut receiver).await {
                all.push(text);
            }
            all
        });
        tokio::task::yield_now().await;
        for text in ["a", "b", "c"] {
            sender.send(frame(text), 1).await;
        }
        drop(sender);
        assert_eq!(reading.await.unwrap(), ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn suppresses_the_wake_before_a_poll() {
        let (sender, mut receiver) = frame_queue(limits(9, 10));
        let (waker, woken) = counting();
        let mut cx = Context::from_waker(&waker);
        assert!(receiver.poll_recv(&mut cx).is_pending());
        sender.wake_suppressor().suppress();
        assert!(sender.try_send(frame("a"), 1).is_ok());
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        assert!(receiver.poll_recv(&mut cx).is_ready());
        assert!(receiver.poll_recv(&mut cx).is_pending());
        assert!(sender.try_send(frame("b"), 1).is_ok());
        assert_eq!(woken.load(Ordering::Relaxed), 1, "from then on he is");
    }

    struct WakeCounter(Arc<AtomicUsize>);

    impl std::task::Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting() -> (Waker, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        (Arc::new(WakeCounter(woken.clone())).into(), woken)
    }

    #[tokio::test]
    async fn releases_all_senders_when_the_receiver_is_dropped() {
        let (sender, receiver) = frame_queue(limits(1, 10));
        sender.send(frame("one"), 1).await;
        let waits = |sender: FrameSender| {
            tokio::spawn(async move {
                sender.send(frame("more"), 1).await;
                sender.closed().await;
            })
        };
        let all = [waits(sender.clone()), waits(sender.clone())];
        tokio::task::yield_now().await;
        assert!(sender.closed().now_or_never().is_none());
        drop(receiver);
        for waits in all {
            waits.await.unwrap();
        }
        assert!(sender.send(frame("late"), 100).now_or_never().is_some());
    }
}
