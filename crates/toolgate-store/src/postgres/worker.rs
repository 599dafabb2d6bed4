//! Thread that owns the connection: it writes queued changes, follows those of other gateways, and reconnects.

use super::{PostgresOptions, PostgresShared, messages::MessageQueues, session::Session};
use crate::{
    StoreError, clock_row,
    queued_change::{PlannedChange, QueuedChange},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{
    sync::{Arc, mpsc::SyncSender},
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::mpsc;
use toolgate_policy::{WriteOutcome, WritePrecondition};

/// Interval of the polls, which find changes whose notice was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between the starts of two attempts to connect.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of attempts at the same time. A network that lost the first ones may let the next one through.
const MAX_ATTEMPTS: usize = 6;
/// Maximum time of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of changes in one transaction.
const MAX_BATCH_CHANGES: usize = 256;
/// Minimum interval between two writes of the highest time.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum difference between the clocks of this machine and of the database.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// Result of the first connection.
type FirstConnection = SyncSender<Result<(), StoreError>>;

pub(super) struct PostgresWorker {
    options: PostgresOptions,
    shared: Arc<PostgresShared>,
    messages: MessageQueues,
    /// Version of the last change that the copy has.
    version: Option<u64>,
    time_written: Option<Instant>,
}

impl PostgresWorker {
    pub(super) fn new(
        options: PostgresOptions,
        shared: Arc<PostgresShared>,
        messages: MessageQueues,
    ) -> PostgresWorker {
        PostgresWorker {
            options,
            shared,
            messages,
            version: None,
            time_written: None,
        }
    }

    /// Runs until all senders are gone and the queue is empty.
    pub(super) fn run(mut self, mut inbox: mpsc::Receiver<QueuedChange>, opened: &FirstConnection) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let reason = format!("its thread cannot be started: {error}");
                let _ = opened.send(Err(StoreError::Away(reason.into())));
                return;
            }
        };
        runtime.block_on(async {
            let first = Session::open(
                &self.options.address,
                self.options.space,
                self.options.timeout.max(ATTEMPT_TIMEOUT),
                Some(self.messages.incoming.clone()),
            );
            let session = match first.await {
                Ok(mut session) => self.catch_up(&mut session).await.map(|()| session),
                Err(error) => Err(error),
            };
            match session {
                Ok(session) => {
                    // The opener waits for this.
                    let _ = opened.send(Ok(()));
                    self.follow(session, &mut inbox).await;
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
            }
        });
        // A name may still be looked up in a thread of the runtime.
        runtime.shutdown_background();
    }

    /// Serves the queue, over one connection after the other.
    async fn follow(&mut self, mut session: Session, inbox: &mut mpsc::Receiver<QueuedChange>) {
        loop {
            let Err(error) = self.serve(&mut session, inbox).await else {
                return;
            };
            drop(session);
            self.set_away(&error);
            session = match self.reconnect(inbox).await {
                Some(session) => session,
                None => return,
            };
        }
    }

    fn set_away(&self, error: &StoreError) {
        let reason = match error {
            StoreError::Away(reason) => reason.clone(),
            error => error.detail().into(),
        };
        self.shared.status.set_away(&reason);
    }

    /// Serves the queue over a connection until it fails. Returns `Ok` once all senders are gone.
    async fn serve(
        &mut self,
        session: &mut Session,
        inbox: &mut mpsc::Receiver<QueuedChange>,
    ) -> Result<(), StoreError> {
        self.deliver_outbox(session).await?;
        let mut next_poll = tokio::time::Instant::now() + POLL_INTERVAL;
        loop {
            tokio::select! {
                // An outage is found by the poll even if changes keep coming.
                biased;
                () = tokio::time::sleep_until(next_poll) => {
                    next_poll = tokio::time::Instant::now() + POLL_INTERVAL;
                    self.poll(session).await?;
                    if !self.shared.outbox.waiting().is_empty() {
                        self.deliver_outbox(session).await?;
                    }
                }
                () = session.notified() => self.catch_up(session).await?,
                first = inbox.recv() => {
                    let Some(first) = first else {
                        return Ok(());
                    };
                    let mut batch = vec![first];
                    while batch.len() < MAX_BATCH_CHANGES && let Ok(more) = inbox.try_recv() {
                        batch.push(more);
                    }
                    self.commit(session, batch).await?;
                }
                Some(message) = self.messages.outgoing.recv() => {
                    let mut batch = vec![message];
                    while batch.len() < MAX_BATCH_CHANGES
                        && let Ok(more) = self.messages.outgoing.try_recv()
                    {
                        batch.push(more);
                    }
                    self.within_timeout(session.send_messages(&batch)).await?;
                }
            }
            if session.is_closed() {
                return Err(self.options.address.away("the connection was closed"));
            }
        }
    }

    /// Connects again. Queued changes fail at once meanwhile. Returns `None` once all senders are gone.
    async fn reconnect(&mut self, inbox: &mut mpsc::Receiver<QueuedChange>) -> Option<Session> {
        let mut attempts = FuturesUnordered::new();
        let mut next_attempt = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next_attempt) => {
                    next_attempt = tokio::time::Instant::now() + RECONNECT_INTERVAL;
                    if attempts.len() < MAX_ATTEMPTS {
                        let options = &self.options;
                        let (address, space) = (options.address.clone(), options.space);
                        let incoming = Some(self.messages.incoming.clone());
                        attempts.push(async move {
                            Session::open(&address, space, ATTEMPT_TIMEOUT, incoming).await
                        });
                    }
                }
                Some(attempt) = attempts.next() => {
                    let opened = match attempt {
                        Ok(mut session) => self.catch_up(&mut session).await.map(|()| session),
                        Err(error) => Err(error),
                    };
                    match opened {
                        Ok(session) => return Some(session),
                        Err(error) => self.set_away(&error),
                    }
                }
                queued = inbox.recv() => {
                    let outage = self.shared.status.outage();
                    let error = StoreError::Away(outage.unwrap_or_else(|| "it was away".into()));
                    // A dropped waiter does not need the answer.
                    let _ = queued?.waiter.send(Err(error));
                }
                // Messages are not worth a delay.
                Some(_) = self.messages.outgoing.recv() => {}
            }
        }
    }

    /// Limits the time of a request to the database.
    async fn within_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let timeout = self.options.timeout;
        match tokio::time::timeout(timeout, work).await {
            Ok(done) => done,
            Err(_) => Err(self
                .options
                .address
                .away(format!("no answer within {} ms", timeout.as_millis()))),
        }
    }

    /// Finds changes whose notice was lost, and checks the clock.
    async fn poll(&mut self, session: &mut Session) -> Result<(), StoreError> {
        let asked = Instant::now();
        let (version, time) = self.within_timeout(session.poll()).await?;
        self.check_clock(time)?;
        if self.version != Some(version) {
            return self.catch_up(session).await;
        }
        self.shared.status.set_fresh(asked);
        Ok(())
    }

    /// Entries expire by the clock, so the clocks of all gateways have to agree.
    fn check_clock(&self, time: SystemTime) -> Result<(), StoreError> {
        let ours = SystemTime::now();
        let difference = ours
            .duration_since(time)
            .or_else(|_| time.duration_since(ours))
            .unwrap_or_default();
        match difference > MAX_CLOCK_DIFFERENCE {
            true => Err(self.options.address.away(format!(
                "the clock of this machine differs from that of the database by {} s; correct it (NTP)",
                difference.as_secs()
            ))),
            false => {
                self.shared.copy.clock.raise(time);
                Ok(())
            }
        }
    }

    /// Reads what the copy does not have yet.
    async fn catch_up(&mut self, session: &mut Session) -> Result<(), StoreError> {
        let asked = Instant::now();
        let read = self
            .within_timeout(session.changes_since(self.version))
            .await?;
        let known = self.version.unwrap_or_default();
        if read.version < known {
            // The database was set back to an earlier state. A version that was used must not come again, since it
            // could match a precondition.
            tracing::warn!(
                from = known,
                to = read.version,
                "the shared store went back to an earlier state; used approvals may be valid again"
            );
            self.within_timeout(session.raise_version(known)).await?;
        }
        self.version = Some(read.version.max(known));
        if read.are_all || !read.changes.is_empty() {
            self.shared.publish(read.are_all, read.changes);
        }
        self.shared.status.set_fresh(asked);
        Ok(())
    }

    /// Stores a batch and answers its waiters, after the copy has it.
    async fn commit(
        &mut self,
        session: &mut Session,
        batch: Vec<QueuedChange>,
    ) -> Result<(), StoreError> {
        let mut rows = self.shared.copy.tables().counted_rows();
        let (mut wanted, mut waiters) = (Vec::new(), Vec::new());
        for queued in batch {
            let QueuedChange {
                planned: change,
                waiter,
            } = queued;
            let is_new = change.value.is_some()
                && self
                    .shared
                    .copy
                    .tables()
                    .row(&change.table, &change.key)
                    .is_none();
            if is_new && let Err(full) = self.options.limits.check_rows(rows) {
                let _ = waiter.send(Err(full));
                continue;
            }
            rows += usize::from(is_new);
            wanted.push(change);
            waiters.push(waiter);
        }
        let stored = self.store(session, wanted).await;
        match &stored {
            Ok(outcomes) => {
                for (waiter, outcome) in waiters.into_iter().zip(outcomes) {
                    let _ = waiter.send(Ok(*outcome));
                }
            }
            Err(error) => {
                // Whoever tries again must find the outage.
                self.set_away(error);
                for waiter in waiters {
                    let _ = waiter.send(Err(error.clone()));
                }
            }
        }
        stored.map(drop)
    }

    /// Stores changes in one transaction, and updates the copy.
    async fn store(
        &mut self,
        session: &mut Session,
        mut wanted: Vec<PlannedChange>,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let asked_for = wanted.len();
        if self
            .time_written
            .is_none_or(|at| at.elapsed() >= CLOCK_INTERVAL)
        {
            self.time_written = Some(Instant::now());
            wanted.push(PlannedChange {
                table: clock_row::TABLE.to_owned(),
                key: clock_row::KEY.to_owned(),
                value: Some(clock_row::to_row(&self.shared.copy.clock)),
                expect: WritePrecondition::Any,
            });
        }
        let asked = Instant::now();
        let committed = {
            let work = session.commit(&wanted);
            self.within_timeout(work).await?
        };
        let newest = committed.changes.last().map(|change| change.version);
        match newest {
            None if self.version == Some(committed.before) => self.shared.status.set_fresh(asked),
            Some(newest) if self.version == Some(committed.before) => {
                self.version = Some(newest);
                self.shared.publish(false, committed.changes);
                self.shared.status.set_fresh(asked);
            }
            // Other gateways changed something before.
            _ => self.catch_up(session).await?,
        }
        if let Some(newest) = newest {
            let work = session.trim(newest);
            self.within_timeout(work).await?;
        }
        let mut outcomes = committed.outcomes;
        outcomes.truncate(asked_for);
        Ok(outcomes)
    }

    /// Writes the changes that had to wait for the database.
    async fn deliver_outbox(&mut self, session: &mut Session) -> Result<(), StoreError> {
        let waiting = self.shared.outbox.waiting();
        let wanted: Vec<PlannedChange> = waiting
            .iter()
            .map(|((table, key), value)| PlannedChange {
                table: table.clone(),
                key: key.clone(),
                value: Some(value.clone()),
                expect: WritePrecondition::Any,
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        self.store(session, wanted).await?;
        for (name, value) in &waiting {
            self.shared.outbox.remove(name, value);
        }
        // From now on the entries have the versions of the database.
        self.version = None;
        self.catch_up(session).await
    }
}
