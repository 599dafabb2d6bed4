//! Thread that writes to a slow or blocking destination, behind a bounded queue.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Interval at which a flush tries to enter a full queue.
const FLUSH_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Bounded queue of messages, and the thread that writes them. Sending never blocks: if the queue is full, the message
/// is dropped and counted.
pub(crate) struct BackgroundWriter<T> {
    queue: SyncSender<QueuedWork<T>>,
    dropped: Arc<AtomicU64>,
}

enum QueuedWork<T> {
    Write(T),
    /// Reports that everything before it is written.
    Flush(SyncSender<()>),
}

impl<T: Send + 'static> BackgroundWriter<T> {
    /// Starts the thread. It calls `write` with each message, and with the number of messages that were dropped since
    /// the last one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        name: &str,
        capacity: usize,
        mut write: impl FnMut(T, u64) + Send + 'static,
    ) -> io::Result<BackgroundWriter<T>> {
        let (queue, work): (_, Receiver<QueuedWork<T>>) = sync_channel(capacity);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for next in work {
                    match next {
                        QueuedWork::Write(message) => {
                            write(message, counted.swap(0, Ordering::Relaxed));
                        }
                        // It fails if the flush timed out.
                        QueuedWork::Flush(done) => drop(done.try_send(())),
                    }
                }
            })?;
        Ok(BackgroundWriter { queue, dropped })
    }

    /// Queues a message, or drops it if the queue is full.
    pub(crate) fn send(&self, message: T) {
        if self.queue.try_send(QueuedWork::Write(message)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all queued messages are written, at most for this time.
    pub(crate) fn flush(&self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let (done, is_done) = sync_channel(1);
        loop {
            match self.queue.try_send(QueuedWork::Flush(done.clone())) {
                Ok(()) => break,
                Err(TrySendError::Full(_)) if Instant::now() < end => {
                    thread::sleep(FLUSH_RETRY_INTERVAL);
                }
                Err(_) => return,
            }
        }
        let _ = is_done.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_blocked_destination_drops_and_counts_messages() {
        let (unblock, blocked) = sync_channel::<()>(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = written.clone();
        let writer = BackgroundWriter::start("test", 2, move |message: u32, dropped| {
            let _ = blocked.recv();
            log.lock().unwrap().push((message, dropped));
        })
        .unwrap();
        let since = Instant::now();
        (0..100).for_each(|n| writer.send(n));
        assert!(since.elapsed() < Duration::from_secs(5), "sending blocked");
        drop(unblock);
        writer.flush(Duration::from_secs(10));
        writer.send(100);
        writer.flush(Duration::from_secs(10));
        let written = written.lock().unwrap().clone();
        let dropped: u64 = written.iter().map(|(_, dropped)| dropped).sum();
        assert!(dropped >= 96, "{written:?}");
        assert_eq!(dropped + written.len() as u64, 101, "{written:?}");
    }
}
