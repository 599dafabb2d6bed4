//! Writer thread of the store: decides queued changes, commits them in one transaction, and answers.

use crate::{
    StoreError, StoreLimits,
    change::StoreChange,
    clock_row,
    database::{Database, ForeignChanges},
    directory, legacy,
    queued_change::{ChangeWaiter, PlannedChange, QueuedChange},
    shared::StoreShared,
};
use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};
use toolgate_policy::{WriteOutcome, WritePrecondition};

/// Poll interval for changes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of changes that share one commit.
const MAX_BATCH_CHANGES: usize = 256;

pub(crate) struct StoreWriter {
    database: Database,
    shared: Arc<StoreShared>,
    limits: StoreLimits,
    /// Version of the last change of any process, once it was read.
    version: Option<u64>,
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
    changes: Vec<StoreChange>,
    /// Number of added entries. Removals free no space before they are on disk.
    added_rows: usize,
}

impl StagedChanges {
    /// Returns the version of a key after this batch, if the batch changes it.
    fn row(&self, table: &str, key: &str) -> Option<Option<u64>> {
        let of = |c: &&StoreChange| c.table == table && c.key == key;
        let change = self.changes.iter().rev().find(of)?;
        Some(change.value.is_some().then_some(change.version))
    }
}

impl StoreWriter {
    pub(crate) fn open(
        dir: &Path,
        shared: Arc<StoreShared>,
        limits: StoreLimits,
    ) -> Result<StoreWriter, StoreError> {
        let held = directory::lock(dir)?;
        let mut database = Database::open(dir)?;
        legacy::migrate(dir, &mut database, &held)?;
        drop(held);
        let mut writer = StoreWriter {
            database,
            shared,
            limits,
            version: None,
            time_written: None,
        };
        writer.transaction(|_| Ok(()))?;
        Ok(writer)
    }

    pub(crate) fn path(&self) -> &Path {
        self.database.path()
    }

    /// Runs until all senders are gone and the queue is empty.
    pub(crate) fn run(mut self, inbox: &Receiver<QueuedChange>) {
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

    /// Reads the changes of other processes. An unreadable database fails the next write, which reports it.
    fn poll_changes(&mut self) {
        if self.shared.failed.get().is_none() && self.database.is_stale() {
            let _ = self.transaction(|_| Ok(()));
        }
    }

    /// Runs work in a transaction that has seen the changes of all other processes. A failure that leaves the state of
    /// the disk unknown is final.
    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut StoreWriter) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(reason) = self.shared.failed.get() {
            return Err(StoreError::Failed(reason.clone()));
        }
        let done = self.database.begin().and_then(|()| {
            let done = self.catch_up().and_then(|()| work(self));
            self.database.end(done)
        });
        if let Err(StoreError::Failed(reason)) = &done {
            // The cell is empty: this function checked, and only this thread fills it.
            let _ = self.shared.failed.set(reason.clone());
        }
        done
    }

    fn catch_up(&mut self) -> Result<(), StoreError> {
        let ForeignChanges {
            are_all,
            changes,
            version,
        } = self.database.changes_since(self.version)?;
        self.version = Some(version);
        if are_all || !changes.is_empty() {
            self.shared.publish(are_all, changes);
        }
        Ok(())
    }

    fn commit(&mut self, batch: Vec<QueuedChange>) {
        let (waiters, messages): (Vec<ChangeWaiter>, Vec<PlannedChange>) = batch
            .into_iter()
            .map(|queued| (queued.waiter, queued.planned))
            .unzip();
        let mut answers = Vec::with_capacity(waiters.len());
        let done = self.write(messages, &mut answers);
        for (at, waiter) in waiters.into_iter().enumerate() {
            let answer = match &done {
                Ok(()) => answers
                    .get(at)
                    .cloned()
                    .unwrap_or(Ok(WriteOutcome::Conflict)),
                Err(error) => Err(error.clone()),
            };
            // A dropped waiter does not need the answer.
            let _ = waiter.send(answer);
        }
    }

    /// Decides all changes of a batch and makes them durable together; a failure here fails all of them.
    fn write(
        &mut self,
        batch: Vec<PlannedChange>,
        answers: &mut Vec<Result<WriteOutcome, StoreError>>,
    ) -> Result<(), StoreError> {
        let staged = self.transaction(|writer| {
            let mut staged = StagedChanges::default();
            for planned in batch {
                answers.push(writer.decide(planned, &mut staged));
            }
            if !staged.changes.is_empty() && writer.is_time_due(CLOCK_INTERVAL) {
                writer.stage_time(&mut staged);
            }
            writer.database.write(&staged.changes)?;
            Ok(staged)
        });
        self.publish_committed(staged)
    }

    fn publish_committed(
        &mut self,
        staged: Result<StagedChanges, StoreError>,
    ) -> Result<(), StoreError> {
        let changes = staged?.changes;
        if let Some(newest) = changes.last() {
            self.version = Some(newest.version);
            self.shared.publish(false, changes);
        }
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
        let staged = self.transaction(|writer| {
            let mut staged = StagedChanges::default();
            writer.stage_time(&mut staged);
            writer.database.write(&staged.changes)?;
            Ok(staged)
        });
        let _ = self.publish_committed(staged);
    }

    /// Returns the version of the next change of a batch.
    fn next_version(&self, staged: &StagedChanges) -> u64 {
        let last = staged.changes.last().map(|change| change.version);
        last.or(self.version).unwrap_or_default() + 1
    }

    fn stage_time(&mut self, staged: &mut StagedChanges) {
        staged.changes.push(StoreChange {
            version: self.next_version(staged),
            table: clock_row::TABLE.to_owned(),
            key: clock_row::KEY.to_owned(),
            value: Some(clock_row::to_row(&self.shared.clock)),
        });
        self.time_written = Some(Instant::now());
    }

    /// Adds a change to the batch if its precondition and the limits allow it.
    fn decide(
        &self,
        planned: PlannedChange,
        staged: &mut StagedChanges,
    ) -> Result<WriteOutcome, StoreError> {
        let (table, key) = (planned.table.as_str(), planned.key.as_str());
        let (there, rows) = {
            let known = self.shared.tables();
            let there = known.row(table, key).map(|row| row.version);
            (
                staged.row(table, key).unwrap_or(there),
                known.counted_rows(),
            )
        };
        let fits = match planned.expect {
            WritePrecondition::Any => true,
            WritePrecondition::Absent => there.is_none(),
            WritePrecondition::Version(version) => there == Some(version),
        };
        if !fits {
            return Ok(WriteOutcome::Conflict);
        }
        if there.is_none() && planned.value.is_some() {
            self.limits.check_rows(rows + staged.added_rows)?;
            staged.added_rows += 1;
        }
        let version = self.next_version(staged);
        staged.changes.push(StoreChange {
            version,
            table: planned.table,
            key: planned.key,
            value: planned.value,
        });
        Ok(WriteOutcome::Done(version))
    }
}
