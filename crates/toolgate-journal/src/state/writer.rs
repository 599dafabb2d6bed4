//! Writer thread of the state: decides queued changes, writes and syncs them once, and answers.

use super::{
    StateError, StateLimits, WriteOutcome, WritePrecondition, clock_row,
    durable::StateShared,
    file::{DirectoryLock, ForeignChanges, StateFile},
    line::StateChange,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Poll interval for changes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of changes that share one sync.
const MAX_BATCH_CHANGES: usize = 256;
/// Size in bytes from which a file is compacted, if more than half of it is obsolete.
const COMPACTION_BYTES: u64 = 1024 * 1024;

/// Queued change and its waiter.
pub(super) struct QueuedChange {
    pub(super) table: String,
    pub(super) key: String,
    pub(super) value: Option<Value>,
    pub(super) expect: WritePrecondition,
    pub(super) waiter: oneshot::Sender<Result<WriteOutcome, StateError>>,
}

type ChangeWaiter = oneshot::Sender<Result<WriteOutcome, StateError>>;
type ChangeAnswers = Vec<(ChangeWaiter, Result<WriteOutcome, StateError>)>;

pub(super) struct StateWriter {
    file: StateFile,
    shared: Arc<StateShared>,
    limits: StateLimits,
    /// Version of the last change of any process.
    version: u64,
    /// Time of the last write of the highest time, as far as this process knows; set by its first change.
    time_written: Option<Instant>,
}

/// Minimum interval between two writes of the highest time in a directory that changes.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval in a directory in which nothing else changes.
const IDLE_CLOCK_INTERVAL: Duration = Duration::from_secs(60);

/// Changes of a batch that are not on disk yet.
#[derive(Default)]
struct StagedChanges {
    /// Changes with the size of their lines in bytes.
    changes: Vec<(StateChange, u64)>,
    text: String,
    /// Number of added entries. Removals free no space before they are on disk.
    added_rows: usize,
}

impl StagedChanges {
    /// Returns the version of a key after this batch, if the batch changes it.
    fn row(&self, table: &str, key: &str) -> Option<Option<u64>> {
        let of = |c: &&StateChange| c.table == table && c.key == key;
        let mut changes = self.changes.iter().rev().map(|(change, _)| change);
        let change = changes.find(of)?;
        Some(change.value.is_some().then_some(change.version))
    }
}

impl StateWriter {
    pub(super) fn open(
        dir: PathBuf,
        shared: Arc<StateShared>,
        limits: StateLimits,
    ) -> Result<StateWriter, StateError> {
        let file = StateFile::open(dir)?;
        let mut writer = StateWriter {
            file,
            shared,
            limits,
            version: 0,
            time_written: None,
        };
        let held = writer.file.lock()?;
        writer.catch_up(&held)?;
        writer.compact(&held)?;
        Ok(writer)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.file.dir
    }

    /// Runs until all senders are gone and the queue is empty.
    pub(super) fn run(mut self, inbox: &Receiver<QueuedChange>) {
        loop {
            match inbox.recv_timeout(POLL_INTERVAL) {
                Ok(first) => {
                    let mut batch = vec![first];
                    batch.extend(inbox.try_iter().take(MAX_BATCH_CHANGES - 1));
                    self.commit(batch);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.poll_changes();
                    self.write_time(IDLE_CLOCK_INTERVAL);
                }
                Err(RecvTimeoutError::Disconnected) => return self.write_time(CLOCK_INTERVAL),
            }
        }
    }

    /// Reads the changes of other processes. An unreadable file fails the next write, which reports it.
    fn poll_changes(&mut self) {
        if self.file.is_stale()
            && let Ok(held) = self.file.lock()
        {
            let _ = self.catch_up(&held);
        }
    }

    fn catch_up(&mut self, held: &DirectoryLock) -> Result<(), StateError> {
        let ForeignChanges {
            was_replaced: anew,
            changes,
        } = self.file.catch_up(held)?;
        if anew || !changes.is_empty() {
            self.publish(anew, changes);
        }
        Ok(())
    }

    fn commit(&mut self, batch: Vec<QueuedChange>) {
        let mut answers = Vec::with_capacity(batch.len());
        let done = self.write(batch, &mut answers);
        for (waiter, answer) in answers {
            let answer = done.clone().and(answer);
            // A dropped waiter does not need the answer.
            let _ = waiter.send(answer);
        }
    }

    /// Decides all changes of a batch and makes them durable together; a failure here fails all of them.
    fn write(
        &mut self,
        batch: Vec<QueuedChange>,
        answers: &mut ChangeAnswers,
    ) -> Result<(), StateError> {
        let held = self.lock_and_catch_up();
        let mut staged = StagedChanges::default();
        for message in batch {
            let answer = self.decide(&message, &mut staged);
            if let Ok(WriteOutcome::Done(version)) = answer {
                let QueuedChange {
                    table, key, value, ..
                } = message;
                let change = StateChange {
                    version,
                    table,
                    key,
                    value,
                };
                let before = staged.text.len();
                change.append_line(&mut staged.text);
                let line = (staged.text.len() - before) as u64;
                staged.changes.push((change, line));
            }
            answers.push((message.waiter, answer));
        }
        let held = held?;
        if staged.changes.is_empty() {
            return Ok(());
        }
        if self.is_time_due(CLOCK_INTERVAL) {
            self.stage_time(&mut staged);
        }
        self.write_and_sync(&staged.text)?;
        self.publish(false, staged.changes);
        // The changes are on disk; a failed compaction is retried later.
        let _ = self.compact(&held);
        Ok(())
    }

    /// Returns whether the highest time on disk is older than an interval.
    fn is_time_due(&self, interval: Duration) -> bool {
        self.time_written.is_none_or(|at| at.elapsed() >= interval)
    }

    /// Writes the time if this process has changed something before and no process wrote the time recently. A failure
    /// also fails the next change, which reports it.
    fn write_time(&mut self, interval: Duration) {
        if self.time_written.is_none() || !self.is_time_due(interval) {
            return;
        }
        let Ok(held) = self.lock_and_catch_up() else {
            return;
        };
        let mut staged = StagedChanges::default();
        self.stage_time(&mut staged);
        if self.write_and_sync(&staged.text).is_ok() {
            self.publish(false, staged.changes);
            let _ = self.compact(&held);
        }
    }

    fn stage_time(&mut self, staged: &mut StagedChanges) {
        self.version += 1;
        let change = StateChange {
            version: self.version,
            table: clock_row::TABLE.to_owned(),
            key: clock_row::KEY.to_owned(),
            value: Some(self.shared.clock.to_row()),
        };
        change.append_line(&mut staged.text);
        let before: u64 = staged.changes.iter().map(|(_, line)| line).sum();
        let line = staged.text.len() as u64 - before;
        staged.changes.push((change, line));
        self.time_written = Some(Instant::now());
    }

    fn lock_and_catch_up(&mut self) -> Result<DirectoryLock, StateError> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(StateError::Failed(reason.clone()));
        }
        let held = self.file.lock()?;
        self.catch_up(&held)?;
        Ok(held)
    }

    fn decide(
        &mut self,
        message: &QueuedChange,
        staged: &mut StagedChanges,
    ) -> Result<WriteOutcome, StateError> {
        let (table, key) = (&message.table, &message.key);
        let (there, rows) = {
            let known = self.shared.tables();
            let there = known.row(table, key).map(|row| row.version);
            // The row of the clock does not count, since no caller added it.
            let clock = known.row(clock_row::TABLE, clock_row::KEY).is_some();
            let rows = known.row_count - usize::from(clock);
            (staged.row(table, key).unwrap_or(there), rows)
        };
        let fits = match message.expect {
            WritePrecondition::Any => true,
            WritePrecondition::Absent => there.is_none(),
            WritePrecondition::Version(version) => there == Some(version),
        };
        if !fits {
            return Ok(WriteOutcome::Conflict);
        }
        if there.is_none() && message.value.is_some() {
            if rows + staged.added_rows >= self.limits.max_rows {
                let most = self.limits.max_rows;
                return Err(StateError::Full(format!(
                    "the state already has {most} entries, which is the limit; delete entries that are no longer needed"
                )));
            }
            staged.added_rows += 1;
        }
        self.version += 1;
        Ok(WriteOutcome::Done(self.version))
    }

    /// Writes and syncs text. A full disk may accept it later; a failed sync is final.
    fn write_and_sync(&mut self, text: &str) -> Result<(), StateError> {
        if let Err(cause) = self.file.write(text) {
            if let Err(error) = self.file.truncate() {
                return Err(self.fail(&error.to_string()));
            }
            return Err(StateError::file("write the state in", self.dir(), cause));
        }
        let synced = self.file.sync(text);
        synced.map_err(|cause| self.fail(&cause.to_string()))
    }

    fn fail(&self, reason: &str) -> StateError {
        let reason: Arc<str> = reason.into();
        // The cell is empty: `lock_and_catch_up` checked, and only this thread fills it.
        let _ = self.shared.failed.set(reason.clone());
        StateError::Failed(reason)
    }

    /// Compacts the file if much of it is obsolete.
    fn compact(&mut self, held: &DirectoryLock) -> Result<(), StateError> {
        if self.file.read_bytes < COMPACTION_BYTES {
            return Ok(());
        }
        let mut text = {
            let tables = self.shared.tables();
            if tables.bytes * 2 > self.file.read_bytes {
                return Ok(());
            }
            tables.compacted()
        };
        // Versions never restart; otherwise a used version could match again.
        let (table, key) = (String::new(), String::new());
        StateChange {
            version: self.version,
            table,
            key,
            value: None,
        }
        .append_line(&mut text);
        self.file.replace(held, &text)
    }

    fn publish(&mut self, anew: bool, changes: Vec<(StateChange, u64)>) {
        let mut tables = self
            .shared
            .tables
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for (change, _) in &changes {
            self.version = self.version.max(change.version);
            if let (clock_row::TABLE, Some(time)) = (change.table.as_str(), &change.value) {
                self.shared.clock.merge_row(time);
            }
        }
        match anew {
            true => tables.replace(changes),
            false => changes
                .into_iter()
                .for_each(|(change, line)| tables.apply(change, line)),
        }
        drop(tables);
        self.shared.changed.send_modify(|n| *n += 1);
    }
}
