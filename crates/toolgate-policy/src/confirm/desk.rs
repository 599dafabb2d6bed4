//! Where approvals lie: open ones, decided ones, and grants. The store keeps them, the journal what was decided.

use super::{
    ApprovalView, Binding, DeskError, DeskLimits, GrantView, Standing, book::Book, grants, kept,
    over::Endings, slip::Slip,
};
use crate::{Clock, Expect, Freezes, Recorder, Store};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::sync::watch;
use toolgate_journal::{Entry, Event};

/// Where approvals lie.
pub struct Desk {
    pub(super) recorder: Arc<Recorder>,
    pub(super) store: Arc<dyn Store>,
    pub(super) limits: DeskLimits,
    pub(super) freezes: Arc<Freezes>,
    book: Mutex<Book>,
    changed: watch::Sender<u64>,
    /// Approvals whose end is on its way to the store.
    pub(super) endings: Endings,
    /// Uses of grants take turns here, so that they do not run into each other at the store.
    pub(super) turns: tokio::sync::Mutex<()>,
}

impl Desk {
    /// Slips that are remembered at most; the oldest that are over go first.
    const MOST: usize = 4096;
    /// How often something is tried again that another process was faster with.
    pub(super) const TRIES: u32 = 16;

    /// A desk with what the store has.
    pub fn new(recorder: Arc<Recorder>, store: Arc<dyn Store>, limits: DeskLimits) -> Arc<Desk> {
        let desk = Arc::new(Desk {
            freezes: Freezes::new(recorder.clone(), store.clone()),
            recorder,
            store,
            limits,
            book: Mutex::default(),
            changed: watch::Sender::new(0),
            endings: Endings::default(),
            turns: tokio::sync::Mutex::default(),
        });
        desk.sync();
        desk
    }

    /// Who and what is frozen.
    pub fn freezes(&self) -> &Arc<Freezes> {
        &self.freezes
    }

    /// Counts the changes on the desk. Those of other processes count once somebody looks: see [`Desk::follow`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The approvals that can still be decided or used, oldest first; those that other processes asked for too.
    pub fn list(&self) -> Vec<ApprovalView> {
        self.sweep();
        let book = self.book();
        let shown = |slip: &&Slip| slip.alive() && slip.version > 0;
        let mut list: Vec<ApprovalView> = book
            .slips
            .iter()
            .filter(shown)
            .map(ApprovalView::of)
            .collect();
        list.sort_by_key(|view| view.asked);
        list
    }

    /// One approval, whatever became of it, as long as it is remembered.
    pub fn find(&self, id: &str) -> Option<ApprovalView> {
        self.sweep();
        self.book().slip(id).map(|slip| ApprovalView::of(slip))
    }

    /// The remembered yeses, those that are over too, oldest first.
    pub fn grants(&self) -> Vec<GrantView> {
        self.sync();
        let book = self.book();
        let mut grants: Vec<GrantView> = book.grants.iter().map(|g| g.view.clone()).collect();
        grants.sort_by_key(|grant| grant.since);
        grants
    }

    /// Forgets a remembered yes, in all processes.
    ///
    /// # Errors
    /// There is no such grant, or its end could not be kept or recorded.
    pub async fn revoke(&self, id: &str) -> Result<(), DeskError> {
        let grants = self.grants();
        let grant = grants.into_iter().find(|grant| *grant.id == *id);
        let grant = grant.ok_or(DeskError::Unknown)?;
        let gone = self.store.write(grants::TABLE, id, None, Expect::Any);
        gone.await.map_err(DeskError::Unkept)?;
        self.sync();
        self.touch();
        let record = Entry::new(Event::APPROVAL)
            .with("state", "revoked")
            .with("grant", id)
            .with("srv", &*grant.server)
            .with("tool", grant.tool);
        self.written(match &grant.caller {
            Some(caller) => record.with("caller", caller.name()),
            None => record,
        })
        .await
    }

    /// Ends all approvals that were asked here under another policy: their calls are judged anew.
    pub fn policy_changed(&self, policy: &str) {
        let other = |slip: &Slip| slip.own && *slip.kept.binding.policy != *policy;
        self.expire(&Standing::Expired, other);
    }

    /// The clock by which approvals, grants and keys expire.
    pub fn clock(&self) -> &Arc<Clock> {
        self.store.clock()
    }

    /// Returns the time of that clock.
    pub fn now(&self) -> SystemTime {
        self.clock().now()
    }

    /// Whether this approval waits for a decision on exactly this.
    pub(super) fn is_open(&self, id: &str, binding: &Binding) -> bool {
        let mut book = self.book();
        book.slip(id)
            .is_some_and(|slip| slip.alive() && slip.kept.binding == *binding)
    }

    /// Takes in what the store has, if it changed.
    pub(super) fn sync(&self) {
        let now = *self.store.changed().borrow();
        let mut book = self.book();
        if book.seen == Some(now) {
            return;
        }
        // Under the lock: older rows must not come after newer ones.
        let approvals = self.store.entries(kept::TABLE);
        let grants = self.store.entries(grants::TABLE);
        let times = (self.now(), self.limits.life);
        book.take(approvals, grants, times);
        book.seen = Some(now);
        drop(book);
        self.touch();
    }

    /// Takes in what is new, ends what is over, and forgets what has been over for a life.
    pub(super) fn sweep(&self) {
        self.sync();
        let keys = self.freezes.keys();
        self.expire(&Standing::Expired, |slip| {
            slip.expiry.past(self.store.clock())
        });
        self.expire(&Standing::Revoked, |slip| {
            keys.gone(&slip.kept.binding.caller).is_some()
        });
        let clock = self.store.clock();
        let gone = self.book().forget(self.limits.life, Desk::MOST, clock);
        for slip in gone.iter().filter(|slip| slip.version > 0) {
            let expect = Expect::Version(slip.version);
            // It happens even if nobody waits for it; if it fails, the row is over all the same.
            drop(self.store.write(kept::TABLE, &slip.id, None, expect));
        }
    }

    pub(super) async fn written(&self, record: Entry) -> Result<(), DeskError> {
        let written = self
            .recorder
            .append(record)
            .map_err(DeskError::Unrecorded)?;
        written.await.map_err(DeskError::Unrecorded)
    }

    pub(super) fn touch(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
