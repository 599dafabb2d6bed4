//! Approval service: pending and decided approvals, and grants. The store persists them, the audit log records
//! decisions.

use super::{
    ApprovalBinding, ApprovalError, ApprovalLimits, ApprovalStatus, ApprovalView, GrantView, codec,
    expiry::EndingApprovals, grant_uses::GrantUseQueue, grants, index::ApprovalIndex,
    pending::PendingApproval, signatures::SignedUses,
};
use crate::passkeys::PasskeyRegistry;
use crate::{AuditRecorder, FreezeRegistry, StateClock, StateStore, WritePrecondition};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::sync::watch;
use toolgate_journal::{AuditEntry, AuditEvent};

/// Service that requests, decides, redeems and expires people's approvals of calls, and grants (remembered approvals).
///
/// ```
/// use toolgate_policy::{
///     ApprovalBinding, ApprovalError, ApprovalService, ApprovalStatus, ApprovalTerms, ApprovalView,
///     Approver, GrantTerms, GrantView,
/// };
///
/// /// Prints the calls that wait for an approver.
/// fn show_pending(approvals: &ApprovalService) {
///     for ApprovalView { id, binding, reasons, .. } in approvals.list() {
///         let ApprovalBinding { caller, server, tool, .. } = binding;
///         println!("{id}: {} calls {server}.{tool}: {}", caller.name(), reasons.join(", "));
///     }
/// }
///
/// /// Approves a call, and further small payments of its caller today.
/// async fn approve(approvals: &ApprovalService, id: &str, approver: Approver) -> Result<(), ApprovalError> {
///     let mut grant = GrantTerms::default();
///     grant.condition = Some("args.amount <= 10".to_owned());
///     grant.max_uses = Some(20);
///     match approvals.approve(id, approver, ApprovalTerms::with_grant(grant)).await {
///         Ok(ApprovalStatus::Pending) => println!("another approver is needed"),
///         Ok(_) | Err(ApprovalError::Decided(ApprovalStatus::Approved(_))) => println!("approved"),
///         Err(error) => return Err(error),
///     }
///     Ok(())
/// }
///
/// /// Revokes all grants that are valid for every caller.
/// async fn revoke_wide_grants(approvals: &ApprovalService, who: &Approver) -> Result<(), ApprovalError> {
///     for GrantView { id, caller, .. } in approvals.grants() {
///         if caller.is_none() {
///             approvals.revoke(&id, who).await?;
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct ApprovalService {
    pub(super) recorder: Arc<AuditRecorder>,
    pub(super) store: Arc<dyn StateStore>,
    pub(super) limits: ApprovalLimits,
    pub(super) freezes: Arc<FreezeRegistry>,
    pub(super) passkeys: Arc<PasskeyRegistry>,
    /// Uses of signed approvals by this process, which the store must not take back.
    pub(super) signed_uses: SignedUses,
    index: Mutex<ApprovalIndex>,
    changed: watch::Sender<u64>,
    /// Ended approvals whose end is being written to the store.
    pub(super) endings: EndingApprovals,
    pub(super) grant_uses: GrantUseQueue,
}

impl ApprovalService {
    /// Maximum number of approvals in memory; the oldest ended ones are evicted first.
    const MAX_APPROVALS_IN_MEMORY: usize = 4096;
    /// Maximum number of attempts after write conflicts with other processes.
    pub(super) const MAX_WRITE_ATTEMPTS: u32 = 16;

    /// Creates an approval service and loads the approvals and grants of the store.
    pub fn new(
        recorder: Arc<AuditRecorder>,
        store: Arc<dyn StateStore>,
        limits: ApprovalLimits,
    ) -> Arc<ApprovalService> {
        let service = Arc::new(ApprovalService {
            freezes: FreezeRegistry::new(recorder.clone(), store.clone()),
            passkeys: PasskeyRegistry::new(recorder.clone(), store.clone()),
            recorder,
            store,
            limits,
            signed_uses: SignedUses::default(),
            index: Mutex::default(),
            changed: watch::Sender::new(0),
            endings: EndingApprovals::default(),
            grant_uses: GrantUseQueue::default(),
        });
        service.sync();
        service
    }

    /// Returns the registry of freezes, with which the operator stops calls of a caller or to a server.
    pub fn freezes(&self) -> &Arc<FreezeRegistry> {
        &self.freezes
    }

    /// Returns the registry of passkeys, with which approvers sign calls.
    pub fn passkeys(&self) -> &Arc<PasskeyRegistry> {
        &self.passkeys
    }

    /// Returns a counter of changes of approvals and grants, to wait for the next change. Changes by other processes
    /// are counted when they are read, see [`ApprovalService::follow`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the approvals that can still be decided or used by their call, oldest first, of all processes.
    pub fn list(&self) -> Vec<ApprovalView> {
        self.sweep();
        let index = self.lock_index();
        let shown = |approval: &&PendingApproval| approval.is_live() && approval.version > 0;
        let mut list: Vec<ApprovalView> = index
            .approvals
            .iter()
            .filter(shown)
            .map(ApprovalView::of)
            .collect();
        list.sort_by_key(|view| view.requested_at);
        list
    }

    /// Returns the approval with this id, whatever its status, until it is evicted.
    pub fn find(&self, id: &str) -> Option<ApprovalView> {
        self.sweep();
        self.lock_index()
            .find_by_id(id)
            .map(|approval| ApprovalView::of(approval))
    }

    /// Returns all grants (remembered approvals), oldest first, including those that no longer hold.
    pub fn grants(&self) -> Vec<GrantView> {
        self.sync();
        let index = self.lock_index();
        let mut grants: Vec<GrantView> = index.grants.iter().map(|g| g.view.clone()).collect();
        grants.sort_by_key(|grant| grant.created_at);
        grants
    }

    /// Revokes the grant (remembered approval) with this id, in all processes.
    ///
    /// # Errors
    /// There is no grant with this id, or the revocation could not be stored or recorded.
    pub async fn revoke(&self, id: &str, who: &crate::Approver) -> Result<(), ApprovalError> {
        let grants = self.grants();
        let grant = grants.into_iter().find(|grant| *grant.id == *id);
        let grant = grant.ok_or(ApprovalError::Unknown)?;
        let gone = self
            .store
            .write(grants::GRANTS_TABLE, id, None, WritePrecondition::Any);
        gone.await.map_err(ApprovalError::NotStored)?;
        self.sync();
        self.notify_change();
        let record = AuditEntry::new(AuditEvent::APPROVAL)
            .with("state", "revoked")
            .with("grant", id)
            .with("srv", &*grant.server)
            .with("tool", grant.tool);
        let record = who.add_to(record);
        self.append_record(match &grant.caller {
            Some(caller) => record.with("caller", caller.name()),
            None => record,
        })
        .await
    }

    /// Expires all approvals that this process requested while another operator policy was in force. The rules judge
    /// their calls again.
    #[doc(hidden)]
    pub fn policy_changed(&self, policy: &str) {
        let other = |approval: &PendingApproval| {
            approval.is_local && *approval.stored.binding.policy != *policy
        };
        self.expire(&ApprovalStatus::Expired, other);
    }

    /// Returns the clock by which approvals, grants and keys expire.
    pub fn clock(&self) -> &Arc<StateClock> {
        self.store.clock()
    }

    /// Returns the current time of the clock by which approvals, grants and API keys expire.
    pub fn now(&self) -> SystemTime {
        self.clock().now()
    }

    /// Reports whether this approval is live and has exactly this binding.
    pub(super) fn is_open(&self, id: &str, binding: &ApprovalBinding) -> bool {
        let mut index = self.lock_index();
        index
            .find_by_id(id)
            .is_some_and(|approval| approval.is_live() && approval.stored.binding == *binding)
    }

    /// Synchronizes the index with the store, if the store changed.
    pub(super) fn sync(&self) {
        let now = *self.store.changed().borrow();
        let mut index = self.lock_index();
        if index.store_changes == Some(now) {
            return;
        }
        // Read under the lock, so that older rows cannot overwrite newer ones.
        let approvals = self.store.entries(codec::APPROVALS_TABLE);
        let times = (self.now(), self.limits.max_lifetime());
        index.merge_approvals(approvals, times);
        index.grants.sync(self.store.as_ref());
        index.store_changes = Some(now);
        drop(index);
        self.notify_change();
    }

    /// Synchronizes with the store, ends expired and revoked approvals, and evicts those that ended one lifetime ago.
    pub(super) fn sweep(&self) {
        self.sync();
        let keys = self.freezes.keys();
        self.expire(&ApprovalStatus::Expired, |approval| {
            approval.expiry.past(self.store.clock())
        });
        self.expire(&ApprovalStatus::Revoked, |approval| {
            keys.rejection_reason(&approval.stored.binding.caller)
                .is_some()
        });
        let clock = self.store.clock();
        let gone = self.lock_index().evict_ended(
            self.limits.max_lifetime(),
            ApprovalService::MAX_APPROVALS_IN_MEMORY,
            clock,
        );
        for approval in gone.iter().filter(|approval| approval.version > 0) {
            let expect = WritePrecondition::Version(approval.version);
            // The write runs without being awaited. If it fails, the stored row has expired anyway.
            drop(
                self.store
                    .write(codec::APPROVALS_TABLE, &approval.id, None, expect),
            );
        }
    }

    pub(super) async fn append_record(&self, record: AuditEntry) -> Result<(), ApprovalError> {
        let written = self
            .recorder
            .append(record)
            .map_err(ApprovalError::NotAudited)?;
        written.await.map_err(ApprovalError::NotAudited)
    }

    pub(super) fn notify_change(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    pub(super) fn lock_index(&self) -> MutexGuard<'_, ApprovalIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
