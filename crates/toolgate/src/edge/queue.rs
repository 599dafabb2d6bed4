//! The queue of one request or connection: frames that wait for whoever writes them, bounded by their count and their
//! bytes. Every request has one, so an empty one is one small allocation.

use super::outlet::{Frame, QueueLimits};
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

/// A new queue: the end that takes frames, and the one that gives them.
pub(super) fn queue(limits: QueueLimits) -> (Sender, Receiver) {
    let shared = Arc::new(Shared {
        limits: QueueLimits {
            messages: limits.messages.max(1),
            bytes: limits.bytes.clamp(1, usize::MAX / 4),
        },
        state: Mutex::default(),
        senders: AtomicUsize::new(1),
        gone: Notify::new(),
    });
    (Sender(shared.clone()), Receiver(shared))
}

struct Shared {
    limits: QueueLimits,
    state: Mutex<State>,
    senders: AtomicUsize,
    /// Told when the receiver is gone.
    gone: Notify,
}

#[derive(Default)]
struct State {
    /// Each with the bytes that it takes up.
    frames: VecDeque<(Frame, usize)>,
    bytes: usize,
    /// No sender is left.
    ended: bool,
    /// The receiver is gone.
    gone: bool,
    reader: Option<Waker>,
    /// Those who wait for room, the first one first. Nobody overtakes.
    waiting: VecDeque<(u64, Waker)>,
    next: u64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fits(&self, size: usize, limits: &QueueLimits) -> bool {
        self.frames.len() < limits.messages && self.bytes + size <= limits.bytes
    }

    /// Puts a frame at the end; whom to wake for it.
    fn push(&mut self, frame: Frame, size: usize) -> Option<Waker> {
        if self.frames.capacity() == 0 {
            // Most queues hold one frame in all.
            self.frames.reserve_exact(1);
        }
        self.frames.push_back((frame, size));
        self.bytes += size;
        self.reader.take()
    }

    /// Takes the first frame; who may put one there now is woken.
    fn pop(&mut self) -> Option<Frame> {
        let (frame, size) = self.frames.pop_front()?;
        self.bytes -= size;
        self.wake_next();
        Some(frame)
    }

    fn wake_next(&self) {
        if let Some((_, waker)) = self.waiting.front() {
            waker.wake_by_ref();
        }
    }
}

/// Takes frames. When the last one is dropped, the receiver hears of the end behind the last frame.
pub(super) struct Sender(Arc<Shared>);

impl Sender {
    /// The bytes that may wait.
    pub(super) fn bytes(&self) -> usize {
        self.0.limits.bytes
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.state().bytes == 0
    }

    /// Takes a frame that counts as so many bytes, if there is room at once.
    ///
    /// # Errors
    /// The frame, if there is none.
    pub(super) fn offer(&self, frame: Frame, size: usize) -> Result<(), Frame> {
        let mut state = self.0.state();
        if state.gone {
            return Ok(());
        }
        if !state.waiting.is_empty() || !state.fits(size, &self.0.limits) {
            return Err(frame);
        }
        let reader = state.push(frame, size);
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Waits for room. Where nobody reads any more the frame is dropped.
    pub(super) async fn send(&self, frame: Frame, size: usize) {
        if let Err(frame) = self.offer(frame, size) {
            let sending = Sending {
                shared: &self.0,
                frame: Some(frame),
                size: size.min(self.0.limits.bytes),
                place: None,
            };
            sending.await;
        }
    }

    /// What calls off waking the receiver.
    pub(super) fn hush(&self) -> Hush {
        Hush(self.0.clone())
    }

    /// Ends when nobody reads any more.
    pub(super) async fn closed(&self) {
        loop {
            let mut gone = pin!(self.0.gone.notified());
            // Listening comes before looking, or an end in between would be missed.
            gone.as_mut().enable();
            if self.0.state().gone {
                return;
            }
            gone.await;
        }
    }
}

impl Clone for Sender {
    fn clone(&self) -> Sender {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Sender(self.0.clone())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut state = self.0.state();
            state.ended = true;
            let reader = state.reader.take();
            drop(state);
            if let Some(reader) = reader {
                reader.wake();
            }
        }
    }
}

/// Calls off waking the receiver. Is no sender: it does not keep the queue open.
pub(crate) struct Hush(Arc<Shared>);

impl Hush {
    /// Nobody has to be woken for the next frames: whoever says so asks the receiver right after.
    pub(super) fn now(&self) {
        self.0.state().reader = None;
    }
}

/// A frame that waits for room.
struct Sending<'a> {
    shared: &'a Shared,
    frame: Option<Frame>,
    size: usize,
    /// Its number among those who wait.
    place: Option<u64>,
}

impl Future for Sending<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared;
        let mut state = shared.state();
        let first = match self.place {
            None => state.waiting.is_empty(),
            Some(own) => state
                .waiting
                .front()
                .is_some_and(|(first, _)| *first == own),
        };
        if state.gone || (first && state.fits(self.size, &shared.limits)) {
            let (frame, size) = (self.frame.take(), self.size);
            let reader = match frame {
                Some(frame) if !state.gone => state.push(frame, size),
                _ => None,
            };
            drop(state);
            if let Some(reader) = reader {
                reader.wake();
            }
            // Its place is given up when it is dropped, which wakes the next one.
            return Poll::Ready(());
        }
        match self.place {
            Some(own) => {
                let mut waiting = state.waiting.iter_mut();
                if let Some((_, waker)) = waiting.find(|(number, _)| *number == own) {
                    waker.clone_from(cx.waker());
                }
            }
            None => {
                let own = state.next;
                state.next += 1;
                state.waiting.push_back((own, cx.waker().clone()));
                drop(state);
                self.place = Some(own);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.place {
            let mut state = self.shared.state();
            state.waiting.retain(|(number, _)| *number != own);
            state.wake_next();
        }
    }
}

/// Gives frames. When it is dropped, whoever waits for room goes on, and frames are dropped.
pub(super) struct Receiver(Arc<Shared>);

impl Receiver {
    /// The next frame, where one is there already.
    pub(super) fn ready(&mut self) -> Option<Frame> {
        self.0.state().pop()
    }

    /// The next frame; `None` when there will be none any more.
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        let mut state = self.0.state();
        if let Some(frame) = state.pop() {
            return Poll::Ready(Some(frame));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => state.reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.gone = true;
        let frames = mem::take(&mut state.frames);
        state.bytes = 0;
        let waiting: Vec<Waker> = state.waiting.iter().map(|(_, w)| w.clone()).collect();
        drop(state);
        drop(frames);
        waiting.into_iter().for_each(Waker::wake);
        self.0.gone.notify_waiters();
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

    fn frame(text: &str) -> Frame {
        Frame::Before(text.to_owned().into())
    }

    async fn next(receiver: &mut Receiver) -> Option<String> {
        let frame = std::future::poll_fn(|cx| receiver.poll_recv(cx)).await;
        frame.map(|frame| frame.text().to_owned())
    }

    #[tokio::test]
    async fn who_waits_longest_is_next_and_nobody_overtakes() {
        let (sender, mut receiver) = queue(limits(9, 10));
        sender.send(frame("one"), 10).await;
        let mut large = Box::pin(sender.send(frame("large"), 8));
        let mut small = Box::pin(sender.send(frame("small"), 1));
        assert!((&mut large).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        assert!(sender.offer(frame("other"), 0).is_err(), "others wait");
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
    async fn who_gives_up_makes_room_for_the_next() {
        let (sender, mut receiver) = queue(limits(1, 10));
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
    async fn the_reader_hears_of_frames_and_of_the_end() {
        let (sender, mut receiver) = queue(limits(1, 10));
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
    async fn nobody_is_woken_for_what_he_is_about_to_ask_for() {
        let (sender, mut receiver) = queue(limits(9, 10));
        let (waker, woken) = counting();
        let mut cx = Context::from_waker(&waker);
        assert!(receiver.poll_recv(&mut cx).is_pending());
        sender.hush().now();
        assert!(sender.offer(frame("a"), 1).is_ok());
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        assert!(receiver.poll_recv(&mut cx).is_ready());
        assert!(receiver.poll_recv(&mut cx).is_pending());
        assert!(sender.offer(frame("b"), 1).is_ok());
        assert_eq!(woken.load(Ordering::Relaxed), 1, "from then on he is");
    }

    struct Count(Arc<AtomicUsize>);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting() -> (Waker, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        (Arc::new(Count(woken.clone())).into(), woken)
    }

    #[tokio::test]
    async fn all_who_wait_go_on_when_nobody_reads() {
        let (sender, receiver) = queue(limits(1, 10));
        sender.send(frame("one"), 1).await;
        let waits = |sender: Sender| {
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
