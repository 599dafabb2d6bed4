//! Threads that commit: the writer thread of the journal, and callers.
//!
//! On a slow disk, the writer thread commits, so that a sync blocks no caller. If the disk answers at once, the switch to
//! that thread and back would take longer than the commit. A caller then commits its entry itself, with all entries that
//! other callers have queued until then.

use crate::failure::WRITER_ENDED;
use crate::queue::{Arrival, EntryQueue};
use crate::writer::{JournalShared, JournalWriter};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

/// Maximum number of commits that a caller performs in a row.
const MAX_COMMITS_OF_A_CALLER: u32 = 8;

/// Writer of a journal and the queue before it.
pub(crate) struct JournalCommitter {
    pub(crate) queue: EntryQueue,
    shared: Arc<JournalShared>,
    /// `None` after the journal was closed.
    writer: Mutex<Option<JournalWriter>>,
}

impl fmt::Debug for JournalCommitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JournalCommitter")
            .field(&self.queue)
            .finish()
    }
}

impl JournalCommitter {
    pub(crate) fn new(queue: EntryQueue, writer: JournalWriter) -> Self {
        Self {
            queue,
            shared: writer.shared.clone(),
            writer: Mutex::new(Some(writer)),
        }
    }

    /// Runs the writer thread until the queue is closed and empty. Then it releases the chain.
    pub(crate) fn run(&self) {
        let guard = PanicGuard(self);
        loop {
            let due = self.lock().as_ref().and_then(JournalWriter::due_in);
            let arrival = self.queue.wait(due);
            let mut locked = self.lock();
            if self.writer.is_poisoned() {
                // A caller panicked in the middle of a commit, so that nobody knows what the chain holds.
                *locked = None;
            }
            let Some(writer) = locked.as_mut() else {
                break;
            };
            match arrival {
                Arrival::Entries => {
                    let batch = writer.gather(&self.queue);
                    // A caller may have written the entries in the meantime.
                    if !batch.is_empty() {
                        writer.commit(batch);
                    }
                }
                Arrival::Nothing if writer.failure.is_some() => writer.repair(),
                Arrival::Nothing => writer.write_checkpoint(),
                Arrival::WrittenByCallers => {}
                Arrival::Closed => {
                    writer.write_checkpoint();
                    *locked = None;
                    break;
                }
            }
        }
        drop(guard);
    }

    /// Commits the queued entries in the thread of a caller, unless the writer thread has more to do than that.
    pub(crate) fn commit_in_caller(&self) {
        let guard = PanicGuard(self);
        let mut commits = 0;
        // Entries that were queued while this caller held the writer are written as well: their callers did not get it.
        while self.commit_once() && self.queue.is_urgent() {
            commits += 1;
            // The caller has work of its own, and must not wait for a disk that has become slow.
            if commits == MAX_COMMITS_OF_A_CALLER || !self.shared.is_disk_quick.load(Relaxed) {
                self.queue.wake_writer();
                break;
            }
        }
        drop(guard);
    }

    /// Returns false if another thread writes the entries.
    fn commit_once(&self) -> bool {
        let mut locked = match self.writer.try_lock() {
            Ok(locked) => locked,
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(_)) => return self.leave_to_thread(),
        };
        let Some(writer) = locked.as_mut() else {
            return false;
        };
        let waiting = self.queue.len();
        if waiting == 0 {
            // Another thread has taken the entries, and answers their callers.
            return false;
        }
        let mut batch = Vec::with_capacity(waiting);
        if !writer.is_plain_commit(waiting) || !self.queue.fill_for_caller(&mut batch) {
            drop(locked);
            return self.leave_to_thread();
        }
        writer.commit(batch);
        true
    }

    fn leave_to_thread(&self) -> bool {
        self.queue.wake_writer();
        false
    }

    fn lock(&self) -> MutexGuard<'_, Option<JournalWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that marks the journal as failed if the writer panics.
struct PanicGuard<'a>(&'a JournalCommitter);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.shared.set_failed(Some(WRITER_ENDED.into()));
            self.0.queue.end();
        }
    }
}

/// Entry that its caller has to commit. Dropping the value leaves that to the writer thread.
pub(crate) struct CallerCommit(Option<Arc<JournalCommitter>>);

impl CallerCommit {
    pub(crate) fn new(committer: Arc<JournalCommitter>) -> Self {
        Self(Some(committer))
    }

    pub(crate) fn commit(mut self) {
        if let Some(committer) = self.0.take() {
            committer.commit_in_caller();
        }
    }

    /// Another thread has committed the entry.
    pub(crate) fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for CallerCommit {
    fn drop(&mut self) {
        if let Some(committer) = &self.0 {
            committer.queue.wake_writer();
        }
    }
}
