//! Group commit: gathers queued entries, writes and syncs them once, and answers all waiters.

use crate::abandoned::AbandonedChain;
use crate::chain::{self, LockedChain};
use crate::checkpoints::CheckpointSchedule;
use crate::disk::OpenSegment;
use crate::entry::{AuditEntry, ValidatedEntry};
use crate::error::Error;
use crate::failure::FailureCause;
use crate::options::JournalOptions;
use crate::queue::{EntryQueue, QueuedEntry};
use crate::receipt::AuditReceipt;
use crate::record::ChainTip;
use crate::segment_contents::{OpenCalls, SegmentContents};
use crate::terms::with_terms;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// Number of records of a call, which a lone caller may queue at once. More of them come from several callers.
const RECORDS_OF_A_CALL: usize = 2;

/// Longest time of a commit that a caller performs itself. A disk that syncs is slower; a file system in memory and a
/// disk with a protected cache are faster.
const MAX_QUICK_COMMIT_TIME: Duration = Duration::from_micros(100);

/// Number of quick commits in a row after which callers perform their commits themselves.
pub(crate) const MIN_QUICK_COMMITS: u32 = 16;

/// Time of a commit after which the disk counts as one that stalls.
const STALL_TIME: Duration = Duration::from_millis(10);

/// The same number after a stall, so that a disk that stalls now and then blocks few callers.
const MIN_QUICK_COMMITS_AFTER_STALL: u32 = 128;

/// State that the writer shares with callers.
#[derive(Debug, Default)]
pub(crate) struct JournalShared {
    /// True if the last commits took less time than the switch to another thread and back is worth.
    pub(crate) is_disk_quick: AtomicBool,
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
    /// Number of quick commits after which callers perform their commits themselves.
    pub(crate) commits_to_trust: u32,
}

impl JournalWriter {
    /// Returns the time until the next checkpoint or repair attempt is due.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        match self.failure {
            Some(_) => Some(self.options.repair_interval),
            None => self.checkpoints.due_in(&self.options),
        }
    }

    /// Returns whether a commit of so many entries only writes and syncs them: no rotation, checkpoint or repair is due.
    pub(crate) fn is_plain_commit(&self, entries: usize) -> bool {
        self.failure.is_none()
            && !self.is_full()
            && !self.checkpoints.is_due_after(entries as u64, &self.options)
    }

    /// Writes a checkpoint over all unsigned records.
    pub(crate) fn write_checkpoint(&mut self) {
        if self.checkpoints.unsigned > 0 {
            self.checkpoints.forced = true;
            // The next caller gets the error of a failure.
            let _ = self.write(std::iter::empty());
            self.publish();
        }
    }

    /// Gathers the queued entries, and waits while more entries arrive. A lone caller is never delayed.
    pub(crate) fn gather(&mut self, queue: &EntryQueue) -> Vec<QueuedEntry> {
        let mut batch = Vec::with_capacity(queue.len());
        queue.fill(&mut batch);
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
    pub(crate) fn commit(&mut self, batch: Vec<QueuedEntry>) {
        self.checkpoints.forced |= batch.iter().any(|message| message.sign);
        let begin = Instant::now();
        let result = self.write(batch.iter().map(|message| &message.record));
        self.note_commit_time(begin.elapsed());
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

    /// Decides by the time of a commit who performs the next ones.
    fn note_commit_time(&mut self, time: Duration) {
        if time <= MAX_QUICK_COMMIT_TIME {
            self.commits_to_trust = self.commits_to_trust.saturating_sub(1);
        } else {
            let least = match time < STALL_TIME {
                true => MIN_QUICK_COMMITS,
                false => MIN_QUICK_COMMITS_AFTER_STALL,
            };
            self.commits_to_trust = self.commits_to_trust.max(least);
        }
        let is_quick = self.commits_to_trust == 0;
        self.shared.is_disk_quick.store(is_quick, Relaxed);
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
