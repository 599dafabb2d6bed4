//! The one thread that writes: it gathers what waits, writes it at once, syncs once, and releases all waiters.

use crate::chain;
use crate::disk::Segment;
use crate::entry::Ready;
use crate::error::Error;
use crate::journal::Receipt;
use crate::options::LARGEST_WRITE;
use crate::record::Tip;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub(crate) type Answer = Result<Receipt, Error>;

/// An entry in the queue, and who waits for it.
pub(crate) struct Message {
    pub(crate) record: Ready,
    pub(crate) waiter: Option<oneshot::Sender<Answer>>,
}

/// What the writer and its callers both see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Set once, before any waiter learns of it.
    pub(crate) failed: OnceLock<Arc<str>>,
    /// Bytes of the entries in the queue.
    pub(crate) waiting: AtomicUsize,
}

pub(crate) struct Writer {
    pub(crate) tip: Tip,
    pub(crate) segment: Box<dyn Segment>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) batch: usize,
    pub(crate) wait: Duration,
    /// The folder of the chain.
    pub(crate) home: PathBuf,
}

impl Writer {
    /// Works until all senders are gone and the queue is empty.
    pub(crate) fn run(mut self, inbox: &Receiver<Message>) {
        let _guard = Guard(self.shared.clone());
        while let Ok(first) = inbox.recv() {
            let batch = self.gather(first, inbox);
            self.commit(batch);
        }
    }

    /// Takes what is there. Waits only while more keeps coming: a lone caller is never held up.
    fn gather(&self, first: Message, inbox: &Receiver<Message>) -> Vec<Message> {
        let until = Instant::now() + self.wait;
        let mut bytes = first.record.size();
        let mut batch = vec![first];
        let mut yielded = false;
        while batch.len() < self.batch && bytes < LARGEST_WRITE {
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
        let before = self.tip.seq;
        let result = self.write(batch.iter().map(|message| &message.record));
        for (seq, message) in (before + 1..).zip(batch) {
            if let Some(waiter) = message.waiter {
                // Whoever stopped waiting has no use for the answer.
                let _ = waiter.send(result.clone().map(|()| Receipt {
                    chain: self.tip.chain.clone(),
                    seq,
                }));
            }
        }
    }

    /// One write and one sync. After the first failure nothing is tried again.
    pub(crate) fn write<'a>(
        &mut self,
        records: impl Iterator<Item = &'a Ready>,
    ) -> Result<(), Error> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(Error::Failed(reason.clone()));
        }
        let mut text = String::new();
        for record in records {
            self.tip.push(record, &mut text);
        }
        let written = write_all(self.segment.as_mut(), text.as_bytes());
        match written.and_then(|()| self.sync()) {
            Ok(()) => Ok(()),
            Err(cause) => Err(self.fail(&cause)),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.segment.sync();
        if let Err(cause) = &synced {
            chain::mark_failed(&self.home, &cause.to_string());
        }
        synced
    }

    fn fail(&self, cause: &io::Error) -> Error {
        let reason: Arc<str> = cause.to_string().into();
        // It is empty: `write` looked, and only this thread fills it.
        let _ = self.shared.failed.set(reason.clone());
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
            let _ = self.0.failed.set("the writer stopped".into());
        }
    }
}
