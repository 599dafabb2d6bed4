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
    /// Number of entries that force a checkpoint.
    signed: usize,
    /// True if a caller has written entries since the writer thread began to wait.
    has_caller_written: bool,
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
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Arrival {
    /// Entries wait for the writer thread.
    Entries,
    /// No entry arrived in time.
    Nothing,
    /// Callers have written entries, so the time until the next checkpoint may have changed.
    WrittenByCallers,
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

    /// Adds an entry, or returns it with the reason why it cannot be added. With `caller_writes`, the caller writes it, so
    /// that a polling writer thread is not woken for it.
    pub(crate) fn push(
        &self,
        entry: QueuedEntry,
        urgency: Urgency,
        caller_writes: bool,
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
        state.signed += usize::from(entry.sign);
        state.entries.push_back(entry);
        state.is_urgent |= is_urgent;
        let wakes = match state.sleep {
            Some(WriterSleep::UntilAny) => true,
            Some(WriterSleep::UntilUrgent) => is_urgent && !caller_writes,
            None => false,
        };
        self.wake_if(state, wakes);
        Ok(())
    }

    /// Wakes the writer thread, if it sleeps: the caller does not write its urgent entry.
    pub(crate) fn wake_writer(&self) {
        let state = self.lock();
        let wakes = state.sleep.is_some();
        self.wake_if(state, wakes);
    }

    fn wake_if(&self, mut state: MutexGuard<'_, QueueState>, wakes: bool) {
        if wakes {
            state.sleep = None;
        }
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Waits until the writer thread has to write entries, at most for `time` if there is one.
    pub(crate) fn wait(&self, time: Option<Duration>) -> Arrival {
        let (begin, mut state) = (Instant::now(), self.lock());
        loop {
            let waited = begin.elapsed();
            let is_over = time.is_some_and(|time| waited >= time);
            let has_entries = !state.entries.is_empty();
            let is_late = waited >= MAX_LINGER_TIME || is_over || state.is_closed;
            if has_entries && (state.is_urgent || is_late) {
                return Arrival::Entries;
            }
            if state.is_closed || state.has_writer_ended {
                return Arrival::Closed;
            }
            if is_over {
                return Arrival::Nothing;
            }
            if waited >= POLLING_TIME && std::mem::take(&mut state.has_caller_written) {
                return Arrival::WrittenByCallers;
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

    /// Adds the entries that have arrived to the batch of a caller, unless one of them forces a checkpoint. Returns whether
    /// there was one.
    pub(crate) fn fill_for_caller(&self, batch: &mut Vec<QueuedEntry>) -> bool {
        let mut state = self.lock();
        if state.signed > 0 {
            return false;
        }
        state.has_caller_written = true;
        state.move_to(batch, self.batch)
    }

    /// Returns whether an urgent entry waits.
    pub(crate) fn is_urgent(&self) -> bool {
        self.lock().is_urgent
    }

    /// Returns the number of waiting entries.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
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
        drop(state);
        self.wake.notify_one();
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
            self.signed -= usize::from(entry.sign);
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

    fn entry(sign: bool) -> QueuedEntry {
        QueuedEntry {
            record: ValidatedEntry::serialize(AuditEntry::new(AuditEvent::DENY), 4096).unwrap(),
            waiter: None,
            sign,
        }
    }

    /// Returns whether an entry wakes a writer that sleeps like this.
    fn wakes(sleep: WriterSleep, urgency: Urgency, caller_writes: bool) -> bool {
        let queue = queue();
        queue.lock().sleep = Some(sleep);
        queue.push(entry(false), urgency, caller_writes).unwrap();
        queue.lock().sleep.is_none()
    }

    #[test]
    fn only_an_urgent_entry_wakes_a_polling_writer() {
        assert!(wakes(WriterSleep::UntilUrgent, Urgency::Urgent, false));
        assert!(!wakes(WriterSleep::UntilUrgent, Urgency::CanWait, false));
        assert!(!wakes(WriterSleep::UntilUrgent, Urgency::Urgent, true));
    }

    #[test]
    fn every_entry_wakes_a_sleeping_writer() {
        assert!(wakes(WriterSleep::UntilAny, Urgency::Urgent, false));
        assert!(wakes(WriterSleep::UntilAny, Urgency::CanWait, false));
        assert!(wakes(WriterSleep::UntilAny, Urgency::Urgent, true));
    }

    #[test]
    fn a_caller_takes_no_entry_that_forces_a_checkpoint() {
        let queue = queue();
        let mut batch = Vec::new();
        queue.push(entry(false), Urgency::Urgent, true).unwrap();
        queue.push(entry(true), Urgency::Urgent, false).unwrap();
        assert!(!queue.fill_for_caller(&mut batch));
        assert!(queue.fill(&mut batch) && batch.len() == 2);
        queue.push(entry(false), Urgency::Urgent, true).unwrap();
        assert!(queue.fill_for_caller(&mut batch) && batch.len() == 3);
    }

    #[test]
    fn the_writer_learns_that_callers_have_written() {
        let queue = queue();
        queue.push(entry(false), Urgency::Urgent, true).unwrap();
        assert!(queue.fill_for_caller(&mut Vec::new()));
        assert_eq!(queue.wait(None), Arrival::WrittenByCallers);
    }
}
