//! Public interface of the journal.

use crate::abandoned::AbandonedChain;
use crate::chain::{self, LockedChain};
use crate::checkpoints::CheckpointSchedule;
use crate::commit::{CallerCommit, JournalCommitter};
use crate::entry::{AuditEntry, AuditEvent, RejectedEntry, Urgency, ValidatedEntry};
use crate::error::Error;
use crate::failure::WRITER_ENDED;
use crate::key::MacKey;
use crate::mirror::{self, CheckpointMirror};
use crate::notice::{self, ChainDamage, DamageNotice, MAC_KEY};
use crate::options::{JournalOptions, MAX_RECORD_BYTES, MAX_WRITE_BYTES};
use crate::queue::{AppendResult, BatchLimits, EntryQueue, QueuedEntry};
use crate::record::{ChainTip, utc_us};
use crate::recover::{self, ChainTakeover, TakeoverAttempt};
use crate::segment_contents::{OpenCalls, SegmentContents};
use crate::sign::CheckpointSigner;
use crate::terms::introduce;
use crate::verify;
use crate::writer::{JournalShared, JournalWriter, MIN_QUICK_COMMITS};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// Health of an audit journal: healthy, failed or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalHealth {
    /// The journal records entries.
    Healthy,
    /// A write or a sync of the journal failed. Everything is rejected until a repair succeeds. Contains the error of
    /// the system.
    Failed(Arc<str>),
    /// The journal is closed and accepts no entries.
    Closed,
}

/// Maximum number of first records that are written in one batch with the introduction.
const MAX_UNSIGNED_START: usize = 32;

/// Initial state of a journal.
struct JournalStart {
    chain: LockedChain,
    takeover: ChainTakeover,
    /// Chains that were truncated, changed or removed since the last start, newest first.
    damage: Vec<ChainDamage>,
}

/// Audit log writer: appends hash-chained audit records to a chain of this process.
///
/// Share it in an `Arc`. Dropping it closes it after writing the queue.
#[derive(Debug)]
pub struct AuditJournal {
    dir: PathBuf,
    chain: Arc<str>,
    key: MacKey,
    public_key: Arc<str>,
    record_limit: usize,
    shared: Arc<JournalShared>,
    committer: Arc<JournalCommitter>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AuditJournal {
    /// Opens the audit journal: continues a free hash chain of the directory or starts a new one. Blocks; call it
    /// before serving.
    ///
    /// Skips a chain that another process uses, that does not verify, or that had a failed sync.
    ///
    /// # Errors
    /// [`Error::Open`] for the first file or directory that could not be prepared, [`Error::Entry`] if a field of
    /// `about` is invalid, [`Error::Failed`] if the first records could not be written.
    pub fn open(options: JournalOptions) -> Result<Self, Error> {
        let (disk, dir) = (options.disk.clone(), options.dir.clone());
        chain::make_dir(&options.dir, disk.as_ref())?;
        let key = MacKey::read_or_create(&options.dir, disk.as_ref())?;
        let signer = CheckpointSigner::read_or_create(&options.dir, disk.as_ref())?;
        let JournalStart {
            chain,
            mut takeover,
            damage,
        } = find_chain(&options, &signer.public)?;
        let exchanged = is_mac_key_exchanged(&takeover, &key.digest);
        let left = AbandonedChain::find_abandoned(&options.dir, &signer.public)?;
        takeover
            .first_entries
            .extend(left.iter().flat_map(AbandonedChain::closed_calls));
        let place = options.checkpoint_mirror.as_deref();
        let place = place.map(|place| CheckpointMirror::open(place, &chain.id, disk.as_ref()));
        let shared = Arc::new(JournalShared::default());
        let (record_limit, home) = (limit(&options), chain.dir.clone());
        let batch = BatchLimits {
            max_entries: options.max_batch_records,
            max_bytes: MAX_WRITE_BYTES,
        };
        let queue = EntryQueue::new(options.max_queue_entries, options.max_queue_bytes, batch);
        let public_key: Arc<str> = signer.public.as_str().into();
        let mut writer = JournalWriter {
            tip: takeover.tip,
            segment: takeover.segment,
            contents: takeover.contents,
            open_calls: takeover.open_calls,
            checkpoints: CheckpointSchedule::new(signer, place.transpose()?),
            shared: shared.clone(),
            chain,
            options,
            mac_key: key.digest.clone(),
            failure: None,
            unwritten_ends: Vec::new(),
            abandoned: None,
            last_batch: 0,
            commits_to_trust: MIN_QUICK_COMMITS,
        };
        if takeover.sealed {
            writer.begin_segment()?;
        }
        let chain_id = writer.chain.id.clone();
        write_start(&mut writer, takeover.first_entries)?;
        write_notices(&writer.options.dir, &chain_id, &damage, exchanged)?;
        left.iter().for_each(AbandonedChain::mark_closed);
        drop(left);
        writer.retire()?;
        writer.publish();
        let chain = writer.tip.chain.clone();
        let committer = Arc::new(JournalCommitter::new(queue, writer));
        let writing = committer.clone();
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writing.run())
            .map_err(|e| Error::open("start the writer thread for", &home, e))?;
        Ok(Self {
            dir,
            chain,
            key,
            public_key,
            record_limit,
            shared,
            committer,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// Queues an entry for the audit log at once, and resolves when its record is on disk.
    ///
    /// The entry is recorded even if the future is dropped.
    ///
    /// # Errors
    /// [`Error::Entry`] if the entry is invalid, [`Error::Overloaded`] if the queue is full, [`Error::Failed`] if the
    /// disk failed now or earlier, [`Error::Closed`] after [`close`](Self::close).
    pub fn append(&self, entry: AuditEntry) -> impl Future<Output = AppendResult> + Send + use<> {
        let appended = self.try_append(entry, Urgency::Urgent);
        async move {
            match appended {
                Ok(written) => written.await,
                Err(rejected) => Err(rejected.error),
            }
        }
    }

    /// Like [`append`](Self::append), for a caller that needs the entry again if it cannot be queued, or whose entry
    /// may wait for another one.
    #[doc(hidden)]
    pub fn try_append(
        &self,
        entry: AuditEntry,
        urgency: Urgency,
    ) -> Result<impl Future<Output = AppendResult> + Send + use<>, Box<RejectedEntry>> {
        let (waiter, mut answer) = oneshot::channel();
        let caller_writes = urgency == Urgency::Urgent && self.shared.is_disk_quick.load(Relaxed);
        let message = (entry, Some(waiter));
        self.send(message, urgency, false, caller_writes)?;
        let own = caller_writes.then(|| CallerCommit::new(self.committer.clone()));
        Ok(async move {
            if let Some(own) = own {
                // Other tasks that are ready queue their entries first, for the same commit.
                tokio::task::yield_now().await;
                match answer.try_recv() {
                    Ok(answer) => {
                        own.defuse();
                        return answer;
                    }
                    Err(_) => own.commit(),
                }
            }
            // The writer answers every waiter; it disappears only if it panicked.
            answer
                .await
                .unwrap_or_else(|_| Err(Error::Failed(WRITER_ENDED.into())))
        })
    }

    /// Queues an entry for the audit log without waiting for the disk. A crash in the next milliseconds may lose it.
    ///
    /// # Errors
    /// As [`append`](Self::append), except for failures after queueing.
    pub fn enqueue(&self, entry: AuditEntry) -> Result<(), Error> {
        self.try_enqueue(entry).map_err(|rejected| rejected.error)
    }

    /// Like [`enqueue`](Self::enqueue), for a caller that needs the entry again if it cannot be queued.
    #[doc(hidden)]
    pub fn try_enqueue(&self, entry: AuditEntry) -> Result<(), Box<RejectedEntry>> {
        self.send((entry, None), Urgency::CanWait, false, false)
    }

    /// Queues an entry for the audit log like [`enqueue`](Self::enqueue), followed at once by a signed checkpoint.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    #[doc(hidden)]
    pub fn enqueue_signed(&self, entry: AuditEntry) -> Result<(), Error> {
        self.send((entry, None), Urgency::Urgent, true, false)
            .map_err(|rejected| rejected.error)
    }

    /// Returns the keyed digest of `bytes` for audit records: HMAC-SHA-256 as 64 hexadecimal digits.
    ///
    /// Equal bytes have equal digests in all chains of the directory. Without `mac.key`, short contents cannot be
    /// guessed from their digest.
    pub fn keyed_digest(&self, bytes: &[u8]) -> String {
        self.keyed_digest_of_parts(|put| put(bytes))
    }

    /// Returns the keyed digest (HMAC-SHA-256) of all pieces that `give` passes on, which avoids concatenating them.
    pub fn keyed_digest_of_parts(&self, give: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
        self.key.mac(give)
    }

    /// Returns the id of the hash chain that the journal wrote at its start. After a failed sync, receipts name another
    /// chain.
    pub fn initial_chain(&self) -> &str {
        &self.chain
    }

    /// Returns the public key that verifies the journal's signed checkpoints, 64 hexadecimal digits.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Returns the reason why the checkpoint mirror lacks the newest checkpoint. `None` if the mirror has it or none is
    /// configured.
    pub fn mirror_error(&self) -> Option<String> {
        let place = self.shared.mirror_error.lock();
        place.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the damage to the audit log that no operator has acknowledged.
    ///
    /// # Errors
    /// The directory or a notice cannot be read.
    pub fn notices(&self) -> std::io::Result<Vec<DamageNotice>> {
        notice::notices(&self.dir)
    }

    /// Returns the health of the audit journal.
    pub fn health(&self) -> JournalHealth {
        if let Some(reason) = self.shared.failed() {
            return JournalHealth::Failed(reason);
        }
        match self.committer.queue.is_closed() {
            false => JournalHealth::Healthy,
            true => JournalHealth::Closed,
        }
    }

    /// Returns the number and the total size in bytes of the entries that wait for the disk.
    pub fn queued(&self) -> (usize, usize) {
        self.committer.queue.size()
    }

    /// Closes the journal: writes the queued entries and releases the chain. Blocks; later entries are rejected.
    pub fn close(&self) {
        self.committer.queue.close();
        let thread = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the writer has already been reported to all waiters.
            let _ = thread.join();
        }
    }

    fn send(
        &self,
        (entry, waiter): (AuditEntry, Option<oneshot::Sender<AppendResult>>),
        urgency: Urgency,
        sign: bool,
        caller_writes: bool,
    ) -> Result<(), Box<RejectedEntry>> {
        if let Some(reason) = self.shared.failed() {
            let error = Error::Failed(reason);
            return Err(Box::new(RejectedEntry { entry, error }));
        }
        let queued = QueuedEntry {
            record: ValidatedEntry::validate(entry, self.record_limit)?,
            waiter,
            sign,
        };
        let pushed = self.committer.queue.push(queued, urgency, caller_writes);
        pushed.map_err(|rejected| {
            let (queued, error) = *rejected;
            let entry = queued.record.entry;
            Box::new(RejectedEntry { entry, error })
        })
    }
}

impl Drop for AuditJournal {
    fn drop(&mut self) {
        self.close();
    }
}

/// Finds the newest free chain that can be continued, or starts a new one.
fn find_chain(options: &JournalOptions, key: &str) -> Result<JournalStart, Error> {
    let (dir, disk) = (&options.dir, options.disk.as_ref());
    let ids = chain::ids(dir).map_err(|e| Error::open("list", dir, e))?;
    let mut damage = removed_chains(options, &ids, key);
    for id in ids.iter().rev() {
        let Some(chain) = LockedChain::lock_existing(dir, id)? else {
            continue;
        };
        match recover::take_over(&chain, disk, key, options.checkpoint_mirror.as_deref())? {
            TakeoverAttempt::Ready(takeover) if damage.is_empty() => {
                return Ok(JournalStart {
                    chain,
                    takeover: *takeover,
                    damage,
                });
            }
            // A new chain records the damage; this chain remains for a later start.
            TakeoverAttempt::Ready(_) => break,
            TakeoverAttempt::Failed => {}
            TakeoverAttempt::Damaged(one) if notice::is_known(dir, id) => drop(one),
            TakeoverAttempt::Damaged(one) => damage.push(one),
        }
    }
    let chain = LockedChain::create(dir, disk)?;
    let takeover = ChainTakeover {
        tip: ChainTip::new(&chain.id, 1, None),
        segment: recover::open_first(&chain, disk)?,
        contents: SegmentContents::new(1, utc_us()),
        open_calls: OpenCalls::default(),
        sealed: false,
        torn_bytes: 0,
        first_entries: vec![genesis(damage.first())],
        mac_key: None,
    };
    Ok(JournalStart {
        chain,
        takeover,
        damage,
    })
}

/// Returns the first record of a chain; it names the damaged chain that it follows.
fn genesis(damage: Option<&ChainDamage>) -> AuditEntry {
    let genesis = AuditEntry::new(AuditEvent::GENESIS);
    match damage {
        Some(damage) => genesis
            .with("after", damage.chain.as_str())
            .with("after_seq", damage.records)
            .with("after_head", damage.head.as_str())
            .with("cause", damage.reason.as_str()),
        None => genesis,
    }
}

/// Returns the chains that are gone although the checkpoint mirror has signed checkpoints of them, newest first.
fn removed_chains(options: &JournalOptions, ids: &[String], key: &str) -> Vec<ChainDamage> {
    let Some(mirror) = &options.checkpoint_mirror else {
        return Vec::new();
    };
    // An unreadable mirror is reported when it is opened for writing.
    let lines = mirror::lines_of_others(mirror, ids).unwrap_or_default();
    let marks = verify::last_checkpoints(&lines, key);
    let gone = marks
        .into_iter()
        .rev()
        .filter(|(chain, _)| !ids.contains(chain) && !notice::is_known(&options.dir, chain));
    gone.map(|(chain, (records, head))| ChainDamage {
        chain,
        records,
        head,
        reason: format!(
            "the chain was removed; the checkpoint mirror covers {records} records of it"
        ),
    })
    .collect()
}

/// Returns whether `mac.key` differs from the key that the chain stated last.
fn is_mac_key_exchanged(takeover: &ChainTakeover, digest: &str) -> bool {
    let stated = takeover.mac_key.as_deref();
    stated.is_some_and(|stated| !digest.starts_with(stated))
}

/// Writes a notice for each finding, once the records that state it are on disk.
fn write_notices(
    dir: &Path,
    chain: &str,
    damage: &[ChainDamage],
    exchanged: bool,
) -> Result<(), Error> {
    let put = |about: &str, why: &str| {
        notice::write_notice(dir, about, why).map_err(|e| Error::open("write a notice in", dir, e))
    };
    for one in damage {
        put(
            &one.chain,
            &format!("{}; chain {chain} continues", one.reason),
        )?;
    }
    if exchanged {
        let why = "mac.key is not the key of the earlier records, so equal contents get other digests from now on";
        put(MAC_KEY, &format!("{why} (chain {chain})"))?;
    }
    Ok(())
}

/// Writes the first records of a start and a checkpoint over them.
fn write_start(writer: &mut JournalWriter, mut first: Vec<AuditEntry>) -> Result<(), Error> {
    if writer.tip.last_seq == 0
        && first
            .first()
            .is_none_or(|entry| entry.event != AuditEvent::GENESIS)
    {
        first.insert(0, AuditEntry::new(AuditEvent::GENESIS));
    }
    let mut records = Vec::new();
    for mut entry in first {
        if matches!(entry.event, AuditEvent::GENESIS | AuditEvent::RECOVERED) {
            entry = introduce(entry, &writer.options, &writer.mac_key);
            entry = entry.with("checkpoint_key", writer.checkpoints.signer.public.as_str());
        }
        records.push(ValidatedEntry::serialize(entry, limit(&writer.options))?);
    }
    // If many records follow, the introduction is signed first: it states how many records may be unsigned.
    let alone = usize::from(records.len() > MAX_UNSIGNED_START);
    let (introduction, rest) = records.split_at(alone);
    if alone > 0 {
        writer.checkpoints.forced = true;
        writer.write(introduction.iter())?;
    }
    let mut chunks = rest
        .chunks(writer.options.max_batch_records.max(1))
        .peekable();
    while let Some(chunk) = chunks.next() {
        writer.checkpoints.forced = chunks.peek().is_none();
        writer.write(chunk.iter())?;
    }
    Ok(())
}

fn limit(options: &JournalOptions) -> usize {
    options.max_record_bytes.clamp(1024, MAX_RECORD_BYTES)
}
