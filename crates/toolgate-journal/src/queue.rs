//! Queue between the callers and the writer thread.
//!
//! An urgent entry, whose caller waits for the disk, wakes the writer. The other entries wait for the next urgent one,
//! so that one write and one sync serve them all. They wait for [`MAX_LINGER_TIME`] at most.

use crate::entry::{Urgency, ValidatedEntry};
use crate::error::Error;
use crate::failure::WRITER_ENDED;
use crate::receipt::AuditReceipt;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub(crate) type AppendResult = Result<AuditReceipt, Error>;

/// Queued entry and its waiter.
#[derive(Debug)]
pub(crate) struct QueuedEntry {
    pub(crate) record: ValidatedEntry,
    pub(crate) waiter: Option<oneshot::Sender<AppendResult>>,
    /// Forces a checkpoint after the entry.
    pub(crate) sign: bool,
}

/// Maximum linger time: the time for which an entry that is not urgent waits for others.
const MAX_LINGER_TIME: Duration = Duration::from_millis(10);

/// Time for which the writer polls an empty queue before it sleeps until an entry wakes it.
const POLLING_TIME: Duration = Duration::from_secs(1);

/// Bounded queue of entries for the writer thread.
#[derive(Debug)]
pub(crate) struct EntryQueue {
    state: Mutex<QueueState>,
    wake: Condvar,
    max_entries: usize,
    max_bytes: usize,
    batch: BatchLimits,
}

/// Limits of the entries that the writer takes at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub(crate) max_entries: usize,
    pub(crate) max_bytes: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    entries: VecDeque<QueuedEntry>,
    /// Total size of the entries.
    bytes: usize,
    /// True if an entry is urgent.
    is_urgent: bool,
    /// Sleep of the writer, if it sleeps.
    sleep: Option<WriterSleep>,
    is_closed: bool,
    has_writer_ended: bool,
}

/// Sleep of the writer thread, by what ends it early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WriterSleep {
    /// An urgent entry.
    UntilUrgent,
    /// Any entry.
    UntilAny,
}

/// Result of a wait for entries.
pub(crate) enum Arrival {
    /// At least one entry arrived.
    Entries(Vec<QueuedEntry>),
    /// No entry arrived in time.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

impl EntryQueue {
    /// Creates an empty queue that holds a maximum number of entries and of bytes.
    pub(crate) fn new(max_entries: usize, max_bytes: usize, batch: BatchLimits) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            max_entries: max_entries.max(1),
            max_bytes,
            batch,
        }
    }

    /// Returns the number and the total size in bytes of the queued entries.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    /// Adds an entry, or returns it with the reason why it cannot be added.
    pub(crate) fn push(
        &self,
        entry: QueuedEntry,
        urgency: Urgency,
    ) -> Result<(), Box<(QueuedEntry, Error)>> {
        let (size, is_urgent) = (entry.record.size(), urgency == Urgency::Urgent);
        let mut state = self.lock();
        let refusal = if state.has_writer_ended {
            Some(Error::Failed(WRITER_ENDED.into()))
        } else if state.is_closed {
            Some(Error::Closed)
        } else if state.entries.len() >= self.max_entries || state.bytes + size > self.max_bytes {
            Some(Error::Overloaded)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return Err(Box::new((entry, refusal)));
        }
        state.bytes += size;
        state.entries.push_back(entry);
        state.is_urgent |= is_urgent;
        let wakes = match state.sleep {
            Some(WriterSleep::UntilAny) => true,
            Some(WriterSleep::UntilUrgent) => is_urgent,
            None => false,
        };
        if wakes {
            state.sleep = None;
        }
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits for entries, at most for `time` if there is one, and takes the next batch of them.
    pub(crate) fn wait(&self, time: Option<Duration>) -> Arrival {
        let (begin, mut state) = (Instant::now(), self.lock());
        loop {
            let waited = begin.elapsed();
            let is_over = time.is_some_and(|time| waited >= time);
            let has_entries = !state.entries.is_empty();
            let is_late = waited >= MAX_LINGER_TIME || is_over || state.is_closed;
            if has_entries && (state.is_urgent || is_late) {
                let mut batch = Vec::with_capacity(state.entries.len());
                state.move_to(&mut batch, self.batch);
                return Arrival::Entries(batch);
            }
            if state.is_closed {
                return Arrival::Closed;
            }
            if is_over {
                return Arrival::Nothing;
            }
            let left = time.map(|time| time.saturating_sub(waited));
            state = match has_entries || waited < POLLING_TIME {
                true => {
                    let short = left.unwrap_or(MAX_LINGER_TIME).min(MAX_LINGER_TIME);
                    self.sleep(state, WriterSleep::UntilUrgent, Some(short))
                }
                false => self.sleep(state, WriterSleep::UntilAny, left),
            };
        }
    }

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        sleep: WriterSleep,
        time: Option<Duration>,
    ) -> MutexGuard<'a, QueueState> {
        state.sleep = Some(sleep);
        let mut state = match time {
            Some(time) => {
                let woken = self.wake.wait_timeout(state, time);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let woken = self.wake.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.sleep = None;
        state
    }

    /// Adds the entries that have arrived to a batch, up to its limits. Returns whether there was one.
    pub(crate) fn fill(&self, batch: &mut Vec<QueuedEntry>) -> bool {
        self.lock().move_to(batch, self.batch)
    }

    /// Accepts no more entries. The writer ends after those that are queued.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Returns whether the queue was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Rejects all further entries, and drops those that nobody will write.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.has_writer_ended = true;
        state.entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Moves entries to a batch, up to its limits. Returns whether there was one.
    fn move_to(&mut self, batch: &mut Vec<QueuedEntry>, limits: BatchLimits) -> bool {
        let before = batch.len();
        let mut bytes: usize = batch.iter().map(|entry| entry.record.size()).sum();
        while batch.len() < limits.max_entries.max(1) && bytes < limits.max_bytes {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            let size = entry.record.size();
            self.bytes = self.bytes.saturating_sub(size);
            bytes += size;
            batch.push(entry);
        }
        self.is_urgent &= !self.entries.is_empty();
        batch.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{AuditEntry, AuditEvent};

    fn queue() -> EntryQueue {
        let batch = BatchLimits {
            max_entries: 8,
            max_bytes: 1 << 20,
        };
        EntryQueue::new(8, 1 << 20, batch)
    }

    /// Returns whether an entry wakes a writer that sleeps like this.
    fn wakes(sleep: WriterSleep, urgency: Urgency) -> bool {
        let queue = queue();
        queue.lock().sleep = Some(sleep);
        let entry = QueuedEntry {
            record: ValidatedEntry::serialize(AuditEntry::new(AuditEvent::DENY), 4096).unwrap(),
            waiter: None,
            sign: false,
        };
        queue.push(entry, urgency).unwrap();
        queue.lock().sleep.is_none()
    }

    #[test]
    fn only_an_urgent_entry_wakes_a_polling_writer() {
        assert!(wakes(WriterSleep::UntilUrgent, Urgency::Urgent));
        assert!(!wakes(WriterSleep::UntilUrgent, Urgency::CanWait));
    }

    #[test]
    fn every_entry_wakes_a_sleeping_writer() {
        assert!(wakes(WriterSleep::UntilAny, Urgency::Urgent));
        assert!(wakes(WriterSleep::UntilAny, Urgency::CanWait));
    }
}
