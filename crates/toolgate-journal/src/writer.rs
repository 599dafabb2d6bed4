//! Writer thread with group commit: gathers queued entries, writes and syncs them once, and answers all waiters.

use crate::abandoned::AbandonedChain;
use crate::chain::{self, LockedChain};
use crate::checkpoints::CheckpointSchedule;
use crate::disk::OpenSegment;
use crate::entry::{AuditEntry, ValidatedEntry};
use crate::error::Error;
use crate::failure::{FailureCause, WRITER_ENDED};
use crate::options::JournalOptions;
use crate::queue::{Arrival, EntryQueue, QueuedEntry};
use crate::receipt::AuditReceipt;
use crate::record::ChainTip;
use crate::segment_contents::{OpenCalls, SegmentContents};
use crate::terms::with_terms;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

/// Number of records of a call, which a lone caller may queue at once. More of them come from several callers.
const RECORDS_OF_A_CALL: usize = 2;

/// State that the writer shares with callers.
#[derive(Debug, Default)]
pub(crate) struct JournalShared {
    /// Reason for which nothing can be recorded; set before any waiter gets it.
    failed: RwLock<Option<Arc<str>>>,
    /// Reason for which the checkpoint mirror lacks the newest checkpoint.
    pub(crate) mirror_error: Mutex<Option<String>>,
}

impl JournalShared {
    /// Returns the reason for which nothing can be recorded, if any.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        let failed = self.failed.read();
        failed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_failed(&self, reason: Option<Arc<str>>) {
        *self.failed.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

pub(crate) struct JournalWriter {
    pub(crate) tip: ChainTip,
    pub(crate) segment: Box<dyn OpenSegment>,
    /// Contents of the current segment.
    pub(crate) contents: SegmentContents,
    pub(crate) open_calls: OpenCalls,
    pub(crate) checkpoints: CheckpointSchedule,
    pub(crate) shared: Arc<JournalShared>,
    pub(crate) chain: LockedChain,
    pub(crate) options: JournalOptions,
    /// Digest of the key of the keyed digests.
    pub(crate) mac_key: String,
    /// Cause of the current failure.
    pub(crate) failure: Option<FailureCause>,
    /// Call ends that could not be written.
    pub(crate) unwritten_ends: Vec<ValidatedEntry>,
    /// Abandoned chain, until another one follows it.
    pub(crate) abandoned: Option<AbandonedChain>,
    /// Number of entries that were committed last.
    pub(crate) last_batch: usize,
}

impl JournalWriter {
    /// Runs until the queue is closed and empty.
    pub(crate) fn run(mut self, queue: &EntryQueue) {
        let _guard = PanicGuard(self.shared.clone(), queue);
        loop {
            // The time until the next checkpoint or repair attempt is due.
            let due = match self.failure {
                Some(_) => Some(self.options.repair_interval),
                None => self.checkpoints.due_in(&self.options),
            };
            match queue.wait(due) {
                Arrival::Entries(first) => {
                    let batch = self.gather(first, queue);
                    self.commit(batch);
                }
                Arrival::Nothing if self.failure.is_some() => self.repair(),
                Arrival::Nothing => self.write_checkpoint(),
                Arrival::Closed => return self.write_checkpoint(),
            }
        }
    }

    /// Writes a checkpoint over all unsigned records.
    fn write_checkpoint(&mut self) {
        if self.checkpoints.unsigned > 0 {
            self.checkpoints.forced = true;
            // The next caller gets the error of a failure.
            let _ = self.write(std::iter::empty());
            self.publish();
        }
    }

    /// Gathers the queued entries, and waits while more entries arrive. A lone caller is never delayed.
    fn gather(&mut self, mut batch: Vec<QueuedEntry>, queue: &EntryQueue) -> Vec<QueuedEntry> {
        let until = Instant::now() + self.options.max_batch_wait;
        while batch.len().max(self.last_batch) > RECORDS_OF_A_CALL {
            thread::yield_now();
            if !queue.fill(&mut batch) || Instant::now() >= until {
                break;
            }
        }
        self.last_batch = batch.len();
        batch
    }

    /// Performs a group commit: makes a batch durable with one write and answers its waiters.
    fn commit(&mut self, batch: Vec<QueuedEntry>) {
        self.checkpoints.forced |= batch.iter().any(|message| message.sign);
        let result = self.write(batch.iter().map(|message| &message.record));
        let first = result.as_ref().map_or(0, |first| *first);
        let chain = self.tip.chain.clone();
        for (seq, message) in (first..).zip(batch) {
            if let Some(waiter) = message.waiter {
                // A dropped waiter does not need the answer.
                let _ = waiter.send(result.clone().map(|_| AuditReceipt {
                    chain: chain.clone(),
                    seq,
                }));
            }
            if result.is_err() {
                self.store_call_end(message.record);
            }
        }
        // No caller waits for the checkpoint mirror.
        self.publish();
    }

    /// Writes and syncs records once, and returns the sequence number of the first. After a failure nothing is written
    /// until a repair.
    pub(crate) fn write<'a>(
        &mut self,
        records: impl Iterator<Item = &'a ValidatedEntry>,
    ) -> Result<u64, Error> {
        if self.failure.is_some() {
            let reason = self.shared.failed().unwrap_or_default();
            return Err(Error::Failed(reason));
        }
        if self.is_full() {
            self.rotate()?;
            self.retire()?;
        }
        let mut text = String::new();
        self.begin_text(&mut text)?;
        let (first, begun) = (self.tip.last_seq + 1, Instant::now());
        for record in records {
            self.tip.push(record, &mut text);
            self.open_calls.update(record, self.tip.seg);
            self.checkpoints.unsigned += 1;
        }
        if self.checkpoints.is_due(&self.options) {
            self.push_checkpoint(&mut text)?;
        }
        self.append_text(&text)?;
        if let Some(observer) = &self.options.observer {
            let records = self.tip.last_seq.saturating_sub(first - 1);
            observer.on_write(records, begun.elapsed());
        }
        Ok(first)
    }

    /// Writes and syncs text at the end of the chain.
    pub(crate) fn append_text(&mut self, text: &str) -> Result<(), Error> {
        let written = write_all(self.segment.as_mut(), text.as_bytes());
        written.map_err(|cause| self.fail(&cause))?;
        self.sync()?;
        self.contents.add(text);
        Ok(())
    }

    /// Starts a new segment with a checkpoint that signs the previous seal.
    pub(crate) fn begin_text(&mut self, text: &mut String) -> Result<(), Error> {
        if self.contents.is_empty() && text.is_empty() && self.tip.seg > 1 {
            let checkpoint = self.checkpoints.signer.checkpoint(&self.tip);
            let terms = with_terms(checkpoint, &self.options, &self.mac_key);
            self.put_checkpoint(terms, text)?;
            // Retention may remove the records before it, so its terms are signed as soon as possible.
            self.checkpoints.forced = true;
        }
        Ok(())
    }

    fn push_checkpoint(&mut self, text: &mut String) -> Result<(), Error> {
        self.check_displaced()?;
        let checkpoint = self.checkpoints.signer.checkpoint(&self.tip);
        self.put_checkpoint(checkpoint, text)
    }

    fn put_checkpoint(&mut self, checkpoint: AuditEntry, text: &mut String) -> Result<(), Error> {
        let (start, at) = (text.len(), Instant::now());
        self.tip.push_own(checkpoint, text)?;
        let line = text.get(start..).unwrap_or_default();
        self.checkpoints.record_checkpoint(line, at);
        Ok(())
    }

    /// Appends the newest checkpoint to the mirror.
    pub(crate) fn publish(&mut self) {
        let failed = self.failure.is_some();
        let told = self.checkpoints.publish(failed);
        if let Some(told) = told {
            *self
                .shared
                .mirror_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = told.err().map(|e| e.to_string());
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.segment.sync().map_err(|cause| {
            chain::mark_failed(&self.chain.dir, &cause.to_string());
            let error = self.fail(&cause);
            self.failure = Some(FailureCause::FileUnusable);
            error
        })
    }

    /// Records a failure, so that everything is rejected until a repair.
    pub(crate) fn fail(&mut self, cause: &io::Error) -> Error {
        let reason: Arc<str> = cause.to_string().into();
        self.failure = Some(FailureCause::of(cause));
        self.shared.set_failed(Some(reason.clone()));
        Error::Failed(reason)
    }
}

fn write_all(segment: &mut dyn OpenSegment, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match segment.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => rest = rest.get(length..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Guard that marks the journal as failed if the writer panics.
struct PanicGuard<'a>(Arc<JournalShared>, &'a EntryQueue);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.set_failed(Some(WRITER_ENDED.into()));
            self.1.end();
        }
    }
}
