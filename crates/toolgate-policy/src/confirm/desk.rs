//! Approval service: pending and decided approvals, and grants. The store persists them, the audit log records
//! decisions.

use super::{
    ApprovalBinding, ApprovalError, ApprovalLimits, ApprovalStatus, ApprovalView, GrantView,
    book::ApprovalIndex, grants, kept, over::EndingApprovals, slip::PendingApproval,
};
use crate::{AuditRecorder, FreezeRegistry, StateClock, StateStore, WritePrecondition};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::sync::watch;
use toolgate_journal::{AuditEntry, AuditEvent};

/// Approval service: creates, decides, redeems and expires approvals and grants.
pub struct ApprovalService {
    pub(super) recorder: Arc<AuditRecorder>,
    pub(super) store: Arc<dyn StateStore>,
    pub(super) limits: ApprovalLimits,
    pub(super) freezes: Arc<FreezeRegistry>,
    book: Mutex<ApprovalIndex>,
    changed: watch::Sender<u64>,
    /// Ended approvals whose end is being written to the store.
    pub(super) endings: EndingApprovals,
    /// Serializes uses of grants, so that they do not conflict at the store.
    pub(super) turns: tokio::sync::Mutex<()>,
}

impl ApprovalService {
    /// Maximum number of approvals in memory; the oldest ended ones are evicted first.
    const MAX_APPROVALS_IN_MEMORY: usize = 4096;
    /// Maximum number of attempts after write conflicts with other processes.
    pub(super) const MAX_WRITE_ATTEMPTS: u32 = 16;

    /// Creates a service and loads the approvals and grants of the store.
    pub fn new(
        recorder: Arc<AuditRecorder>,
        store: Arc<dyn StateStore>,
        limits: ApprovalLimits,
    ) -> Arc<ApprovalService> {
        let desk = Arc::new(ApprovalService {
            freezes: FreezeRegistry::new(recorder.clone(), store.clone()),
            recorder,
            store,
            limits,
            book: Mutex::default(),
            changed: watch::Sender::new(0),
            endings: EndingApprovals::default(),
            turns: tokio::sync::Mutex::default(),
        });
        desk.sync();
        desk
    }

    /// Returns the freezes of callers and servers.
    pub fn freezes(&self) -> &Arc<FreezeRegistry> {
        &self.freezes
    }

    /// Returns a counter of changes. Changes by other processes are counted when they are read, see [`ApprovalService::follow`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the approvals that can still be decided or spent, oldest first, including those of other processes.
    pub fn list(&self) -> Vec<ApprovalView> {
        self.sweep();
        let book = self.book();
        let shown = |slip: &&PendingApproval| slip.alive() && slip.version > 0;
        let mut list: Vec<ApprovalView> = book
            .slips
            .iter()
            .filter(shown)
            .map(ApprovalView::of)
            .collect();
        list.sort_by_key(|view| view.asked);
        list
    }

    /// Returns an approval of any status, until it is evicted.
    pub fn find(&self, id: &str) -> Option<ApprovalView> {
        self.sweep();
        self.book().slip(id).map(|slip| ApprovalView::of(slip))
    }

    /// Returns all grants, oldest first, including those that no longer hold.
    pub fn grants(&self) -> Vec<GrantView> {
        self.sync();
        let book = self.book();
        let mut grants: Vec<GrantView> = book.grants.iter().map(|g| g.view.clone()).collect();
        grants.sort_by_key(|grant| grant.since);
        grants
    }

    /// Revokes a grant, in all processes.
    ///
    /// # Errors
    /// There is no grant with this id, or the revocation could not be stored or recorded.
    pub async fn revoke(&self, id: &str) -> Result<(), ApprovalError> {
        let grants = self.grants();
        let grant = grants.into_iter().find(|grant| *grant.id == *id);
        let grant = grant.ok_or(ApprovalError::Unknown)?;
        let gone = self
            .store
            .write(grants::GRANTS_TABLE, id, None, WritePrecondition::Any);
        gone.await.map_err(ApprovalError::Unkept)?;
        self.sync();
        self.touch();
        let record = AuditEntry::new(AuditEvent::APPROVAL)
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

    /// Expires all approvals that this process requested under another policy. The rules judge their calls again.
    pub fn policy_changed(&self, policy: &str) {
        let other = |slip: &PendingApproval| slip.own && *slip.kept.binding.policy != *policy;
        self.expire(&ApprovalStatus::Expired, other);
    }

    /// Returns the clock by which approvals, grants and keys expire.
    pub fn clock(&self) -> &Arc<StateClock> {
        self.store.clock()
    }

    /// Returns the time of that clock.
    pub fn now(&self) -> SystemTime {
        self.clock().now()
    }

    /// Reports whether this approval is live and has exactly this binding.
    pub(super) fn is_open(&self, id: &str, binding: &ApprovalBinding) -> bool {
        let mut book = self.book();
        book.slip(id)
            .is_some_and(|slip| slip.alive() && slip.kept.binding == *binding)
    }

    /// Synchronizes the index with the store, if the store changed.
    pub(super) fn sync(&self) {
        let now = *self.store.changed().borrow();
        let mut book = self.book();
        if book.seen == Some(now) {
            return;
        }
        // Read under the lock, so that older rows cannot overwrite newer ones.
        let approvals = self.store.entries(kept::APPROVALS_TABLE);
        let grants = self.store.entries(grants::GRANTS_TABLE);
        let times = (self.now(), self.limits.life);
        book.take(approvals, grants, times);
        book.seen = Some(now);
        drop(book);
        self.touch();
    }

    /// Synchronizes with the store, ends expired and revoked approvals, and evicts those that ended one lifetime ago.
    pub(super) fn sweep(&self) {
        self.sync();
        let keys = self.freezes.keys();
        self.expire(&ApprovalStatus::Expired, |slip| {
            slip.expiry.past(self.store.clock())
        });
        self.expire(&ApprovalStatus::Revoked, |slip| {
            keys.gone(&slip.kept.binding.caller).is_some()
        });
        let clock = self.store.clock();
        let gone = self.book().forget(
            self.limits.life,
            ApprovalService::MAX_APPROVALS_IN_MEMORY,
            clock,
        );
        for slip in gone.iter().filter(|slip| slip.version > 0) {
            let expect = WritePrecondition::Version(slip.version);
            // The write runs without being awaited. If it fails, the stored row has expired anyway.
            drop(
                self.store
                    .write(kept::APPROVALS_TABLE, &slip.id, None, expect),
            );
        }
    }

    pub(super) async fn written(&self, record: AuditEntry) -> Result<(), ApprovalError> {
        let written = self
            .recorder
            .append(record)
            .map_err(ApprovalError::Unrecorded)?;
        written.await.map_err(ApprovalError::Unrecorded)
    }

    pub(super) fn touch(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    pub(super) fn book(&self) -> MutexGuard<'_, ApprovalIndex> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
