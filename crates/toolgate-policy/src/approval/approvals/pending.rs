//! Life cycle of one approval in this process.

use super::{
    ApprovalStatus, Approver,
    codec::{APPROVALS_TABLE, StoredApproval},
};
use crate::{StateClock, StateStore, WriteOutcome, WritePrecondition};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, time::Instant};
use toolgate_core::{BoxFuture, Error};
use toolgate_journal::{AuditEntry, AuditEvent};

/// Expiry by the monotonic or the wall clock, whichever comes first. Neither suspending the machine nor setting the
/// clock extends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApprovalExpiry {
    pub(super) monotonic: Instant,
    pub(super) wall: SystemTime,
}

impl ApprovalExpiry {
    /// Creates an expiry at a time of the store's clock, which reads `now`; at most `life` from now.
    pub(super) fn at(wall: SystemTime, now: SystemTime, life: Duration) -> ApprovalExpiry {
        let left = wall.duration_since(now).unwrap_or_default().min(life);
        ApprovalExpiry {
            monotonic: Instant::now() + left,
            wall,
        }
    }

    pub(super) fn past(&self, clock: &StateClock) -> bool {
        self.past_by(Duration::ZERO, clock)
    }

    pub(super) fn past_by(&self, more: Duration, clock: &StateClock) -> bool {
        Instant::now() >= self.monotonic + more || clock.now() >= self.wall + more
    }
}

/// An approval as this process knows it.
pub(super) struct PendingApproval {
    pub(super) id: Arc<str>,
    /// The stored row as of `version`; version 0 means that the first write is in flight.
    pub(super) stored: StoredApproval,
    pub(super) version: u64,
    /// A denial that is being written to the store. It takes effect immediately.
    pub(super) denial: Option<(Approver, Option<String>)>,
    /// Final status, if the approval expired, the policy changed or the caller's key was revoked.
    pub(super) ended: Option<ApprovalStatus>,
    pub(super) expiry: ApprovalExpiry,
    /// True if this process requested the approval.
    pub(super) is_local: bool,
    /// Ids of the calls that requested it.
    pub(super) calls: BTreeSet<Arc<str>>,
    /// Ids of the calls that received the denial.
    pub(super) denied_calls: BTreeSet<Arc<str>>,
    /// Number of callers that wait now.
    pub(super) waiters: usize,
    /// True once the approval is decided.
    pub(super) decided: watch::Sender<bool>,
}

impl PendingApproval {
    pub(super) fn new(
        id: Arc<str>,
        version: u64,
        kept: StoredApproval,
        (now, life): (SystemTime, Duration),
    ) -> PendingApproval {
        let settled = kept.status != ApprovalStatus::Pending;
        PendingApproval {
            id,
            expiry: ApprovalExpiry::at(kept.expires_at, now, life),
            calls: [kept.call.clone()].into(),
            stored: kept,
            version,
            denial: None,
            ended: None,
            is_local: version == 0,
            denied_calls: BTreeSet::new(),
            waiters: 0,
            decided: watch::Sender::new(settled),
        }
    }

    /// Returns the status. A denial overrides an unspent approval, and a use overrides everything.
    pub(super) fn status(&self) -> ApprovalStatus {
        match (&self.stored.status, &self.denial) {
            (spent @ ApprovalStatus::Spent { .. }, _) => spent.clone(),
            (_, Some((who, why))) => ApprovalStatus::Denied(who.clone(), why.clone()),
            (ApprovalStatus::Pending | ApprovalStatus::Approved(_), None) => {
                self.ended.as_ref().unwrap_or(&self.stored.status).clone()
            }
            (standing, None) => standing.clone(),
        }
    }

    /// Reports whether the approval can still be decided or spent.
    pub(super) fn is_live(&self) -> bool {
        self.status().is_live()
    }

    /// Replaces the stored row with a newer version.
    pub(super) fn replace_stored(&mut self, kept: StoredApproval, version: u64) {
        // Expiry is judged again after a change by another process.
        self.ended = None;
        (self.stored, self.version) = (kept, version);
        self.wake();
    }

    /// Wakes the waiting callers, if the approval is decided.
    pub(super) fn wake(&self) {
        if self.status() != ApprovalStatus::Pending {
            self.decided.send_replace(true);
        }
    }

    /// Writes a changed row to the store, if the stored version is still the known one.
    pub(super) fn write(
        &self,
        store: &dyn StateStore,
        change: impl FnOnce(&mut StoredApproval),
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let mut kept = self.stored.clone();
        change(&mut kept);
        let expect = match self.version {
            0 => WritePrecondition::Absent,
            version => WritePrecondition::Version(version),
        };
        store.write(APPROVALS_TABLE, &self.id, Some(kept.json()), expect)
    }

    /// Returns an `approval` audit record.
    pub(super) fn record(&self, state: &str) -> AuditEntry {
        let binding = &self.stored.binding;
        let record = AuditEntry::new(AuditEvent::APPROVAL)
            .with("approval", &*self.id)
            .with("state", state)
            .with("caller", binding.caller.name())
            .with("srv", &*binding.server)
            .with("tool", self.stored.item.full_name())
            .with("tool_hash", binding.definition.as_str())
            .with("policy_hash", &*binding.policy);
        match self.stored.requirement.passkey {
            true => record.with("passkey_required", true),
            false => record,
        }
    }

    /// Returns an `approval` audit record with the approver.
    pub(super) fn record_with_approver(&self, state: &str, who: &Approver) -> AuditEntry {
        who.add_to(self.record(state))
    }
}
