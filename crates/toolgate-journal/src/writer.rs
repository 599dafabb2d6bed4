//! The one thread that writes: it gathers what waits, writes it at once, syncs once, and releases all waiters.

use crate::chain::{self, Chain};
use crate::contents::{Contents, OpenCalls};
use crate::disk::Segment;
use crate::entry::{Entry, Ready};
use crate::error::Error;
use crate::journal::Receipt;
use crate::left::Left;
use crate::marks::Marks;
use crate::options::{LARGEST_WRITE, Options};
use crate::record::Tip;
use crate::repair::Trouble;
use crate::terms::with_terms;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;
use tokio::sync::oneshot;

pub(crate) type Answer = Result<Receipt, Error>;

/// An entry in the queue, and who waits for it.
pub(crate) struct Message {
    pub(crate) record: Ready,
    pub(crate) waiter: Option<oneshot::Sender<Answer>>,
    /// A checkpoint has to follow.
    pub(crate) sign: bool,
}

/// What the writer and its callers both see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Why nothing can be recorded now; set before any waiter learns of it.
    failed: RwLock<Option<Arc<str>>>,
    /// Bytes of the entries in the queue.
    pub(crate) waiting: AtomicUsize,
    /// Why the second place did not take the newest checkpoint.
    pub(crate) place: Mutex<Option<String>>,
}

impl Shared {
    /// Why nothing can be recorded now.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        let failed = self.failed.read();
        failed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_failed(&self, reason: Option<Arc<str>>) {
        *self.failed.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

pub(crate) struct Writer {
    pub(crate) tip: Tip,
    pub(crate) segment: Box<dyn Segment>,
    /// The segment's contents so far.
    pub(crate) file: Contents,
    pub(crate) open: OpenCalls,
    pub(crate) marks: Marks,
    pub(crate) shared: Arc<Shared>,
    pub(crate) chain: Chain,
    pub(crate) options: Options,
    /// The digest of the key of the keyed digests.
    pub(crate) mac_key: String,
    /// Why nothing is written now.
    pub(crate) trouble: Option<Trouble>,
    /// Ends of calls that could not be written.
    pub(crate) owed: Vec<Ready>,
    /// A chain that ended for good, as long as none follows it.
    pub(crate) left: Option<Left>,
}

impl Writer {
    /// Works until all senders are gone and the queue is empty.
    pub(crate) fn run(mut self, inbox: &Receiver<Message>) {
        let _guard = Guard(self.shared.clone());
        loop {
            match self.next(inbox) {
                Ok(first) => {
                    let batch = self.gather(first, inbox);
                    self.commit(batch);
                }
                Err(RecvTimeoutError::Timeout) if self.trouble.is_some() => self.repair(),
                Err(RecvTimeoutError::Timeout) => self.mark(),
                Err(RecvTimeoutError::Disconnected) => return self.mark(),
            }
        }
    }

    /// Waits for an entry, but not longer than until a checkpoint is due.
    fn next(&self, inbox: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        let due = match self.trouble {
            Some(_) => Some(self.options.retry),
            None => self.marks.due_in(&self.options),
        };
        match due {
            Some(time) => inbox.recv_timeout(time),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// A checkpoint over what has none yet.
    fn mark(&mut self) {
        if self.marks.unsigned > 0 {
            self.marks.wanted = true;
            // Whoever asks next learns of a failure.
            let _ = self.write(std::iter::empty());
            self.publish();
        }
    }

    /// Takes what is there. Waits only while more keeps coming: a lone caller is never held up.
    fn gather(&self, first: Message, inbox: &Receiver<Message>) -> Vec<Message> {
        let until = Instant::now() + self.options.wait;
        let mut bytes = first.record.size();
        let mut batch = vec![first];
        let mut yielded = false;
        while batch.len() < self.options.batch.max(1) && bytes < LARGEST_WRITE {
            match inbox.try_recv() {
                Ok(message) => {
                    bytes += message.record.size();
                    batch.push(message);
                    yielded = false;
                }
                Err(TryRecvError::Empty) if !yielded && Instant::now() < until => {
                    thread::yield_now();
                    yielded = true;
                }
                Err(_) => break,
            }
        }
        batch
    }

    /// Makes a batch durable and tells everybody who waits.
    fn commit(&mut self, batch: Vec<Message>) {
        let size: usize = batch.iter().map(|message| message.record.size()).sum();
        self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
        self.marks.wanted |= batch.iter().any(|message| message.sign);
        let result = self.write(batch.iter().map(|message| &message.record));
        let first = result.as_ref().map_or(0, |first| *first);
        let chain = self.tip.chain.clone();
        for (seq, message) in (first..).zip(batch) {
            if let Some(waiter) = message.waiter {
                // Whoever stopped waiting has no use for the answer.
                let _ = waiter.send(result.clone().map(|_| Receipt {
                    chain: chain.clone(),
                    seq,
                }));
            }
            if result.is_err() {
                self.owe(message.record);
            }
        }
        // Nobody has to wait for the second place.
        self.publish();
    }

    /// One write and one sync; says the number of the first record. After a failure nothing is tried before a
    /// repair.
    pub(crate) fn write<'a>(
        &mut self,
        records: impl Iterator<Item = &'a Ready>,
    ) -> Result<u64, Error> {
        if self.trouble.is_some() {
            let reason = self.shared.failed().unwrap_or_default();
            return Err(Error::Failed(reason));
        }
        if self.is_full() {
            self.rotate()?;
            self.retire()?;
        }
        let mut text = String::new();
        self.begin_text(&mut text)?;
        let first = self.tip.seq + 1;
        for record in records {
            self.tip.push(record, &mut text);
            self.open.follow(record, self.tip.seg);
            self.marks.unsigned += 1;
        }
        if self.marks.is_due(&self.options) {
            self.push_checkpoint(&mut text)?;
        }
        self.put(&text).map(|()| first)
    }

    /// Writes and syncs text that ends the chain from here on.
    pub(crate) fn put(&mut self, text: &str) -> Result<(), Error> {
        let written = write_all(self.segment.as_mut(), text.as_bytes());
        written.map_err(|cause| self.fail(&cause))?;
        self.sync()?;
        self.file.add(text);
        Ok(())
    }

    /// The first record of a segment signs the seal of the one before.
    pub(crate) fn begin_text(&mut self, text: &mut String) -> Result<(), Error> {
        if self.file.is_empty() && text.is_empty() && self.tip.seg > 1 {
            let checkpoint = self.marks.signer.checkpoint(&self.tip);
            let terms = with_terms(checkpoint, &self.options, &self.mac_key);
            self.put_checkpoint(terms, text)?;
            // Retention may take the records before it, so what it states is signed as soon as possible.
            self.marks.wanted = true;
        }
        Ok(())
    }

    fn push_checkpoint(&mut self, text: &mut String) -> Result<(), Error> {
        self.check_in_place()?;
        let checkpoint = self.marks.signer.checkpoint(&self.tip);
        self.put_checkpoint(checkpoint, text)
    }

    fn put_checkpoint(&mut self, checkpoint: Entry, text: &mut String) -> Result<(), Error> {
        let (start, at) = (text.len(), Instant::now());
        self.tip.push_own(checkpoint, text)?;
        let line = text.get(start..).unwrap_or_default();
        self.marks.signed(line, at);
        Ok(())
    }

    /// Tells the second place of the newest checkpoint.
    pub(crate) fn publish(&mut self) {
        let failed = self.trouble.is_some();
        let told = self.marks.publish(failed);
        if let Some(told) = told {
            *self
                .shared
                .place
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = told.err().map(|e| e.to_string());
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.segment.sync().map_err(|cause| {
            chain::mark_failed(&self.chain.dir, &cause.to_string());
            let error = self.fail(&cause);
            self.trouble = Some(Trouble::Final);
            error
        })
    }

    /// From here on everything is refused, until a repair.
    pub(crate) fn fail(&mut self, cause: &io::Error) -> Error {
        let reason: Arc<str> = cause.to_string().into();
        self.trouble = Some(Trouble::of(cause));
        self.shared.set_failed(Some(reason.clone()));
        Error::Failed(reason)
    }
}

fn write_all(segment: &mut dyn Segment, mut rest: &[u8]) -> io::Result<()> {
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

/// Marks the journal as failed should the writer panic.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.set_failed(Some("the writer stopped".into()));
        }
    }
}
